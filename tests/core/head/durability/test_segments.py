"""Seals: what they say, when they are not good, and that a segment goes without one."""

from __future__ import annotations

import pytest
from tests.core.head.durability.conftest import EMPTY, MemoryFiles, own

from plimsoll.core.head.durability.records import DamagedBatchError
from plimsoll.core.head.durability.segments import (
    Segment,
    check_sealed,
    first_batch,
    first_of,
    name_of,
    read_seal,
    seal,
)
from plimsoll.core.head.durability.store import LogStore


@pytest.fixture
def sealed(files: MemoryFiles) -> Segment:
    """The first segment of a log that has a second one."""
    store = LogStore(files, "h", 1 << 20, 4096)
    while len(store.segments) < 2:
        if store.is_full:
            store.begin(EMPTY)
        store.write([own(store.position + 1, store.position + 1)])
    return store.segments[0]


def test_a_seal_says_all_that_a_recovery_needs(files: MemoryFiles, sealed: Segment):
    found = read_seal(files, sealed.name)
    assert found is not None
    segment, beyond = found
    assert (segment.first, segment.end, segment.checksum) == (1, sealed.end, sealed.checksum)
    assert (segment.positions, segment.starts) == (sealed.positions, sealed.starts)
    assert (segment.is_sealed, segment.is_checked) == (True, False)
    assert name_of(beyond) in files.files, "the next segment goes on there"
    assert files.size(sealed.name) == sealed.end, "the room behind it was given back"
    assert sum(check_sealed(files, sealed.name, sealed.checksum)) < sealed.end


@pytest.mark.parametrize("back", range(1, 40, 3))
def test_a_seal_with_a_changed_byte_is_none(files: MemoryFiles, sealed: Segment, back: int):
    files.files[sealed.name][-back] ^= 1
    assert read_seal(files, sealed.name) is None
    with pytest.raises(DamagedBatchError, match="seal"):
        list(check_sealed(files, sealed.name, sealed.checksum))


def test_the_seal_of_another_segment_is_none(files: MemoryFiles, sealed: Segment):
    files.files[name_of(2)] = files.files[sealed.name]
    assert read_seal(files, name_of(2)) is None
    files.files[name_of(3)] = bytearray(4)
    assert read_seal(files, name_of(3)) is None


def test_a_segment_without_room_for_a_seal_has_none(files: MemoryFiles):
    files.files[name_of(1)] = bytearray(100)
    segment = Segment(name_of(1), 1, end=90)
    seal(files, segment, 5)
    assert (segment.end, segment.is_sealed, files.files[name_of(1)]) == (90, False, bytearray(100))


def test_a_name_is_that_of_a_position():
    assert first_of(name_of(17)) == 17
    with pytest.raises(OSError, match=r"move it out of the folder"):
        first_of("notes.log")


def test_the_first_batch_of_a_damaged_segment_is_none(files: MemoryFiles, sealed: Segment):
    found = first_batch(files, sealed.name)
    assert found is not None
    assert found[1] == [EMPTY]
    files.files[sealed.name][25] ^= 1
    assert first_batch(files, sealed.name) is None
