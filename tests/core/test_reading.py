"""Reading the log for an edge: in bounded slices, for a filter or for the whole cover, with gaps where it was cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from plimsoll.core import reading, wire
from plimsoll.core import records as r
from plimsoll.core.link import Link, LinkLimits
from plimsoll.core.log import Entry, Log
from plimsoll.core.node import Node
from plimsoll.core.outlet import Outlet
from plimsoll.core.predicates import Attributes
from plimsoll.core.streams import Streams
from plimsoll.core.wire import Info, WireError


class Shelf:
    """A log of publications `n` = 1, 2..., some of them gaps, and one edge that reads it."""

    def __init__(self, count: int, gaps: frozenset[int] = frozenset(), first: int = 1) -> None:
        self.log = Log(10**9)
        for n in range(1, count + 1):
            self.log.append(Entry(self.entry(n, n in gaps), ((("h", 5), n),), n in gaps))
        while self.log.first < first:
            self.log._evict()
        info = Info("h", "head", 5)
        node = Node(info, LinkLimits(), lambda: 1, max_frame_bytes=2**20)
        self.streams = Streams(node, self.log, ("h", 5))
        link = Link("e", local=info, limits=LinkLimits(), initiator=True, new_id=lambda: 1, now=0.0)
        self.outlet = Outlet(link, "e#1", False)
        self.outlet.room = 10**9

    def entry(self, n: int, is_gap: bool) -> bytes:
        if is_gap:
            return wire.encode(r.Gap("h", 5, n, 5, n, [("g", 2, n)], "restart"))
        body = wire.encode(r.Body({"n": n}, b"p" * 20))
        return wire.encode(r.Pub(n, "h", 5, n, "p", 1, n, 0, 0, Raw(body)))

    def read(self, after: int, *filters: str, cursor: int = 3, needs: frozenset[str] = frozenset({"e#1"})) -> None:
        def needed_by(attributes: Attributes) -> set[str]:
            return set(needs) if int(attributes["n"]) % 2 else set()

        reading.read(r.Fetch(cursor, after, list(filters)), self.outlet, self.log, self.streams, needed_by)

    def said(self) -> list[r.Replay | r.Fetched]:
        buffer = self.outlet.link.buffer
        records = [r.to_edge.decode(record) for record in buffer]
        buffer.clear()
        assert all(isinstance(record, r.Replay | r.Fetched) for record in records)
        return [record for record in records if isinstance(record, r.Replay | r.Fetched)]

    def positions(self) -> tuple[list[int], r.Fetched]:
        *replays, last = self.said()
        assert isinstance(last, r.Fetched)
        found = []
        for one in replays:
            assert isinstance(one, r.Replay)
            found.append(one.item.high if isinstance(one.item, r.Gap) else one.item.position)
        return found, last


def test_without_a_filter_it_is_what_the_link_needs():
    shelf = Shelf(10)
    shelf.read(3)
    assert shelf.positions() == ([5, 7, 9], r.Fetched(3, 10, True))
    shelf.read(3, needs=frozenset({"other#1"}))
    assert shelf.positions() == ([], r.Fetched(3, 10, True))


def test_with_filters_it_is_what_any_of_them_matches():
    shelf = Shelf(10)
    shelf.read(0, "[n,<,3]", "[n,>,9]")
    assert shelf.positions() == ([1, 2, 10], r.Fetched(3, 10, True))


def test_a_gap_in_the_log_is_always_told():
    shelf = Shelf(10, gaps=frozenset({4, 8}))
    shelf.read(0, "[n,=,5]")
    assert shelf.positions() == ([4, 5, 8], r.Fetched(3, 10, True))


def test_what_is_evicted_is_a_gap_ahead_of_the_rest():
    shelf = Shelf(10, first=7)
    shelf.read(2, "[n,>,0]")
    first = shelf.said()[0]
    assert isinstance(first, r.Replay)
    assert isinstance(first.item, r.Gap)
    assert (first.item.low, first.item.high, first.item.last, first.item.reason) == (3, 6, [("h", 5, 6)], "log")
    shelf.read(6, "[n,>,0]")
    assert shelf.positions()[0] == [7, 8, 9, 10]


@pytest.mark.parametrize("after", [10, 11, 1000])
def test_at_the_end_there_is_nothing_more(after: int):
    shelf = Shelf(10)
    shelf.read(after, "[n,>,0]")
    assert shelf.positions() == ([], r.Fetched(3, after, True))


def test_a_slice_is_bounded_in_entries_and_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "FETCH_SLICE_ENTRIES", 4)
    shelf = Shelf(10)
    found, at, slices = [], 0, 0
    while True:
        shelf.read(at, "[n,>,0]")
        positions, fetched = shelf.positions()
        found += positions
        at, slices = fetched.to, slices + 1
        if fetched.done:
            break
    assert (found, slices) == (list(range(1, 11)), 3)


def test_a_slice_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reading, "FETCH_SLICE_BYTES", 100)
    shelf = Shelf(10)
    shelf.read(0, "[n,>,0]")
    positions, fetched = shelf.positions()
    assert 1 <= len(positions) < 10
    assert (fetched.to, fetched.done) == (positions[-1], False)


def test_a_filter_that_cannot_be_read_is_refused_before_anything_is_said():
    shelf = Shelf(10)
    with pytest.raises(WireError, match="subscription"):
        shelf.read(0, "[n,>,0]", "[n,")
    assert shelf.outlet.link.buffer == []


@given(
    st.integers(0, 30), st.frozensets(st.integers(1, 30)), st.integers(1, 31), st.integers(0, 30), st.integers(1, 8),
    st.integers(1, 30),
)  # fmt: skip
def test_slice_by_slice_each_wanted_entry_comes_once_and_the_rest_is_in_gaps(
    count: int, gaps: frozenset[int], first: int, after: int, at_once: int, bound: int
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "FETCH_SLICE_ENTRIES", at_once)
        shelf = Shelf(count, gaps, min(first, count) or 1)
        after, found, at = min(after, count), [], min(after, count)
        covered: set[int] = set()
        for _ in range(100):
            shelf.read(at, f"[n,<,{bound}]")
            *replays, fetched = shelf.said()
            assert isinstance(fetched, r.Fetched)
            for one in replays:
                assert isinstance(one, r.Replay)
                if isinstance(one.item, r.Gap):
                    covered.update(range(one.item.low, one.item.high + 1))
                else:
                    found.append(one.item.position)
            at = fetched.to
            if fetched.done:
                break
        assert at == count
        assert found == sorted(set(found))
        due = {n for n in range(after + 1, count + 1) if n < bound or n in gaps}
        assert set(found) | covered >= due
        assert covered <= gaps | set(range(after + 1, shelf.log.first))
        assert not set(found) & covered
