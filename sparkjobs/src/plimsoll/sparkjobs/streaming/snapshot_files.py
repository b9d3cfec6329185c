"""Where snapshots go: one file for each batch, and `latest.json`, which only moves forward.

A batch may be done twice, by a driver that was killed between writing and committing. It then writes its own file again
and `latest.json` not backwards, so doing it twice changes nothing for a reader. Files are put in place whole.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from plimsoll.telemetry.schema import LATEST, MAJOR
from plimsoll.telemetry.snapshot import SnapshotError, TelemetrySnapshot, decode_snapshot, encode_snapshot

LIVE: Final = f"agg/v{MAJOR}/live"
KEEP_BATCHES: Final = 720
"""Files of batches that are kept: an hour of them at a trigger of five seconds, for whoever compares."""


def batch_path(root: Path, batch: int) -> Path:
    return root / LIVE / f"batch={batch}.json"


def write_snapshot(path: Path, snapshot: TelemetrySnapshot) -> None:
    """The whole file or none of it; on the disk before it has its name."""
    _write_file(path, encode_snapshot(snapshot))


def _write_file(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def publish_snapshot(root: Path, snapshot: TelemetrySnapshot) -> bool:
    """Write a batch's snapshot; whether `latest.json` is it now, which it is unless that was ahead."""
    data = encode_snapshot(snapshot)
    _write_file(batch_path(root, snapshot.batch), data)
    batch_path(root, snapshot.batch - KEEP_BATCHES).unlink(missing_ok=True)
    if _is_ahead(root / LATEST, snapshot):
        return False
    _write_file(root / LATEST, data)
    return True


class _SnapshotOrder(Struct):
    """Of a snapshot what orders it, which is read at a hundredth of the cost of all of it."""

    run_us: int
    batch: int


def _is_ahead(path: Path, snapshot: TelemetrySnapshot) -> bool:
    """Whether what is there comes after this; what only says so and is not whole does not."""
    try:
        data = path.read_bytes()
        said = msgspec.json.decode(data, type=_SnapshotOrder)
        return (said.run_us, said.batch) > snapshot.order and decode_snapshot(data).order > snapshot.order
    except (FileNotFoundError, msgspec.MsgspecError, SnapshotError):
        return False
