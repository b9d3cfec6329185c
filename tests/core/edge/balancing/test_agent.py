"""What a balancing edge adds to its load reports."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import resume

from plimsoll.core.metering.meter import LoadMeter


def test_reports_have_the_line_of_the_delay_over_subscriptions(balanced: Any):
    """2 ms of a publication and 1 ms for each subscription: first with one, then with three."""
    fleet = balanced(2)
    client, agent = fleet.client("c", "h", "e1"), fleet.edge("e1").balancing_agent
    assert agent is not None
    assert "match_seconds_per_subscription" not in agent.measured(LoadMeter())
    names = iter("stuv")
    for count in (1, 3):
        texts = [f"[n,>,{number}]" for number in range(count - len(agent.host.subscription_table.index))]
        client.tell("e1", resume(count, next(names), *texts))
        fleet.run(0.5)
        assert len(agent.host.subscription_table.index) == count
        for _ in range(2):  # the first interval has seen both numbers
            agent.measured(LoadMeter())
            meter = LoadMeter(served=500, service_seconds=500 * (0.002 + 0.001 * count))
            found = agent.measured(meter)
    assert found["match_subscription_base_seconds"] == pytest.approx(0.002, rel=0.02)
    assert found["match_seconds_per_subscription"] == pytest.approx(0.001, rel=0.02)
