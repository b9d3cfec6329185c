"""Observations survive their journal, and a bad line is named."""

from __future__ import annotations

import typing

import pytest

from plimsoll.core.verify import LawAudit
from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.observations import ObservationError, decode_line, decode_lines, encode_line

EVERY = [
    seen.HeadTreeObserved([("h1", "h2")]),
    seen.PublicationObserved("p", 1, 2, {"a": 1, "b": 1.5, "c": "x", "d": True}, 0.25),
    seen.AnswerObserved("p", 1, 2, "unconfirmed", 0.5),
    seen.LogEntryObserved("h1", 7, 1, ("p", 1, 2), ("h1", 7, 1), 0.3),
    seen.SubscriptionObserved("s", 1, 4, [("a", "in", [1, 2]), ("b", "exists", None), ("c", "=", "x")], 0.1),
    seen.AcknowledgementObserved("s", 1, [4], "h1", ["h2"], 0.2),
    seen.WithdrawalObserved("s", 1, [4], 0.9),
    seen.RemovalObserved("s", 1, [4], 1.0),
    seen.DeliveryObserved("s", 1, ("p", 1, 2), ("h1", 7, 1), 0.4),
    seen.DeliveryObserved("s", 1, ("p", 1, 2), ("h1", 7, 1), 0.4, ("h2", 8, 9)),
    seen.GapObserved("s", 1, "h1", 6, 3, 7, 5, [("h1", 7, 5)], "log", 0.6),
    seen.LeaseEndObserved("s", 1, 0.7),
    seen.IncarnationEndObserved("s", 1, 1.1),
    seen.HeadEndObserved("h1", 6, 0.0),
    seen.OwnerObserved("s", (1, 1), "e1", 0.2),
    seen.SessionStartObserved("u", 9.0, 0.2),
    seen.SessionEndObserved("u", "Succeeded", 0.3),
    seen.HandoverStartObserved("1.1", "e1", "e2", ["s"], True, 2.5, 0.2),
    seen.HandoverResultObserved("1.1", "done", [("s", "moved")], 0.5),
    seen.UncutMemberObserved("1.1", "s", "e1", "away", 0.1, 0.4, 0.4, 0.4),
    seen.AttachmentObserved("s", 1, "e2", 0.4),
    seen.ServingEdgeObserved("e2", "s", (1, 2), 0.5),
    seen.GapFreeClaim(0.0, ["s9"]),
    seen.ResidueObserved("e1", "records", 0, 2.0),
    seen.SizeObserved("h1", "log_bytes", 10.0, 20.0, 2.0),
    seen.LatencyClaim(0.0, 1.0, 0.1, ["s9"]),
    seen.CounterObserved("s", 1, "delivered", 1, 2.0),
    seen.GroupObserved("g", 4, "v", 0.0),
    seen.SliceItemObserved("g", 2, "c/1", ("p", 1, 2), True, 0.4, None),
]


def test_every_kind_is_here():
    assert {type(one) for one in EVERY} == set(typing.get_args(seen.AnyObservation))


@pytest.mark.parametrize("one", EVERY, ids=lambda one: type(one).__name__)
def test_a_line_is_read_back_as_it_was(one):
    line = encode_line(one)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_line(line) == one


def test_kinds_of_values_survive():
    back = decode_line(encode_line(seen.PublicationObserved("p", 1, 1, {"a": 1, "b": 1.0, "c": True}, 0.0)))
    assert isinstance(back, seen.PublicationObserved)
    assert [type(value) for value in back.attributes.values()] == [int, float, bool]


def test_a_bad_line_is_named():
    lines = [encode_line(EVERY[0]), b'["nonsense", 1]\n']
    with pytest.raises(ObservationError, match=r"edge\.jsonl:2: not an observation"):
        list(decode_lines(lines, "edge.jsonl"))


def test_what_a_killed_process_left_half_written_is_passed_over():
    whole = encode_line(EVERY[1])
    assert list(decode_lines([whole, whole[:10]])) == [EVERY[1]]


@pytest.mark.parametrize("one", EVERY, ids=lambda one: type(one).__name__)
def test_an_audit_takes_every_kind(one):
    LawAudit().take(one)
