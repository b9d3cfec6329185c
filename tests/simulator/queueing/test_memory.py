"""What a broker of the model takes in memory."""

from __future__ import annotations

import pytest

from plimsoll.simulator.queueing.memory import PROCESS_BYTES, SUBSCRIBER_BYTES, SUBSCRIPTION_BYTES, memory_ratio


def test_memory_is_the_process_those_served_and_what_waits_over_the_limit():
    limit = 2 * PROCESS_BYTES
    assert memory_ratio(limit, 0, 0, 0.0) == 0.5
    more = memory_ratio(limit, 100, 300, 5_000.0) - 0.5
    assert more * limit == pytest.approx(100 * SUBSCRIBER_BYTES + 300 * SUBSCRIPTION_BYTES + 5_000.0)
