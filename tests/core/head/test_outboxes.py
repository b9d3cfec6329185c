"""The last offsets in gaps: all of them, or none."""

from __future__ import annotations

import pytest

from plimsoll.core.head.log import Log, LogEntry
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link, LinkLimits
from plimsoll.core.transport.overlay_node import OverlayNode

NODE = Info("h", "head", 7)


def streams(entries: int, kept: int) -> Outboxes:
    """The streams of a head whose log had this number of entries, of two origins in turn, and holds the last `kept`."""
    log = Log(10**6)
    for i in range(1, entries + 1):
        log.append(LogEntry(b"record", (((f"o{i % 2}", 1), i),), False))
    log.limit_bytes = log.bytes * kept // entries
    log.append(LogEntry(b"record", (((f"o{(entries + 1) % 2}", 1), entries + 1),), False))
    return Outboxes(OverlayNode(NODE, LinkLimits(), lambda: 1, max_frame_bytes=1000), log, ("h", 7))


def test_a_gap_up_to_the_end_of_what_is_evicted_names_the_last_offset_of_each_origin():
    some = streams(10, 5)
    high = some.log.first - 1
    gap = some.gap(2, high)
    assert (gap.low, gap.high, gap.reason) == (2, high, "log")
    assert sorted(gap.last) == sorted([(f"o{i % 2}", 1, i) for i in (high - 1, high)])


def test_a_gap_that_another_one_follows_names_its_own_last_offsets_only():
    some = streams(10, 5)
    high = some.log.first - 2
    assert sorted(some.gap(2, high).last) == sorted([(f"o{i % 2}", 1, i) for i in (high - 1, high)])


def test_a_gap_whose_offsets_are_forgotten_names_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.core.head.log.EVICTED_REMEMBERED", 2)
    some = streams(10, 5)
    assert some.gap(2, some.log.first - 2).last == [], "what it named would hide the gap that follows"


def test_the_outlet_of_a_neighbour_is_kept_and_that_of_an_edge_is_not():
    some = streams(3, 3)
    links = [
        Link(name, local=NODE, limits=LinkLimits(), initiator=False, new_id=lambda: 5, now=0.0) for name in ("n", "e")
    ]
    for link, is_head in zip(links, (True, False), strict=True):
        link.remote = Info(str(link.peer), "head" if is_head else "edge", 1)
        some.open(link, is_head)
    outboxes = dict(some.by_key)
    assert sorted(outboxes) == ["e#0", "n"]
    for outbox in outboxes.values():
        some.lost(outbox)
    assert some.all_keys() == ["n"]
    assert some.open(links[0], True) is outboxes["n"]
