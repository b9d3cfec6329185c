"""The output offload algorithm on fleets made by hand. PADRES 2006, 5.3."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.core.policies.hand import Broker, World, named

from plimsoll.core.policies.model.load import Resource
from plimsoll.core.policies.model.plan import BrokerAction, OffloadPlan
from plimsoll.core.policies.model.plan_builder import PlanBuilder
from plimsoll.core.policies.padres import Padres

QUICK = 1e-5
"""So fast that input and delay do not matter."""


class AlgorithmAlone(Padres):
    """PADRES without the search for fewer moves."""

    def refined(self, made: OffloadPlan, begin: Callable[[], PlanBuilder]) -> OffloadPlan:
        return made


def plan(world: World, *overloaded: Resource, staying: dict[str, str] | None = None) -> OffloadPlan:
    """The plan of the algorithm alone: in worlds as small as these, fewer subscribers may do as much."""
    action = BrokerAction("t", "output", 1.0, overloaded)
    return AlgorithmAlone().plan(world.load("s"), world.load("t"), world.profile("s", "t"), action, staying)


def counts(found: OffloadPlan) -> list[tuple[str, int]]:
    return [(move.key, len(move.subscribers)) for move in found.moves]


def test_phase_one_takes_its_types_in_order():
    """5.3: t takes in a, b and c. Of 2000 B/s s uses 1100, t 300: 0.55 - 0.15 = 0.40.

    Type-I is `a`: all go, s is spared a. 0.30. Type-II is `b`: one of three may not go, so s needs b still. 0.10.
    Type-III is `c`: `cd` needs c at s in any case. 0.00. `cd` and `e` are not covered by t.
    """
    served = {"a": named("a", 1), "b": named("b", 3), "c": named("c", 1), "cd": named("d", 1), "e": named("e", 4)}
    wants = {"a": 1, "b": 2, "c": 4, "cd": 12, "e": 16, "abc": 7}
    brokers = {
        "s": Broker(QUICK, 2000.0, served),
        "t": Broker(QUICK, 2000.0, {"abc": named("t", 1)}),
    }
    found = plan(World(5, wants, brokers), staying={"b000": "was moved lately"})
    assert counts(found) == [("a", 1), ("b", 2), ("c", 1)]
    assert [move.reason.split(":")[0] for move in found.moves] == [
        "Phase-I, Type-I", "Phase-I, Type-II", "Phase-I, Type-III",
    ]  # fmt: skip
    assert found.ended == "Balanced"
    assert found.predicted_source.output_utilization == pytest.approx(0.35)


def test_within_a_type_what_sends_most_goes_first():
    """Table 2: t takes in everything. `abc` and `ab` lie under `all`, which may not go: Type-III. 0.9 - 0.2 = 0.7.

    `abc` first, 0.4 for one; two would be 0.1, and all three -0.2. Two go; `ab` would overshoot to -0.1: it stays.
    """
    served = {"all": named("x", 1), "abc": named("a", 3), "ab": named("b", 2)}
    wants = {"all": 15, "abc": 7, "ab": 3}
    brokers = {"s": Broker(QUICK, 2000.0, served), "t": Broker(QUICK, 2000.0, {"all": named("t", 1)})}
    found = plan(World(4, wants, brokers), staying={"x000": "is excluded"})
    assert counts(found)[0][0] == "abc"
    assert found.moves[0].reason.startswith("Phase-I, Type-III")


def test_phase_two_ends_when_inputs_are_balanced():
    """5.3, stability rule: s and t hardly take anything in, so nothing that t does not cover goes, though 0.4 to 0."""
    brokers = {"s": Broker(QUICK, 1000.0, {"e": named("e", 4)}), "t": Broker(QUICK, 1000.0)}
    found = plan(World(1, {"e": 1}, brokers))
    assert counts(found) == []
    assert found.ended == "Stability"
    assert found.stopped.startswith("stability rule of Phase-II: input utilisation of s is +0.00")


def test_phase_two_takes_what_leaves_the_two_closest():
    """5.3: s takes in 1/s x 4 x 0.05 = 0.2, t nothing, so Phase-II may run. Outputs 0.4 - 0.2 k are balanced at 2."""
    brokers = {"s": Broker(0.05, 1000.0, {"e": named("e", 4)}), "t": Broker(0.05, 1000.0)}
    found = plan(World(1, {"e": 1}, brokers))
    assert counts(found) == [("e", 2)]
    assert found.moves[0].reason.startswith("Phase-II: output difference +0.4000 -> ")
    assert found.ended == "Balanced"


def test_what_phase_two_took_is_followed_by_what_it_covers():
    """5.3: s sends 500 of 1000 B/s, t nothing of 3000. `abc` leaves 0.2 - 0.1 = 0.1, `a` at best 0.3 - 0.067 = 0.233.

    So `abc` goes by Phase-II; t then covers `a`, of which Phase-I moves one: 0.1 - 0.2/3 x 2 = -0.033.
    """
    brokers = {
        "s": Broker(0.05, 1000.0, {"abc": named("x", 1), "a": named("a", 2)}),
        "t": Broker(0.005, 3000.0),
    }
    found = plan(World(3, {"abc": 7, "a": 1}, brokers))
    assert counts(found) == [("abc", 1), ("a", 1)]
    assert [move.reason.split(":")[0] for move in found.moves] == ["Phase-II", "Phase-I, Type-II"]
    assert found.ended == "Below"


def test_an_overloaded_source_goes_on_below_its_lower_threshold():
    """5.3, exception: inputs are balanced, and s sends 1000 of 1000 B/s. With one less s is at 0.9, not below it; with
    two at 0.8, which is safely below.
    """
    brokers = {"s": Broker(QUICK, 1000.0, {"e": named("e", 10)}), "t": Broker(QUICK, 1000.0)}
    world = World(1, {"e": 1}, brokers)
    assert counts(plan(world)) == []
    found = plan(world, "output")
    assert counts(found) == [("e", 2)]
    assert found.ended == "Relieved"
    assert found.predicted_source.output_utilization == pytest.approx(0.8)


def test_output_may_not_bring_inputs_apart():
    """5.3, for every move: t's input is 0.3 above s's. `b` would bring t more of it, to balance outputs."""
    brokers = {
        "s": Broker(0.05, 1000.0, {"b": named("b", 4)}),
        "t": Broker(0.05, 1000.0, {"ac": named("t", 4)}),
    }
    world = World(3, {"b": 2, "ac": 5}, brokers)
    swapped = World(3, {"b": 2, "ac": 5}, {"s": brokers["t"], "t": brokers["s"]})
    assert plan(world).moves == ()
    assert plan(swapped).moves == plan(swapped).moves
