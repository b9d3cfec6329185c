"""`plimsoll bench` through real brokers: figures as text and JSON, and bounds of what is asked for."""

from __future__ import annotations

import json

import pytest


def test_text_and_json(run, shared_fleet):
    code, out, err = run("bench", "--seconds", "0.5", "--rate", "50", "--subscribers", "2")
    assert (code, err) == (0, "publishing 25 publications in 0.5 s ...\n")
    assert "25 accepted, 0 not" in out
    assert "50 of 50, 0 missing, 0 gaps" in out
    code, out, _ = run("bench", "--seconds", "0.5", "--rate", "50", "--publishers", "2", "-o", "json")
    assert code == 0
    assert json.loads(out)["deliveries"] == 25


@pytest.mark.parametrize(
    "arguments",
    [
        ["--size", "250001"],
        ["--publishers", "9999", "--subscribers", "9999"],
        ["--rate", "1000000", "--seconds", "3600"],
        ["--rate", "0"],
        ["--seconds", "0"],
        ["--seconds", "nan"],
    ],
)
def test_what_is_too_much_is_refused_before_anything_is_sent(run, arguments):
    assert run("bench", *arguments)[0] == 2
