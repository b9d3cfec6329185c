"""The stages of BAD: which one an imbalance asks for, what is planned, and what is said of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.core.policies.bad.small import ALIKE, MIXED, sample

from plimsoll.core.policies.bad import Bad
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.rebalancer import FleetLook, FleetSample, RebalancingPlan, fleet_plan

EAGER = Bad(beta=0.0, rules="Paper")
ALL_OF_MIXED = [f"{broker}-{number}" for broker, some in MIXED.items() for number in range(len(some.split()))]


def planned(policy: Bad, given: FleetSample) -> RebalancingPlan:
    return fleet_plan(policy, given, {})


def loads_after(plan: RebalancingPlan, given: FleetSample) -> list[float]:
    """F of each broker, from who is where after the plan."""
    texts = {name: set(row.texts) for profile in given.profiles.values() for row in profile.rows for name in row.names}
    rates = {text: profile.traffic.bytes_per_second(bits) for profile in given.profiles.values()
             for text, bits in profile.each}  # fmt: skip
    places = {name: broker for broker, profile in given.profiles.items() for row in profile.rows for name in row.names}
    places |= {name: move.target for move in plan.moves for name in move.subscribers}
    found = []
    for broker in sorted(given.profiles):
        here = [texts[name] for name, place in places.items() if place == broker]
        found.append(sum(rates[text] for text in set().union(*here)) + sum(rates[t] for some in here for t in some))
    return found


def test_above_gamma_all_are_shuffled():
    given = sample(**MIXED)
    plan = planned(EAGER, given)
    assert loads_after(plan, given) == [36.0, 34.0, 40.0]
    assert plan.ended == "Balanced"
    assert plan.stopped.startswith("cov 1.026 -> 0.068")
    assert all("shuffled" in move.reason for move in plan.moves)


def test_between_alpha_and_gamma_subscribers_migrate():
    given = sample(**MIXED)
    plan = planned(replace(EAGER, gamma=2.0), given)
    assert [(move.subscribers, move.target) for move in plan.moves] == [(("B1-0",), "B3"), (("B1-3",), "B2")]
    assert loads_after(plan, given) == [40.0, 34.0, 36.0]


@pytest.mark.parametrize("policy", [Bad(), Bad(gamma=9.0), Bad(gamma=9.0, migration="SimilarityBased")])
def test_below_beta_nothing_is_done(policy: Bad):
    plan = planned(policy, sample(**ALIKE))
    assert (plan.moves, plan.ended) == ((), "LowLoad")
    assert "beta 300" in plan.stopped


def test_a_shuffle_beyond_the_limit_of_moves_gives_way_to_migration():
    given = replace(sample(**MIXED), most=2)
    plan = planned(EAGER, given)
    assert len(plan.moves) == 2
    assert loads_after(plan, given) == [40.0, 34.0, 36.0]
    assert "a shuffle would move" in plan.stopped


def test_the_limit_of_moves_holds_between_steps():
    plan = planned(replace(EAGER, shuffle="None"), replace(sample(**MIXED), most=1))
    assert (len(plan.moves), plan.ended) == (1, "Limit")


def test_one_heavy_subscriber_stays_where_it_is():
    plan = planned(EAGER, sample({"a": 1000.0}, B1="a", B2=""))
    assert (plan.moves, plan.ended) == ((), "NoBetter")
    assert sum(each.subscribers for each in plan.rejected) == 1


def test_every_decision_has_a_reason():
    plan = planned(EAGER, replace(sample(**MIXED), staying={"B1-1": "is excluded by the session"}))
    moved = sum(len(move.subscribers) for move in plan.moves)
    assert moved + sum(each.subscribers for each in plan.rejected) == 6
    assert [each.reason for each in plan.rejected if each.kind == "Staying"] == ["B1: is excluded by the session"]


def test_each_stage_can_be_left_out():
    nothing = Bad(beta=0.0, migration="None", shuffle="None")
    assert planned(nothing, sample(**MIXED)).moves == ()
    assert nothing.wanted(looked(nothing, 70, 12, 4)) == ""


# -- looks


def looked(policy: Bad, *loads: float, times: int = 3) -> dict[str, object]:
    memory: dict[str, object] = {}
    for _ in range(times):
        some = tuple(
            BrokerLoad(name=f"B{i}", input_bytes_per_second=f / 2, output_bytes_per_second=f / 2)
            for i, f in enumerate(loads)
        )
        memory = dict(policy.observe(memory, FleetLook(some)))
    return memory


def test_a_passing_imbalance_asks_for_nothing():
    assert EAGER.wanted(looked(EAGER, 70, 12, 4, times=1)) == ""
    assert EAGER.wanted(looked(EAGER, 70, 12, 4, times=2)) == "cov 1.026, mean F 28.67 B/s: above gamma 0.5, shuffle"
    again = EAGER.observe(looked(EAGER, 70, 12, 4), FleetLook((BrokerLoad(name="B0", input_bytes_per_second=5.0),)))
    assert EAGER.wanted(again) == ""


@pytest.mark.parametrize(
    ("loads", "stage"),
    [((40, 34, 36), ""), ((40, 30, 26), "migrate"), ((70, 12, 4), "shuffle"), ((0, 0, 0), "")],
)
def test_the_stage_follows_from_cov(loads: tuple[float, ...], stage: str):
    assert EAGER.wanted(looked(EAGER, *loads)).endswith(stage)
    assert bool(EAGER.wanted(looked(EAGER, *loads))) is bool(stage)


def test_loads_are_taken_by_capacity_if_that_is_wanted():
    policy = replace(EAGER, normalize="Capacity")
    even = tuple(BrokerLoad(name=f"B{c}", input_bytes_per_second=10.0 * c, capacity=c) for c in (1.0, 2.0, 4.0))
    assert policy.observe({}, FleetLook(even))["cov"] == 0.0
    assert EAGER.observe({}, FleetLook(even))["cov"] > 0.5


def test_memory_is_json_and_a_foreign_one_is_begun_anew():
    memory = looked(EAGER, 70, 12, 4)
    assert json.loads(json.dumps(memory)) == memory
    for foreign in ({"looks": "many"}, {"looks": -3}, {"looks": True}, {}):
        assert EAGER.observe(foreign, FleetLook(()))["looks"] == 0
        assert EAGER.wanted(foreign) == ""


@pytest.mark.parametrize("gamma", [0.5, 2.0])
def test_at_constant_load_no_subscriber_returns_to_a_broker_that_it_has_left(gamma: float):
    policy, given = Bad(beta=0.0, gamma=gamma), sample(**MIXED)
    went = {(name, move.target) for move in planned(policy, given).moves for name in move.subscribers}
    assert went
    left = {name: frozenset((target,)) for name, target in went}
    again = planned(policy, replace(given, left=left))
    assert not went & {(name, move.target) for move in again.moves for name in move.subscribers}
    none = planned(policy, replace(given, left=dict.fromkeys(ALL_OF_MIXED, frozenset(MIXED))))
    assert none.moves == ()
    assert "has not left before at this load" in none.stopped


def test_the_letter_takes_subscribers_back():
    given = sample(**MIXED)
    assert planned(EAGER, replace(given, left=dict.fromkeys(ALL_OF_MIXED, frozenset(MIXED)))) == planned(EAGER, given)
