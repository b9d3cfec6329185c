"""The files of snapshots; `latest.json` never moves back."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.sparkjobs.traces import read_latest

from plimsoll.sparkjobs.streaming.snapshot_files import (
    KEEP_BATCHES,
    batch_path,
    publish_snapshot,
    write_snapshot,
)
from plimsoll.telemetry.schema import LATEST
from plimsoll.telemetry.snapshot import ReportCounts, TelemetrySnapshot, decode_snapshot

ONE = TelemetrySnapshot(
    source="spark", fleet="f", run_us=5, batch=7, window_end_us=10, written_us=11, windows_seconds=[10],
    seen_seconds=60, seen=0, expected=0, counts=ReportCounts(), clusters={},
)  # fmt: skip


def of(run_us: int, batch: int) -> TelemetrySnapshot:
    return msgspec.structs.replace(ONE, run_us=run_us, batch=batch)


@pytest.mark.parametrize(
    ("first", "second", "moves"),
    [((5, 7), (5, 8), True), ((5, 7), (5, 7), True), ((5, 7), (5, 6), False), ((5, 7), (4, 9), False),
     ((5, 7), (6, 0), True)],
)  # fmt: skip
def test_the_latest_moves_forward_only(tmp_path: Path, first: tuple[int, int], second: tuple[int, int], moves: bool):
    assert publish_snapshot(tmp_path, of(*first))
    assert publish_snapshot(tmp_path, of(*second)) is moves
    latest = read_latest(tmp_path)
    assert latest is not None
    assert latest.order == (second if moves else first)
    assert decode_snapshot(batch_path(tmp_path, second[1]).read_bytes()).order == second


def test_a_latest_that_cannot_be_read_is_replaced(tmp_path: Path):
    assert read_latest(tmp_path) is None
    publish_snapshot(tmp_path, of(9, 9))
    (tmp_path / LATEST).write_bytes(b'{"schema": "plimsoll.snapshot/1", "batch":')
    assert read_latest(tmp_path) is None
    assert publish_snapshot(tmp_path, of(1, 1))


def test_a_damaged_latest_with_a_newer_order_is_replaced(tmp_path: Path):
    publish_snapshot(tmp_path, of(5, 7))
    path = tmp_path / LATEST
    path.write_bytes(path.read_bytes().replace(b'"batch":7', b'"batch":9'))
    assert publish_snapshot(tmp_path, of(5, 8))
    latest = read_latest(tmp_path)
    assert latest is not None
    assert latest.order == (5, 8)


def test_old_batches_are_deleted_and_no_partial_file_stays(tmp_path: Path):
    publish_snapshot(tmp_path, of(5, 0))
    publish_snapshot(tmp_path, of(5, KEEP_BATCHES))
    assert [path.name for path in batch_path(tmp_path, 0).parent.iterdir()] == [f"batch={KEEP_BATCHES}.json"]


def test_a_snapshot_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "latest.json"
    write_snapshot(path, ONE)
    before = path.read_bytes()

    def fails(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fails)
    with pytest.raises(OSError, match="No space"):
        write_snapshot(path, of(6, 6))
    assert path.read_bytes() == before
