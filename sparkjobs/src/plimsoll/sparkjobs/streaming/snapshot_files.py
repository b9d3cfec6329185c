"""The files of snapshots: one for each batch, and `latest.json`, which only moves forward.

A batch is run twice if the driver was killed between writing and committing it. It then writes the same file again and
does not move `latest.json` back, so a reader sees no difference. Files are replaced atomically.
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
"""Files of batches that are kept, for comparison with the oracle: an hour of them at a trigger of five seconds."""


def batch_path(root: Path, batch: int) -> Path:
    return root / LIVE / f"batch={batch}.json"


def write_snapshot(path: Path, snapshot: TelemetrySnapshot) -> None:
    """Replace the file atomically; its data is on disk before the rename."""
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
    """Write a batch's snapshot; returns whether it is `latest.json` now. It is not if that one is newer."""
    data = encode_snapshot(snapshot)
    _write_file(batch_path(root, snapshot.batch), data)
    batch_path(root, snapshot.batch - KEEP_BATCHES).unlink(missing_ok=True)
    if _is_ahead(root / LATEST, snapshot):
        return False
    _write_file(root / LATEST, data)
    return True


class _SnapshotOrder(Struct):
    """The fields that order snapshots: reading them alone costs a hundredth of decoding all."""

    run_us: int
    batch: int


def _is_ahead(path: Path, snapshot: TelemetrySnapshot) -> bool:
    """Whether the file has a newer snapshot. A damaged file is never newer, whatever its order fields are."""
    try:
        data = path.read_bytes()
        order = msgspec.json.decode(data, type=_SnapshotOrder)
        return (order.run_us, order.batch) > snapshot.order and decode_snapshot(data).order > snapshot.order
    except (FileNotFoundError, msgspec.MsgspecError, SnapshotError):
        return False
