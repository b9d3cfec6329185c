"""What is noted of a log: how long it holds output, and its syncs."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from bench.broker import held_times
from bench.broker.held_times import HeldTimes

from plimsoll.broker.storage.log_disk import LogDisk, RoundOutput
from plimsoll.core.config import BrokerConfig, DiskLog, LinkSecurity
from plimsoll.core.head.machine import Head

CONFIG = BrokerConfig(
    name="h", role="head", cluster="c", data="tcp://127.0.0.1:0", control="tcp://127.0.0.1:0",
    security=LinkSecurity(plain=True),
)  # fmt: skip


def test_output_counts_from_the_end_of_its_round_until_it_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    disk = LogDisk(DiskLog(directory=str(tmp_path / "log"), size_bytes=1 << 20), "h")
    head = Head(CONFIG, 1, itertools.count(1).__next__, disk.recover())
    disk.attach(head, 0.0)
    disk.end_round(RoundOutput([], [], []), 0.0)
    disk.flush()
    times, clock = HeldTimes(disk), itertools.count()
    monkeypatch.setattr(held_times, "monotonic", lambda: float(next(clock)))
    disk.end_round(RoundOutput([], [], [("peer", b"heartbeat")]), 0.0)  # nothing was logged, so nothing is waited for
    assert len(disk.released()) == 1
    disk.folder.sync()
    assert times.figures() == {
        "held_p50_ms": 1000.0,
        "held_p99_ms": 1000.0,
        "sync_p50_ms": 1000.0,
        "sync_p99_ms": 1000.0,
    }
    assert times.figures() == {}
    disk.close()
