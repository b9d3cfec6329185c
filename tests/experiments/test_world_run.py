"""A run leaves load series, delays, sessions and owners behind."""

import pytest

from plimsoll.experiments.padres import local
from plimsoll.experiments.stock_world import PolicyPlan, resources, traffic
from plimsoll.experiments.world_run import run_world, thinned


def test_a_run_can_be_analysed(streams, scenario):
    fleet = resources(local.clusters(local.EDGES), PolicyPlan())
    run = run_world(fleet, traffic(scenario, streams, "quotes"), scenario.seconds, 1)
    assert len(run.owners) == 120
    assert run.delivered > 0
    assert run.edges == ["b1", "b2", "b3", "b4"]
    assert len(run.column("b1", "input_utilization")) == pytest.approx(300, abs=2)
    assert sum(each.subscribers for each in run.sessions) > 0
    row = run.row("this one")
    assert (row["run"], row["delivered"], row["sessions"]) == ("this one", run.delivered, len(run.sessions))
    assert row["moved"] == sum(each.subscribers for each in run.sessions)
    assert len(run.balance("padres", scenario, fleet).samples) > 10


def test_thinning_keeps_the_mean():
    points = [(float(n), float(n % 7)) for n in range(1000)]
    thin = thinned(points, 100)
    assert len(thin) == 100
    assert sum(v or 0.0 for _, v in thin) / 100 == pytest.approx(sum(v for _, v in points) / 1000)
    assert thinned([]) == []
