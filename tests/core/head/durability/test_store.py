"""Segments: written, found again after every kind of end, read back, removed by size."""

from __future__ import annotations

import tracemalloc

import pytest
from tests.core.head.durability.conftest import BEGAN, EMPTY, MemoryFiles, own

from plimsoll.core.head.durability.records import Checkpoint, DamagedBatchError
from plimsoll.core.head.durability.recovery import Recovery
from plimsoll.core.head.durability.segments import INDEX_BYTES, Segment, check_sealed
from plimsoll.core.head.durability.store import SEGMENT_BYTES, LogStore, UnreadableLogError


def store_of(files: MemoryFiles, size: int = 1 << 20, segment: int = 4096) -> tuple[LogStore, Recovery]:
    store = LogStore(files, "h", size, segment)
    return store, store.recover()


def fill(files: MemoryFiles, count: int, size: int = 1 << 20, segment: int = 4096) -> LogStore:
    """A log with this many entries, one a batch, each safe before the next; its checkpoints are those of a real one."""
    store, found = store_of(files, size, segment)
    state = found.state
    for position in range(store.position + 1, store.position + count + 1):
        if store.is_full:
            offsets = [(*origin, offset) for origin, offset in state.offsets.items()]
            store.remove_old()
            store.begin(Checkpoint(list(state.epochs), offsets, list(state.publishers.values()), [], []))
        records = [*(BEGAN if position == 1 else []), own(position, position)]
        store.write(records)
        store.safe(store.place)
        state.apply(records)
    return store


def positions(store: LogStore, start: int, most: int = 1 << 20) -> list[int]:
    found = []
    while batch := store.read(start, most):
        found += [position for position, _ in batch]
        start = batch[-1][0] + 1
    return found


def test_what_was_written_is_found_again_and_goes_on(files: MemoryFiles):
    fill(files, 100)
    store, found = store_of(files)
    assert len(store.segments) > 2, "a test of one segment tests little"
    assert (store.first, store.position, found.state.position) == (1, 100, 100)
    assert found.is_whole
    assert (found.torn_bytes, found.damage) == (0, ())
    assert found.state.publishers["p"].last_seq == 100
    fill(files, 50)
    store, found = store_of(files)
    assert positions(store, 1) == list(range(1, 151))


def test_a_new_log_is_empty(files: MemoryFiles):
    store, found = store_of(files)
    assert (store.first, store.position, found.segments) == (1, 0, 0)
    assert store.read(1, 100) == []
    assert store.offsets_before() == {}


@pytest.mark.parametrize("most", [1, 100, 10_000])
@pytest.mark.parametrize("start", [1, 2, 17, 77, 100])
def test_any_position_is_read_in_bounded_slices(files: MemoryFiles, start: int, most: int):
    store = fill(files, 100)
    assert positions(store, start, most) == list(range(start, 101))
    assert len(store.read(start, most)) <= 1 + most // 40


def test_every_torn_end_is_cut_off(files: MemoryFiles):
    store = fill(files, 20)
    last, end = store.segments[-1], store.segments[-1].end
    store.write([own(21, 21)])
    whole = bytes(files.files[last.name][: last.end])
    for kept in range(end, len(whole.rstrip(b"\0"))):
        files.files[last.name][:] = whole[:kept] + bytes(60)
        again, found = store_of(files)
        assert (again.position, found.damage, found.is_whole) == (20, (), True)
        assert (found.torn_bytes > 0) is (kept > end)


def test_a_segment_that_had_only_begun_is_removed(files: MemoryFiles):
    store = fill(files, 100)
    store.begin(EMPTY)
    name = store.segments[-1].name
    files.files[name][:] = files.files[name][:10]
    again, found = store_of(files)
    assert name not in files.files
    assert (again.position, found.is_whole, found.damage) == (100, True, ())


@pytest.mark.parametrize("begun", [1, 2])
def test_a_torn_end_before_segments_that_had_only_begun_is_cut_off(files: MemoryFiles, begun: int):
    store = fill(files, 100)
    last, end = store.segments[-1], store.segments[-1].end
    store.write([own(101, 101)])
    files.files[last.name][end + 20 :] = bytes(len(files.files[last.name]) - end - 20)
    for position in range(102, 102 + begun):
        files.create(f"{position:020d}.log", 4096)  # made, and its checkpoint lost with all that was not synced
    again, found = store_of(files)
    assert (again.first, again.position, found.is_whole, found.damage) == (1, 100, True, ())
    assert found.torn_bytes > 0
    assert sorted(files.files)[-1] == last.name


