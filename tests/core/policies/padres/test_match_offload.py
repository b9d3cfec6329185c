"""The match offload algorithm on fleets made by hand. PADRES 2006, 5.2."""

from __future__ import annotations

import pytest
from tests.core.policies.hand import Broker, World, named

from plimsoll.core.policies.model.load import Resource
from plimsoll.core.policies.model.plan import BrokerAction, OffloadPlan
from plimsoll.core.policies.padres import Padres


def plan(world: World, *overloaded: Resource) -> OffloadPlan:
    action = BrokerAction("t", "match", 1.0, overloaded)
    return Padres().plan(world.load("s"), world.load("t"), world.profile("s", "t"), action)


def counts(found: OffloadPlan) -> list[tuple[str, int]]:
    return [(move.key, len(move.subscribers)) for move in found.moves]


def test_what_flows_least_goes_first():
    """5.2: ascending output. 8 subscriptions at 0.01 s against none: 4 must go, 2 of `none` and 2 of `low`."""
    served = {"high": named("h", 4), "low": named("l", 2), "none": named("n", 2)}
    world = World(3, {"high": 0b110, "low": 1, "none": 0}, {"s": Broker(served=served), "t": Broker()})
    found = plan(world)
    assert counts(found) == [("none", 2), ("low", 2)]
    assert found.ended == "Balanced"
    assert found.predicted_source.match_delay_seconds == pytest.approx(0.04)
    assert [(each.key, each.kind) for each in found.rejected] == [("high", "NotNeeded")]


def test_of_equals_what_brings_the_target_less_input_goes_first():
    """5.2: `a` and `b` have the same output, and t takes in what `b` wants already. 5 against 1: 2 must go."""
    brokers = {
        "s": Broker(served={"a": named("a", 3), "b": named("b", 2)}),
        "t": Broker(served={"b": named("c", 1)}),
    }
    found = plan(World(2, {"a": 1, "b": 2}, brokers))
    assert counts(found) == [("b", 2)]
    assert found.predicted_target.input_rate == pytest.approx(1.0)


def test_an_overloaded_source_is_relieved_and_not_balanced():
    """5.2: until processor, input and memory are below 0.9, safely: at 0.85 or less, as far below as 0.95 is above.

    s: 4/s x 30 x 0.01 = 1.2; 4 x 0.01 x 21 = 0.84. So 9 go to t, ten times as fast; to balance delays 27 would have to.
    """
    brokers = {"s": Broker(served={"a": named("a", 30)}, bandwidth=1e6), "t": Broker(cost=0.001, bandwidth=1e6)}
    found = plan(World(4, {"a": 15}, brokers), "input")
    assert counts(found) == [("a", 9)]
    assert found.ended == "Relieved"
    assert found.predicted_source.input_utilization == pytest.approx(0.84)
    assert len(plan(World(4, {"a": 15}, brokers)).members) == 27


def test_what_would_not_relieve_does_not_go():
    """5.2: where the delay does not depend on `none`, moving it relieves no broker of input."""
    brokers = {"s": Broker(served={"none": named("n", 5)}), "t": Broker(served={"none": named("m", 5)})}
    found = plan(World(1, {"none": 0}, brokers))
    assert (counts(found), found.ended) == ([], "Balanced")
