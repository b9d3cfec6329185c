"""Every course of splits, moves, releases, lost and repeated tables, and deaths, with the product's table of bundles.

Two edges, one topic in each half of the key space, a mediator that stores before it tells, and a network that loses,
keeps and repeats. The search is exhaustive up to its depth; states that are equal are visited once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from plimsoll.core.head.bundles import Bundles
from plimsoll.core.head.placement import Placement, policy_of
from plimsoll.core.policies.model.hash_ranges import HashRange, Partition
from plimsoll.core.policies.registry import placer_of_spec
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import unit_name

POLICY = policy_of({"type": "Pulsar", "pulsar": {"topicAttribute": "topic", "bundles": {"initial": 2}}})
WHOLE = Partition.of_count(2)
RANGES = (WHOLE, WHOLE.split(WHOLE.ranges[0], 0x40000000))
"""The partition of each version."""
UNITS = (0x00000001, 0x50000000)
"""Topics that a split takes apart."""
EDGES = ("a", "b")
MEDIATORS, TABLES = 2, 2

Copy = tuple[int, int]
"""What an edge knows: the version of the ranges, and the epoch of the mediator that told them; (0, 0) before."""


@dataclass(frozen=True)
class Course:
    """A state. `stored`: the version that the store has. `head`: what the head was told, None while it is down.

    `tables`: messages under way, which may come at any time and again. `serves`: the edge of each unit, "" if it has
    none.
    """

    stored: int = 0
    epoch: int = 1
    head: Copy | None = (0, 0)
    owners: tuple[tuple[int, str], ...] = ()
    released: tuple[tuple[int, int], ...] = ()
    tables: tuple[tuple[int, int, str, int], ...] = ()
    copies: tuple[Copy, ...] = ((0, 0), (0, 0))
    serves: tuple[str, ...] = ("", "")
    releases: int = 0


def bundles_of(at: Course) -> Bundles:
    """The product's table in a state."""
    assert at.head is not None
    found = Bundles(POLICY)
    found.partition, found.version = RANGES[at.head[0]], (at.head[1], at.head[0])
    found.owners = {found.partition.range_of(low): edge for low, edge in at.owners}
    found._released = {found.partition.range_of(low): frozenset({number}) for low, number in at.released}
    return found


def with_bundles(at: Course, found: Bundles) -> Course:
    version = RANGES.index(found.partition)
    assert found.version[1] == version, "ranges and their version belong together"
    return replace(
        at,
        head=(version, found.version[0]),
        owners=tuple(sorted((bundle.low, edge) for bundle, edge in found.owners.items())),
        released=tuple(sorted((bundle.low, max(numbers)) for bundle, numbers in found._released.items())),
    )


def placement() -> Placement:
    found = Placement(placer_of_spec(POLICY))
    for edge in EDGES:
        found.add(edge, edge, "")
    return found


def looked_up(at: Course, unit: int) -> Course:
    found = bundles_of(at)
    candidate = found.place(UNITS[unit], placement(), ())
    assert candidate is not None
    serves = tuple(candidate.name if number == unit else edge for number, edge in enumerate(at.serves))
    return with_bundles(replace(at, serves=serves), found)


def restarted(at: Course) -> Course:
    """A new life of the head: edges report what they know and whom they serve."""
    found = Bundles(POLICY)
    for version, mediator in at.copies:
        if mediator:
            found.take_ranges(RANGES[version].boundaries, (mediator, version))
    found.adopt({unit_name("s", UNITS[unit]): edge for unit, edge in enumerate(at.serves) if edge})
    return with_bundles(replace(at, head=(0, 0)), found)


def table_of(table: tuple[int, int, str, int]) -> msg.BundleTable:
    mediator, version, assigned, released = table
    first = RANGES[version].ranges[0].low
    return msg.BundleTable(
        mediator, version, list(RANGES[version].boundaries),
        [msg.AssignedBundle(first, assigned)] if assigned else [],
        [msg.ReleasedBundle(first, released)] if released else [],
    )  # fmt: skip


