"""A member as policies see it."""

from __future__ import annotations

from typing import Any, cast

from plimsoll.core.head.groups.member import MemberEntry
from plimsoll.core.protocol.messages import MemberLoad, SliceReport


def entry() -> MemberEntry:
    return MemberEntry("a", "key-a", 7, None, 0.0, 0.0)


def test_its_slices_have_the_loads_that_it_has_reported() -> None:
    member = entry()
    member.load = MemberLoad(2.0, 0.5, 0.25, [SliceReport(1, 10.0, 0.01, 3)])
    seen = member.consumer([1, 2])
    assert (seen.cpu, seen.memory, seen.usage) == (0.5, 0.25, 0.5)
    assert [(each.number, each.items_per_second, each.backlog) for each in seen.slices] == [(1, 10.0, 3), (2, 0.0, 0)]


def test_a_report_counts_that_was_measured_since_its_slices_changed() -> None:
    member = entry()
    member.changed_at, member.measured_at, member.load = 10.0, 11.0, MemberLoad(2.0)
    assert not member.consumer([]).has_measured
    member.measured_at = 12.0
    assert member.consumer([]).has_measured


def test_it_is_known_by_its_identity_and_life() -> None:
    link = cast("Any", type("L", (), {"identity": "key-a"})())
    other = cast("Any", type("L", (), {"identity": "key-b"})())
    assert entry().is_of(link, 7)
    assert not entry().is_of(link, 8)
    assert not entry().is_of(other, 7)
