"""The log: consecutive positions, bounded bytes, and evicted entries remembered per origin."""

from __future__ import annotations

import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.head.log import ENTRY_OVERHEAD_BYTES, Log, LogEntry
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 500)), max_size=80), st.integers(1, 3000))
def test_a_log_is_bounded_and_has_every_entry_or_its_origins_last_offset(said: list[tuple[str, int]], limit: int):
    log, offsets, positions = Log(limit), dict.fromkeys("abc", 0), {}
    for head, size in said:
        offsets[head] += 1
        entry = LogEntry(b"x" * size, (((head, 1), offsets[head]),), False)
        position = log.append(entry)
        positions[position] = (head, offsets[head])
        assert position == log.last
        assert log.get(position) == entry, "the new one always stays"
        assert log.bytes <= limit or len(log) == 1
    assert log.bytes == sum(len(e.record) + ENTRY_OVERHEAD_BYTES for _, e in log.after(0))
    assert [at for at, _ in log.after(0)] == list(range(log.first, log.last + 1))
    assert len(log) == log.last - log.first + 1
    gone: dict[tuple[str, int], int] = {}
    for position, (head, offset) in positions.items():
        entry_there = log.get(position)
        if position < log.first:
            assert entry_there is None
            gone[head, 1] = offset
        else:
            assert entry_there is not None
    assert log.gone == gone


def test_a_gap_accounts_for_the_offsets_of_many_origins():
    log = Log(250)
    log.append(LogEntry(b"gap", ((("a", 1), 7), (("b", 2), 3)), True))
    log.append(LogEntry(b"pub", ((("a", 1), 8),), False))
    assert log.gone == {("a", 1): 7, ("b", 2): 3}
    log.append(LogEntry(b"gap", ((("a", 1), 5),), True))
    log.append(LogEntry(b"end", (), False))
    assert log.gone["a", 1] == 8, "a later gap of an older offset takes nothing back"


def test_what_is_lost_between_two_places_has_the_highest_offset_of_each_origin():
    log = Log(1)
    log.append(LogEntry(b"pub", ((("a", 1), 8),), False))
    log.append(LogEntry(b"gap", ((("a", 1), 5), (("b", 2), 3)), True))
    log.append(LogEntry(b"pub", ((("b", 2), 4),), False))
    log.append(LogEntry(b"end", (), False))
    assert log.lost(1, 2) == {("a", 1): 8, ("b", 2): 3}, "a gap that names less would be taken for one of what has come"


def test_after_begins_where_it_is_told_or_where_the_log_does():
    log = Log(10**6)
    for i in range(5):
        log.append(LogEntry(b"%d" % i, (), False))
    assert [at for at, _ in log.after(3)] == [4, 5]
    assert [at for at, _ in log.after(5)] == []
    assert [at for at, _ in log.after(9)] == []
    assert (log.get(0), log.get(6)) == (None, None)


@pytest.mark.parametrize("size", [0, 50, 300, 1000, 20_000])
def test_the_bytes_of_a_log_are_no_less_than_the_memory_of_its_entries(size: int):
    """Each object once, as Python and its allocator count them: what a log may take is what `log_bytes` says."""
    log = Log(2**22)
    body = wire.encode(msg.Body({"class": "STOCK"}, bytes(size)))
    for n in range(1, 20_000):
        pub = msg.Pub(n, "head-0", 2**50 + 1, 2**31 + n, "publisher", 2**50, n, 0, 2**50 + n, msgspec.Raw(body))
        log.append_publication(wire.encode(pub), ("-".join(("head", "0")), pub.epoch), pub.offset)
    assert _memory(log._entries, set()) <= log.bytes <= log.limit_bytes


def _memory(one: object, seen: set[int]) -> int:
    if id(one) in seen:
        return 0
    seen.add(id(one))
    rounded = -(-(sys.getsizeof(one) + 8) // 16) * 16
    return rounded + (sum(_memory(part, seen) for part in one) if isinstance(one, list | tuple) else 0)


def test_a_record_is_kept_without_what_its_encoder_has_allocated_beside_it():
    log, record = Log(10_000), wire.encode(msg.Body({"class": "STOCK"}, bytes(600)))
    log.append_publication(record, ("h", 1), 1)
    kept = log.get(1)
    assert kept is not None
    assert kept.record == record
    assert kept.record is not record
