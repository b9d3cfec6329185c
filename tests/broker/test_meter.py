"""Use of CPU and memory, as ratios to the limits of a profile."""

from __future__ import annotations

import time

from plimsoll.broker.meter import Meter, memory_bytes
from plimsoll.core.config import Hardware


def test_memory_is_what_this_process_holds():
    before = memory_bytes()
    held = bytearray(64 * 1024 * 1024)
    assert before + 60 * 1024 * 1024 < memory_bytes() < 16 * 1024**3
    del held


def test_use_is_measured_from_one_sample_to_the_next():
    meter = Meter(Hardware(cpu_millicores=500, memory_bytes=1024**3), time.monotonic())
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    meter.late(0.002)
    meter.late(0.001)
    usage = meter.sample(time.monotonic())
    # Half a core is the limit, so a core that is busy throughout is a ratio of 2.
    assert 0 < usage.cpu_ratio <= 2.5
    assert usage.memory_ratio == usage.memory_bytes / 1024**3
    assert usage.lag_seconds == 0.002
    assert meter.sample(time.monotonic() + 1000).cpu_ratio < usage.cpu_ratio
    assert meter.sample(time.monotonic()).lag_seconds == 0.0
