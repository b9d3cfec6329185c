"""Batches: what was written is read back, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from tests.core.head.durability.conftest import own

from plimsoll.core.head.durability.records import (
    HEADER_BYTES,
    DamagedBatchError,
    DiskRecord,
    EpochBegan,
    batch_at,
    batch_length,
    batches_behind,
    decode_batch,
    encode_batch,
    entries_of,
    scan,
)

RECORDS: list[DiskRecord] = [EpochBegan(5, 3, 2, "boot", True, True), own(3, 1), own(4, 2)]
BATCH = encode_batch(3, RECORDS)


def test_a_batch_is_read_back_with_the_positions_of_its_entries():
    found = scan(BATCH + encode_batch(5, [own(5, 3)]) + bytes(100), 3)
    assert [(batch.first, batch.entries) for batch in found.batches] == [(3, 2), (5, 1)]
    assert found.torn == 0, "the room behind the last batch is no torn batch"
    records = decode_batch(BATCH, found.batches[0])
    assert records == RECORDS
    assert [position for position, _ in entries_of(records, 3)] == [3, 4]
    assert batch_length(BATCH[:HEADER_BYTES]) == len(BATCH)
    assert batch_length(bytes(HEADER_BYTES)) == batch_length(b"PLB1") == 0


@pytest.mark.parametrize("kept", range(0, len(BATCH), 7))
def test_a_batch_that_was_not_written_whole_is_none(kept: int):
    found = scan(BATCH + BATCH[:kept] + bytes(40), 3)
    assert len(found.batches) == 1
    assert found.end == len(BATCH)
    assert (found.torn > 0) is (kept > 0)


@pytest.mark.parametrize("at", range(len(BATCH)))
def test_a_changed_byte_is_noticed_anywhere(at: int):
    changed = bytearray(BATCH)
    changed[at] ^= 0x10
    assert batch_at(memoryview(changed), 0) is None


def test_batches_that_do_not_follow_are_no_part_of_the_segment():
    for first in (4, 6):
        found = scan(BATCH + encode_batch(first, [own(first, first)]), 3)
        assert (found.end, found.torn > 0) == (len(BATCH), True)
    assert scan(BATCH, 4).batches == []


def test_good_batches_behind_bytes_that_are_not_are_found():
    data = bytes(7) + BATCH + b"PLB1" + bytes(9) + BATCH
    assert [batch.start for batch in batches_behind(data, 0)] == [7, 7 + len(BATCH) + 13]
    assert list(batches_behind(BATCH, 0)) == [], "only behind the place"


def test_a_batch_of_another_kind_is_damage():
    batch = scan(BATCH, 3).batches[0]
    with pytest.raises(DamagedBatchError, match="byte 0"):
        decode_batch(BATCH[:HEADER_BYTES] + b"\x93\x01\x02\x03" + BATCH[HEADER_BYTES + 4 :], batch)