def test_damage_in_an_older_segment_gives_up_what_is_before_its_end(files: MemoryFiles):
    store = fill(files, 100)
    first, second = store.segments[0], store.segments[1]
    files.files[first.name][first.end // 2] ^= 1
    again, found = store_of(files)
    assert (again.first, again.position, found.damage) == (1, 100, ()), "its seal is good"
    assert first.name in [segment.name for segment in again.unchecked()]
    with pytest.raises(DamagedBatchError, match="checksum"):
        list(check_sealed(files, first.name, first.checksum))
    assert again.checked(first.name, "its checksum is not that of its seal")
    assert (again.first, first.name in files.files) == (second.first, False)
    assert again.offsets_before() == {("h", 1): second.first - 1}
    assert not again.checked(second.name, "")
    assert second.name not in [segment.name for segment in again.unchecked()]


def test_damage_in_an_older_segment_without_a_seal_is_found_at_once(files: MemoryFiles):
    store = fill(files, 100)
    first, second = store.segments[0], store.segments[1]
    files.files[first.name][first.end - 4] ^= 1  # the seal
    files.files[first.name][first.end // 2] ^= 1
    again, found = store_of(files)
    assert (again.first, again.position, found.is_whole) == (second.first, 100, True)
    assert first.name in found.damage[0]
    assert first.name not in files.files
    assert again.offsets_before() == {("h", 1): second.first - 1}


def test_an_oldest_segment_that_does_not_say_what_came_before_is_given_up(files: MemoryFiles):
    store = fill(files, 100)
    first, second = store.segments[0], store.segments[1]
    files.files[first.name][30] ^= 1
    again, found = store_of(files)
    assert (again.first, found.is_whole, len(found.damage)) == (second.first, True, 1)


def test_a_segment_that_is_gone_gives_up_those_before_it(files: MemoryFiles):
    store = fill(files, 100)
    files.remove(store.segments[1].name)
    again, found = store_of(files)
    assert again.first == store.segments[2].first
    assert "are missing" in found.damage[0]


def test_damage_in_the_last_segment_makes_the_log_unsure(files: MemoryFiles):
    store = fill(files, 100)
    last = store.segments[-1]
    assert 100 - last.first > 4
    files.files[last.name][last.end // 2] ^= 1
    again, found = store_of(files)
    assert last.first < again.position + 1 < 100
    assert (found.is_whole, len(found.damage)) == (False, 1)
    assert positions(again, 1) == list(range(1, again.position + 1))


def test_a_last_segment_whose_beginning_is_damaged_is_no_empty_one(files: MemoryFiles):
    store = fill(files, 100)
    last = store.segments[-1]
    files.files[last.name][30] ^= 1
    again, found = store_of(files)
    assert (again.position, found.is_whole) == (last.first - 1, False)
    assert "byte 0" in found.damage[0]


def test_a_log_of_which_nothing_is_left_goes_on_above_its_positions(files: MemoryFiles):
    store = fill(files, 100)
    for segment in store.segments:
        files.files[segment.name][30] ^= 1
    again, found = store_of(files)
    assert (again.segments, found.is_whole) == ([], False)
    assert found.state.position == again.position


def test_damage_that_is_met_while_reading_is_told_with_the_place_behind_it(files: MemoryFiles):
    store = fill(files, 100)
    first = store.segments[0]
    files.files[first.name][first.end // 2] ^= 1
    with pytest.raises(UnreadableLogError) as caught:
        positions(store, 1)
    assert caught.value.next_position == store.segments[1].first
    assert positions(store, caught.value.next_position) == list(range(store.segments[1].first, 101))
    assert len(store.read_faults) == 1


def test_the_oldest_segments_go_and_their_offsets_stay(files: MemoryFiles):
    store = fill(files, 1000, size=40_000)
    assert store.bytes <= 40_000 + store.segment_bytes
    assert 1 < store.first < 900
    assert store.offsets_before() == {("h", 1): store.first - 1}
    again, _ = store_of(files, size=40_000)
    assert positions(again, again.first) == list(range(again.first, 1001))


def test_a_strange_file_is_named(files: MemoryFiles):
    files.create("notes.log", 3)
    with pytest.raises(OSError, match=r"notes\.log is not a segment"):
        store_of(files)
    assert "notes.log" in files.files


def test_the_index_of_a_large_log_is_small():
    """100 GiB, by what its segments note of each 256 KiB."""
    gib = 1 << 30
    tracemalloc.start()
    try:
        segments = []
        for number in range(100 * gib // SEGMENT_BYTES):
            segment = Segment(f"{number:020d}.log", number * 100_000 + 1)
            for start in range(0, SEGMENT_BYTES, INDEX_BYTES):
                segment.note(segment.first + start // 600, start)
            segments.append(segment)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(segment.starts) for segment in segments) == 100 * gib // INDEX_BYTES
    assert taken < 12_000_000, taken


def test_the_bytes_behind_a_position_are_counted_by_segments(files: MemoryFiles):
    store = fill(files, 200)
    assert store.bytes_after(0) == store.bytes
    behind = [store.bytes_after(position) for position in range(201)]
    assert behind == sorted(behind, reverse=True)
    assert store.bytes_after(200) <= store.segments[-1].end
