"""The paper's hardware and traffic as resources and plans."""

import pytest

from plimsoll.experiments.padres import chain, local
from plimsoll.experiments.stock_world import PolicyPlan, resources, traffic


def test_hardware_scales_with_megahertz():
    """PADRES 2006, 6.2: B2 has twice the performance of B1."""
    fleet = resources(local.clusters(local.EDGES), PolicyPlan())
    b1, b2 = (fleet.profiles[name].spec for name in ("b1", "b2"))
    assert b1.emulation is not None
    assert b2.emulation is not None
    assert b1.emulation.base.seconds == pytest.approx(2 * b2.emulation.base.seconds)
    assert b1.bandwidth.output_bytes_per_second is not None
    assert int(b1.bandwidth.output_bytes_per_second.value) == 75_000


def test_the_plan_is_that_of_the_demo_in_the_papers_time(streams, scenario):
    plan = traffic(scenario, streams, "quotes")
    assert len(plan.publishers) == 12
    assert len(plan.subscribers) == 120
    assert all(one.first_seconds >= 5.0 for one in plan.publishers)
    faster = [one for one in plan.publishers if len(one.rates) == 2]
    assert len(faster) == 6
    assert all(one.rates[1].per_second == pytest.approx(2 * one.rates[0].per_second) for one in faster)


def test_clusters_form_a_chain():
    fleet = resources(chain.clusters(3), PolicyPlan(global_seconds=30.0))
    assert [[n.name for n in fleet.clusters[c].spec.neighbors] for c in ("c1", "c2", "c3")] == [[], ["c1"], ["c2"]]
    assert fleet.fleet.spec.global_balancing.enabled
