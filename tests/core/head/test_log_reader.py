"""Reading the log for an edge: in bounded slices, for a filter or for the whole cover, with gaps where it was cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from plimsoll.core.head import log_reader
from plimsoll.core.head.log import Log, LogEntry
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.predicates import Attributes
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info, WireError
from plimsoll.core.transport.link import Link, LinkLimits
from plimsoll.core.transport.overlay_node import OverlayNode


class Shelf:
    """A log of publications `n` = 1, 2..., some of them gaps, and one edge that reads it."""

    def __init__(self, count: int, gaps: frozenset[int] = frozenset(), first: int = 1) -> None:
        self.log = Log(10**9)
        for n in range(1, count + 1):
            self.log.append(LogEntry(self.entry(n, n in gaps), ((("h", 5), n),), n in gaps))
        while self.log.first < first:
            self.log._evict()
        info = Info("h", "head", 5)
        node = OverlayNode(info, LinkLimits(), lambda: 1, max_frame_bytes=2**20)
        self.outboxes = Outboxes(node, self.log, ("h", 5))
        link = Link("e", local=info, limits=LinkLimits(), initiator=True, new_id=lambda: 1, now=0.0)
        self.outbox = Outbox(link, "e#1", False)
        self.outbox.room = 10**9

    def entry(self, n: int, is_gap: bool) -> bytes:
        if is_gap:
            return wire.encode(msg.Gap("h", 5, n, 5, n, [("g", 2, n)], "restart"))
        body = wire.encode(msg.Body({"n": n}, b"p" * 20))
        return wire.encode(msg.Pub(n, "h", 5, n, "p", 1, n, 0, 0, Raw(body)))

    def read(self, after: int, *filters: str, cursor: int = 3, needs: frozenset[str] = frozenset({"e#1"})) -> None:
        def needed_by(attributes: Attributes) -> set[str]:
            return set(needs) if int(attributes["n"]) % 2 else set()

        log_reader.answer_fetch(
            msg.Fetch(cursor, after, list(filters)), self.outbox, self.log, self.outboxes, needed_by
        )

    def said(self) -> list[msg.Replay | msg.Fetched]:
        buffer = self.outbox.link.buffer
        records = [msg.to_edge.decode(record) for record in buffer]
        buffer.clear()
        assert all(isinstance(record, msg.Replay | msg.Fetched) for record in records)
        return [record for record in records if isinstance(record, msg.Replay | msg.Fetched)]

    def positions(self) -> tuple[list[int], msg.Fetched]:
        *replays, last = self.said()
        assert isinstance(last, msg.Fetched)
        found = []
        for one in replays:
            assert isinstance(one, msg.Replay)
            found.append(one.item.high if isinstance(one.item, msg.Gap) else one.item.position)
        return found, last


def test_without_a_filter_it_is_what_the_link_needs():
    shelf = Shelf(10)
    shelf.read(3)
    assert shelf.positions() == ([5, 7, 9], msg.Fetched(3, 10, True))
    shelf.read(3, needs=frozenset({"other#1"}))
    assert shelf.positions() == ([], msg.Fetched(3, 10, True))


def test_with_filters_it_is_what_any_of_them_matches():
    shelf = Shelf(10)
    shelf.read(0, "[n,<,3]", "[n,>,9]")
    assert shelf.positions() == ([1, 2, 10], msg.Fetched(3, 10, True))


def test_a_gap_in_the_log_is_always_told():
    shelf = Shelf(10, gaps=frozenset({4, 8}))
    shelf.read(0, "[n,=,5]")
    assert shelf.positions() == ([4, 5, 8], msg.Fetched(3, 10, True))


def test_what_is_evicted_is_a_gap_ahead_of_the_rest():
    shelf = Shelf(10, first=7)
    shelf.read(2, "[n,>,0]")
    first = shelf.said()[0]
    assert isinstance(first, msg.Replay)
    assert isinstance(first.item, msg.Gap)
    assert (first.item.low, first.item.high, first.item.last, first.item.reason) == (3, 6, [("h", 5, 6)], "log")
    shelf.read(6, "[n,>,0]")
    assert shelf.positions()[0] == [7, 8, 9, 10]


@pytest.mark.parametrize("after", [10, 11, 1000])
def test_at_the_end_there_is_nothing_more(after: int):
    shelf = Shelf(10)
    shelf.read(after, "[n,>,0]")
    assert shelf.positions() == ([], msg.Fetched(3, after, True))


def test_a_slice_is_bounded_in_entries_and_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_reader, "FETCH_SLICE_ENTRIES", 4)
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
    monkeypatch.setattr(log_reader, "FETCH_SLICE_BYTES", 100)
    shelf = Shelf(10)
    shelf.read(0, "[n,>,0]")
    positions, fetched = shelf.positions()
    assert 1 <= len(positions) < 10
    assert (fetched.to, fetched.done) == (positions[-1], False)


def test_a_filter_that_cannot_be_read_is_refused_before_anything_is_said():
    shelf = Shelf(10)
    with pytest.raises(WireError, match="subscription"):
        shelf.read(0, "[n,>,0]", "[n,")
    assert shelf.outbox.link.buffer == []


@given(
    st.integers(0, 30), st.frozensets(st.integers(1, 30)), st.integers(1, 31), st.integers(0, 30), st.integers(1, 8),
    st.integers(1, 30),
)  # fmt: skip
def test_slice_by_slice_each_wanted_entry_comes_once_and_the_rest_is_in_gaps(
    count: int, gaps: frozenset[int], first: int, after: int, at_once: int, bound: int
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_reader, "FETCH_SLICE_ENTRIES", at_once)
        shelf = Shelf(count, gaps, min(first, count) or 1)
        after, found, at = min(after, count), [], min(after, count)
        covered: set[int] = set()
        for _ in range(100):
            shelf.read(at, f"[n,<,{bound}]")
            *replays, fetched = shelf.said()
            assert isinstance(fetched, msg.Fetched)
            for one in replays:
                assert isinstance(one, msg.Replay)
                if isinstance(one.item, msg.Gap):
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
