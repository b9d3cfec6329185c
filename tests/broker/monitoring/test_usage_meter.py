"""Use of CPU and memory, as ratios to the limits of a profile."""

from __future__ import annotations

import time

from plimsoll.broker.monitoring.usage_meter import BOUNDS_SECONDS, RoundDurations, UsageMeter, memory_bytes
from plimsoll.core.config import BrokerHardware


def test_memory_is_what_this_process_holds():
    before = memory_bytes()
    held = bytearray(64 * 1024 * 1024)
    assert before + 60 * 1024 * 1024 < memory_bytes() < 16 * 1024**3
    del held


def test_use_is_measured_from_one_sample_to_the_next():
    before = time.process_time()
    meter = UsageMeter(BrokerHardware(cpu_millicores=500, memory_bytes=1024**3), 100.0)
    after = time.process_time()
    while time.process_time() < after + 0.05:
        pass
    meter.note_lag(0.002)
    meter.note_lag(0.001)
    at_least = time.process_time() - after
    usage = meter.sample(101.0)
    # Half a core is the limit, so that a core's time is used twice as fast as it may be.
    assert 2 * at_least <= usage.cpu_ratio <= 2 * (time.process_time() - before)
    assert usage.memory_ratio == usage.memory_bytes / 1024**3
    assert usage.lag_seconds == 0.002
    assert meter.sample(1101.0).cpu_ratio < usage.cpu_ratio
    assert meter.sample(1102.0).lag_seconds == 0.0


def test_durations_are_counted_by_the_bound_that_they_do_not_exceed():
    durations = RoundDurations()
    for seconds in (0.0, BOUNDS_SECONDS[0], 0.0002, BOUNDS_SECONDS[-1], 7.0):
        durations.observe(seconds)
    assert durations.counts == [2, 1, *[0] * (len(BOUNDS_SECONDS) - 3), 1, 1]
    assert durations.seconds == sum((0.0, BOUNDS_SECONDS[0], 0.0002, BOUNDS_SECONDS[-1], 7.0))
    copied = durations.copy()
    durations.observe(0.0)
    assert (copied.counts[0], durations.counts[0]) == (2, 3)
