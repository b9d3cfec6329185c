"""What record refuses. What it records, through real brokers: `test_replay.py`, which has the fleet."""

from __future__ import annotations

import pytest

FEED = """
apiVersion: plimsoll.dev/v1alpha1
kind: Feed
metadata: {name: stocks}
spec: {subscription: "[class,=,'STOCK']"%s}
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--subscription", "[class,=,'STOCK']"], "say where to: --path DIR"),
        (["--subscription", "[class,=", "--path", "d"], "column"),
        ([], "one of the arguments -f/--file --subscription is required"),
    ],
)
def test_what_record_refuses(run, arguments, words):
    code, _, err = run("record", *arguments)
    assert code == 2
    assert words in err


def test_the_feed_of_a_file(run, tmp_path):
    file = tmp_path / "feed.yaml"
    file.write_text(FEED % "")
    assert run("record", "-f", str(file))[2] == (
        "plimsoll: Feed/stocks names no absolute path: say where to with --path DIR\n"
    )
    assert "has the feeds stocks: name one of them" in run("record", "-f", str(file), "--feed", "bonds")[2]
    file.write_text(FEED % ", comitInterval: 5s")
    code, _, err = run("record", "-f", str(file))
    assert code == 2
    assert 'Did you mean "commitInterval"?' in err
