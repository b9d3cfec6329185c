"""What a balancing edge adds to its load reports."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import resume

from plimsoll.core.metering.meter import LoadMeter


def served(counts: dict[int, int]) -> LoadMeter:
    """An interval with these publications at each number of subscriptions: 2 ms, and 1 ms for each subscription."""
    meter = LoadMeter()
    for count, publications in counts.items():
        seconds = publications * (0.002 + 0.001 * count)
        meter.steady.add(publications, count, publications, seconds)
        meter.served, meter.service_seconds = meter.served + publications, meter.service_seconds + seconds
    return meter


def test_reports_have_the_line_of_the_delay_over_subscriptions(balanced: Any):
    """First with one subscription, then with three; the interval between them has seen both."""
    fleet = balanced(2)
    agent = fleet.edge("e1").balancing_agent
    assert agent is not None
    assert "match_seconds_per_subscription" not in agent.measured(LoadMeter())
    for counts in ({1: 500}, {1: 100, 3: 400}, {3: 500}):
        found = agent.measured(served(counts))
    assert found["match_subscription_base_seconds"] == pytest.approx(0.002, rel=0.02)
    assert found["match_seconds_per_subscription"] == pytest.approx(0.001, rel=0.02)


def test_those_who_joined_before_the_first_publication_are_no_other_number(balanced: Any):
    """A fleet that has just started: 24 subscribers join, and then 60 publications a second take 4.8 ms each.

    The first interval begins with no subscription. Taken as half of 24, it makes a base of all that a publication
    takes: by that line nothing is relieved by those who leave, and a session moves all subscribers or none.
    """
    fleet = balanced(2)
    client, agent = fleet.client("c", "h", "e1"), fleet.edge("e1").balancing_agent
    assert agent is not None
    agent.measured(LoadMeter())
    client.tell("e1", resume(24, "s", *(f"[n,>,{number}]" for number in range(24))))
    fleet.run(0.5)
    for publications in (40, 75, 75):
        meter = LoadMeter()
        meter.steady.add(publications, 24, 24 * publications, publications * 0.0048)
        found = agent.measured(meter)
        assert found["match_subscription_base_seconds"] == pytest.approx(0.0, abs=1e-6)
        assert found["match_seconds_per_subscription"] == pytest.approx(0.0002)
