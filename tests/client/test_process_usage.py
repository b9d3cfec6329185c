"""What a process uses: shares between 0 and 1 that follow what it does."""

from __future__ import annotations

import time

from plimsoll.client.process_usage import OwnUsage, memory_limit, resident_bytes


def test_work_shows_as_processor_time() -> None:
    usage = OwnUsage()
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    cpu, memory = usage()
    assert 0 < cpu <= 1
    assert 0 < memory < 1


def test_memory_is_a_share_of_what_it_may_have() -> None:
    assert 1024 * 1024 < resident_bytes() < memory_limit()
