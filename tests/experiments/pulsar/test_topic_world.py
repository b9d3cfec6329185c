"""One world of topics for policies of any kind: rates, sizes, where units and whole subscribers begin, and figures."""

from __future__ import annotations

import pytest

from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.experiments.pulsar.policies import pulsar
from plimsoll.experiments.pulsar.topic_world import (
    TopicSubscriber,
    TopicWorld,
    delivery_bytes,
    equal_bundles,
    run_topics,
    topics_in,
)
from plimsoll.simulator.queueing.traffic import RateStep


def world() -> TopicWorld:
    """Two bundles of one topic each: one at a, 0.5 of its output, and one at b, half of that."""
    bundles = equal_bundles(2)
    (hot,), (cold,) = (topics_in(bundle, 1, "t") for bundle in bundles)
    subscribers = [
        TopicSubscriber(f"s{n}-{topic}", (topic,), edge) for n in range(2) for topic, edge in ((hot, "a"), (cold, "b"))
    ]
    rates = {hot: (RateStep(0.0, 20.0),), cold: (RateStep(0.0, 10.0),)}
    bandwidth = round(20.0 * 2 * delivery_bytes("t1") / 0.5)
    return TopicWorld(("a", "b"), rates, subscribers, bandwidth, 60.0, 1.0, dict(zip(bundles, "ab", strict=True)))


@pytest.mark.parametrize("policy", [None, pulsar(2, 1, shedding={"strategy": "None"})])
def test_loads_are_those_of_topics_under_a_policy_with_and_without_bundles(policy):
    run = run_topics(world(), policy, "run", 1)
    assert run.loads.means(*run.steady) == pytest.approx([0.5, 0.25], rel=0.02)
    assert run.moved == 0
    assert run.max_load == pytest.approx(0.5, rel=0.02)
    assert run.cov == pytest.approx(1 / 3, rel=0.05)
    assert run.row()["delivered"] == pytest.approx(2 * run.published, abs=150)
    assert run.highest[-1][1] == pytest.approx(0.5, rel=0.05)


def test_topics_lie_in_their_bundle():
    bundle = equal_bundles(8)[3]
    found = topics_in(bundle, 5, "x")
    assert len(set(found)) == 5
    assert all(bundle.holds(topic_hash(topic)) for topic in found)
