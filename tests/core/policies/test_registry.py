"""Policies by name: all plan without faults, give reasons, and give the same answer to the same question."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.policies.hand import Broker, World, named
from tests.examples import examples

from plimsoll.core.policies.balancing_policy import BalancingPolicy, RowChoosingPolicy
from plimsoll.core.policies.delay_sensitive import DelaySensitive
from plimsoll.core.policies.delay_sensitive.placer import LeastUsedPlacer
from plimsoll.core.policies.model.load import METRICS, NO_THRESHOLD, Metric, OverloadThreshold
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.plan import BrokerAction
from plimsoll.core.policies.registry import (
    POLICIES,
    REBALANCERS,
    parameters_of_spec,
    placer_of_spec,
    policy_of_spec,
    rebalancer_of_spec,
)
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import (
    FLEET_WIDE_TYPES,
    POLICY_TYPES,
    TYPES_WITH_PARAMETERS,
    PolicySpec,
    PolicyType,
)
from plimsoll.core.verify.offload_plan_checker import OffloadPlanContext, offload_plan_faults

LOWER = {"input": 0.9, "output": 0.9, "cpu": 0.9, "memory": 0.9}
TYPES = [name for name in get_args(PolicyType) if name not in FLEET_WIDE_TYPES]


def test_every_type_has_its_policy():
    assert set(POLICIES) == set(TYPES)


def test_every_policy_has_a_name_on_the_command_line():
    """What a new policy is called there follows from its type, so no list of names has to be kept."""
    known = set(POLICIES) | {policy.name for policy in REBALANCERS}
    assert {*POLICY_TYPES.values(), *TYPES_WITH_PARAMETERS} == known
    assert POLICY_TYPES["padres"] == "Padres"
    assert POLICY_TYPES["least-loaded"] == "LeastLoaded"


def test_without_a_word_the_parameters_are_the_papers():
    """PADRES 2006, 3.2 and 5.1: 0.9, 0.95, 0.1, 0.1, N_f 0.1 s, 30 s, 0.05, 0.15, 0.005."""
    assert parameters_of_spec(
        PolicySpec(type="Padres", padres=parse_block(PolicySpec, {"type": "Padres", "padres": {}}).padres)
    ) == (BalancingParameters())
    found = BalancingParameters()
    assert (found.thresholds.input.lower, found.thresholds.cpu.higher) == (0.9, 0.95)
    assert (found.local_trigger.ratio, found.local_trigger.delay) == (0.1, 0.1)
    assert (found.global_trigger.ratio, found.global_trigger.delay) == (0.15, 0.15)
    assert (found.normalization_seconds, found.stabilize_seconds, found.stabilize_change) == (0.1, 30.0, 0.05)
    assert found.balance_threshold == 0.005


def test_deadlines_are_defended_as_the_specification_says():
    own = {
        "topicAttribute": "kind", "interval": "2s", "balancingTime": "300ms", "rules": "Text",
        "thresholds": {"downlink": {"lower": "500m", "higher": "600m"}, "uplink": {"lower": "700m"}},
    }  # fmt: skip
    spec = parse_block(PolicySpec, {"type": "DelaySensitive", "delaySensitive": own})
    found = rebalancer_of_spec(spec, 2.0)
    assert isinstance(found, DelaySensitive)
    assert (found.topic_attribute, found.rules) == ("kind", "Text")
    assert (found.interval_seconds, found.balancing_seconds) == (4.0, 0.6)
    assert (found.limits.downlink.lower, found.limits.downlink.higher) == (0.5, 0.6)
    assert (found.limits.matching.lower, found.limits.matching.higher) == (0.9, 0.95)
    assert (found.limits.uplink.lower, found.limits.uplink.higher) == (0.7, NO_THRESHOLD)
    assert placer_of_spec(spec) == LeastUsedPlacer(0.7)


def test_every_parameter_can_be_said():
    spec = parse_block(
        PolicySpec,
        {
            "type": "Padres",
            "detection": {
                "interval": "1s", "reportsValidFor": "2s", "normalization": "10ms", "stabilizeFor": "3s",
                "stabilizeChange": "200m", "localTrigger": {"ratio": "300m", "delay": "2"},
                "globalTrigger": {"ratio": "400m", "delay": "500m"},
                "overload": {"memory": {"lower": "600m", "higher": "700m"}},
            },
            "padres": {"balanceThreshold": "10m", "rules": "Paper"},
        },
    )  # fmt: skip
    found = parameters_of_spec(spec, time_factor=2.0)
    assert (found.detection_seconds, found.fresh_seconds, found.stabilize_seconds) == (2.0, 4.0, 6.0)
    assert (found.normalization_seconds, found.stabilize_change, found.balance_threshold) == (0.02, 0.2, 0.01)
    assert (found.local_trigger.ratio, found.local_trigger.delay) == (0.3, 2.0)
    assert (found.global_trigger.ratio, found.global_trigger.delay) == (0.4, 0.5)
    assert (found.thresholds.memory, found.thresholds.cpu) == (OverloadThreshold(0.6, 0.7), OverloadThreshold())
    assert found.rules == "Paper"
    assert policy_of_spec(spec, 2.0).parameters == found


BITS = {"r0": 0b0001, "r1": 0b0011, "r2": 0b0110, "r3": 0b1111, "r4": 0}
COUNTS = st.lists(st.integers(0, 9), min_size=len(BITS), max_size=len(BITS))


def world_of(source: list[int], target: list[int], cost: float) -> World:
    def served(prefix: str, counts: list[int]) -> dict[str, tuple[str, ...]]:
        return {key: named(f"{prefix}{key}", n) for key, n in zip(BITS, counts, strict=True) if n}

    brokers = {"s": Broker(cost, 5000.0, served("s", source)), "t": Broker(0.01, 4000.0, served("t", target))}
    return World(4, BITS, brokers)


@settings(max_examples=examples(60))
@given(COUNTS, COUNTS, st.sampled_from([0.005, 0.01, 0.05]), st.sampled_from(METRICS), st.booleans())
@pytest.mark.parametrize("name", TYPES)
def test_plans_have_no_faults(
    name: PolicyType, source: list[int], target: list[int], cost: float, metric: Metric, is_over: bool
):
    world = world_of(source, target, cost)
    own, other, profile = world.load("s"), world.load("t"), world.profile("s", "t")
    action = BrokerAction("t", metric, 1.0, ("input",) if is_over and own.input_utilization > 0.95 else ())
    chosen = policy_of_spec(PolicySpec(type=name))
    plan = chosen.plan(own, other, profile, action)
    assert offload_plan_faults(plan, OffloadPlanContext(profile, LOWER, by_content=name != "LeastLoaded")) == []
    assert chosen.plan(own, other, profile, action) == plan


def test_random_draws_by_its_seed():
    world = world_of([9, 9, 9, 9, 9], [0] * 5, 0.005)
    own, other, profile = world.load("s"), world.load("t"), world.profile("s", "t")
    drawn = {
        policy_of_spec(parse_block(PolicySpec, {"type": "Random", "random": {"seed": seed}})).plan(
            own, other, profile, BrokerAction("t", "match", 1.0)
        ).members
        for seed in range(5)
    }  # fmt: skip
    assert len(drawn) == 5


def test_random_and_least_loaded_rank_targets_in_their_own_way():
    world = world_of([9, 9, 9, 9, 9], [1, 1, 1, 1, 1], 0.005)
    loads = {"s": world.load("s"), "t": world.load("t"), "u": world_of([0] * 5, [0] * 5, 0.01).load("t")}
    loads["u"] = type(loads["u"])(name="u")
    actions = [BrokerAction("t", "input", 0.9), BrokerAction("u", "input", 0.5)]
    assert [a.target for a in policy_of_spec(PolicySpec(type="Padres")).ranked(loads["s"], actions, loads)] == [
        "t",
        "u",
    ]
    assert [a.target for a in policy_of_spec(PolicySpec(type="LeastLoaded")).ranked(loads["s"], actions, loads)] == [
        "u",
        "t",
    ]
    random = policy_of_spec(PolicySpec(type="Random")).ranked(loads["s"], actions, loads)
    assert sorted(a.target for a in random) == ["t", "u"]


def test_least_loaded_moves_equal_shares():
    """20 subscribers against none of equal hardware: 10 go, the first by name, whichever their subscriptions."""
    world = world_of([4, 4, 4, 4, 4], [0] * 5, 0.01)
    found = policy_of_spec(PolicySpec(type="LeastLoaded")).plan(
        world.load("s"), world.load("t"), world.profile("s", "t"), BrokerAction("t", "match", 1.0)
    )
    assert found.members == tuple(sorted(found.members))
    assert len(found.members) == 10
    assert "each taken to be an equal part of the load of s" in found.moves[0].reason


def test_greedy_lowers_the_busier_of_the_two():
    world = world_of([4, 4, 4, 4, 4], [0] * 5, 0.01)
    found = policy_of_spec(PolicySpec(type="Greedy")).plan(
        world.load("s"), world.load("t"), world.profile("s", "t"), BrokerAction("t", "match", 1.0)
    )
    pairs = (found.source, found.target), (found.predicted_source, found.predicted_target)
    highest = [max(load.measures.of_metric(m, 0.1) for load in pair for m in METRICS) for pair in pairs]
    assert highest[1] < highest[0]
    assert found.ended == "NoBetter"


def test_a_policy_that_makes_no_plan_is_none():
    class NoPlan(BalancingPolicy):
        name = "Greedy"

    class NoChoice(RowChoosingPolicy):
        name = "Greedy"

    kinds: list[tuple[type[Any], str]] = [(NoPlan, "plan"), (NoChoice, "choose")]
    for kind, missing in kinds:
        with pytest.raises(TypeError, match=f"abstract.*{missing}"):
            kind()
