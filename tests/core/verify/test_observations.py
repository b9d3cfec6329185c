"""Observations survive their journal, and a bad line is named."""

from __future__ import annotations

import typing

import pytest

from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.observations import JournalError, decode_line, decode_lines, encode_line

EVERY = [
    seen.Fleet([("h1", "h2")]),
    seen.Published("p", 1, 2, {"a": 1, "b": 1.5, "c": "x", "d": True}, 0.25),
    seen.Answered("p", 1, 2, "unconfirmed", 0.5),
    seen.Logged("h1", 7, 1, ("p", 1, 2), ("h1", 7, 1), 0.3),
    seen.Subscribed("s", 1, 4, [("a", "in", [1, 2]), ("b", "exists", None), ("c", "=", "x")], 0.1),
    seen.Acknowledged("s", 1, [4], "h1", ["h2"], 0.2),
    seen.Withdrawn("s", 1, [4], 0.9),
    seen.Forgotten("s", 1, [4], 1.0),
    seen.Delivered("s", 1, ("p", 1, 2), ("h1", 7, 1), 0.4),
    seen.Delivered("s", 1, ("p", 1, 2), ("h1", 7, 1), 0.4, ("h2", 8, 9)),
    seen.GapTold("s", 1, "h1", 6, 3, 7, 5, [("h1", 7, 5)], "log", 0.6),
    seen.Lapsed("s", 1, 0.7),
    seen.Ended("s", 1, 1.1),
    seen.HeadEnded("h1", 6, 0.0),
    seen.Owned("s", (1, 1), "e1", 0.2),
    seen.SessionBegan("u", 9.0, 0.2),
    seen.SessionEnded("u", "Succeeded", 0.3),
    seen.HandoverBegan("1.1", "e1", "e2", ["s"], True, 2.5, 0.2),
    seen.HandoverTold("1.1", "done", [("s", "moved")], 0.5),
    seen.Attached("s", 1, "e2", 0.4),
    seen.Serving("e2", "s", (1, 2), 0.5),
    seen.Steady(0.0, ["s9"]),
    seen.Residue("e1", "records", 0, 2.0),
    seen.Mark("h1", "log_bytes", 10.0, 20.0, 2.0),
    seen.Undisturbed(0.0, 1.0, 0.1, ["s9"]),
    seen.Counter("s", 1, "delivered", 1, 2.0),
]


def test_every_kind_is_here():
    assert {type(one) for one in EVERY} == set(typing.get_args(seen.Kind))


@pytest.mark.parametrize("one", EVERY, ids=lambda one: type(one).__name__)
def test_a_line_is_read_back_as_it_was(one):
    line = encode_line(one)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_line(line) == one


def test_kinds_of_values_survive():
    back = decode_line(encode_line(seen.Published("p", 1, 1, {"a": 1, "b": 1.0, "c": True}, 0.0)))
    assert isinstance(back, seen.Published)
    assert [type(value) for value in back.attributes.values()] == [int, float, bool]


def test_a_bad_line_is_named():
    lines = [encode_line(EVERY[0]), b'["nonsense", 1]\n']
    with pytest.raises(JournalError, match=r"edge\.jsonl:2: not an observation"):
        list(decode_lines(lines, "edge.jsonl"))


def test_what_a_killed_process_left_half_written_is_passed_over():
    whole = encode_line(EVERY[1])
    assert list(decode_lines([whole, whole[:10]])) == [EVERY[1]]
