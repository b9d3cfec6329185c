"""record and replay by hand, through real brokers; and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll.cli.argument_types import parse_speed
from plimsoll.feeds.replay import recorded_publications

FEED = """
apiVersion: plimsoll.dev/v1alpha1
kind: Feed
metadata: {name: stocks}
spec: {subscription: "[class,=,'STOCK']"%s}
"""


@pytest.mark.parametrize(("text", "speed"), [("2x", 2.0), ("1", 1.0), ("0.5x", 0.5), ("max", None)])
def test_speeds(text, speed):
    assert parse_speed(text) == speed


@pytest.mark.parametrize("text", ["0x", "fast", "-1", "x", "1e3x", "nan"])
def test_a_speed_that_is_none(run, text, tmp_path):
    code, _, err = run("replay", str(tmp_path), "--speed", text)
    assert code == 2
    assert "write one such as 1x" in err


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


def test_what_is_recorded_is_replayed(run, program, shared_fleet, tmp_path):
    data = tmp_path / "data"
    recorder = program("record", "--subscription", "[class,=,'STOCK']", "--path", str(data), "--count", "3")
    assert recorder.stderr is not None
    assert "recording to" in recorder.stderr.readline()
    for price in ("1.5", "2.5", "3.5"):
        assert run("pub", "class=STOCK", f"price={price}")[0] == 0
    out, _ = recorder.communicate(timeout=60)
    assert (recorder.returncode, out) == (0, "3 rows, 0 dead letters, 0 gaps\n")
    assert [each.attributes["price"] for each in recorded_publications(Path(data))] == [1.5, 2.5, 3.5]
    assert run("replay", str(data), "--speed", "max") == (0, "3 published, 3 accepted\n", "")
    assert "there is no dataset here" in run("replay", str(tmp_path), "--speed", "max")[2]


def test_a_recorder_goes_on_behind_its_last_commit(run, shared_fleet, tmp_path):
    data = tmp_path / "data"
    arguments = ("record", "--subscription", "[class,=,'BOND']", "--path", str(data))
    assert run(*arguments, "--seconds", "1")[:2] == (0, "0 rows, 0 dead letters, 0 gaps\n")
    assert run("pub", "class=BOND", "price=1")[0] == 0
    assert run(*arguments, "--count", "1", "--seconds", "60")[:2] == (0, "1 rows, 0 dead letters, 0 gaps\n")
    code, _, err = run("record", "--subscription", "[class,=,'X']", "--path", str(data))
    assert code == 1
    assert "was recorded with the subscription [class,=,'BOND']" in err