def delivered(at: Course, table: tuple[int, int, str, int]) -> Course:
    found = bundles_of(at)
    before = dict(found._released)
    if not found.take_table(table_of(table)):
        return at
    gone = [bundle for bundle, number in found._released.items() if before.get(bundle) != number]
    serves = tuple("" if any(each.holds(UNITS[n]) for each in gone) else edge for n, edge in enumerate(at.serves))
    return with_bundles(replace(at, serves=serves), found)


def steps(at: Course) -> Iterator[tuple[str, Course]]:
    """All that can happen next."""
    if at.stored < len(RANGES) - 1:
        yield "store a split", replace(at, stored=at.stored + 1)
    if at.epoch < MEDIATORS:
        yield "the mediator dies", replace(at, epoch=at.epoch + 1)
    if len(at.tables) < TABLES:
        for edge in ("", *EDGES):
            yield f"tell, assign {edge}", replace(at, tables=(*at.tables, (at.epoch, at.stored, edge, 0)))
        if at.releases < 1:
            told = (at.epoch, at.stored, "", at.releases + 1)
            yield "tell, release", replace(at, tables=(*at.tables, told), releases=at.releases + 1)
    for number in range(len(at.tables)):
        yield "a table is lost", replace(at, tables=at.tables[:number] + at.tables[number + 1 :])
    if at.head is None:
        yield "the head starts", restarted(at)
        return
    for table in dict.fromkeys(at.tables):
        yield f"{table} arrives", delivered(at, table)
    for number in range(len(EDGES)):
        if at.head[1]:
            newest = max(at.copies[number], at.head, key=lambda each: (each[1], each[0]))
            copies = tuple(newest if n == number else copy for n, copy in enumerate(at.copies))
            yield f"{EDGES[number]} is told", replace(at, copies=copies)
    for unit in range(len(UNITS)):
        yield f"unit {unit} joins", looked_up(at, unit)
    yield "the head dies", replace(at, head=None, owners=(), released=())


def check(before: Course, at: Course) -> None:
    if at.head is None:
        return
    assert at.head[0] <= at.stored, "a broker knows ranges that the store does not have"
    if before.head is not None:
        assert (at.head[1], at.head[0]) >= (before.head[1], before.head[0]), "an older table has changed something"
    for low, edge in at.owners:
        assert RANGES[at.head[0]].range_of(low).low == low, "an owner of a bundle that is none"
        assert edge in EDGES


def settled(at: Course) -> Course:
    """What it comes to: the mediator of today repeats the table, and units that are away join again."""
    at = restarted(at) if at.head is None else at
    at = delivered(at, (at.epoch, at.stored, "", 0))
    for unit, edge in enumerate(at.serves):
        at = at if edge else looked_up(at, unit)
    return at


def explore(depth: int) -> tuple[int, list[Any]]:
    """The number of states, and those that break the law of the end, each with its course."""
    start = Course()
    ahead: list[tuple[Course, tuple[str, ...]]] = [(start, ())]
    seen, wrong = {start}, list[Any]()
    for _ in range(depth):
        following: list[tuple[Course, tuple[str, ...]]] = []
        for at, course in ahead:
            for what, after in steps(at):
                check(at, after)
                if after in seen:
                    continue
                seen.add(after)
                following.append((after, (*course, what)))
                end = settled(after)
                parted = RANGES[after.stored]
                owners: dict[HashRange, str] = {parted.range_of(low): edge for low, edge in end.owners}
                if end.head != (after.stored, after.epoch) or any(parted.range_of(u) not in owners for u in UNITS):
                    wrong.append((course, what, end))
        ahead = following
    return len(seen), wrong


@pytest.mark.parametrize("depth", [7])
def test_whatever_comes_in_which_order_the_ranges_are_those_of_the_store_and_bundles_have_owners(depth: int):
    states, wrong = explore(depth)
    assert wrong == []
    assert states > 5_000


def test_the_search_finds_a_head_that_takes_older_ranges(monkeypatch: pytest.MonkeyPatch):
    plain = Bundles.take_ranges

    def take(self: Bundles, boundaries: Any, version: tuple[int, int]) -> bool:
        self.version = min(self.version, version)
        return plain(self, boundaries, version)

    monkeypatch.setattr(Bundles, "take_ranges", take)
    with pytest.raises(AssertionError, match=r"older table|belong together"):
        explore(6)
