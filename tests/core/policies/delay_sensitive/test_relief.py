"""Plans: which topics leave an overloaded edge, where to, and why the others stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.core.policies.delay_sensitive.small import Topic, sample, unit

from plimsoll.core.policies.delay_sensitive import DelaySensitive
from plimsoll.core.policies.model.topic_correlation import TopicCorrelation
from plimsoll.core.policies.rebalancer import FleetSample, RebalancingPlan, fleet_plan
from plimsoll.core.verify.deadline_plan_checker import DeadlinePlanContext, deadline_plan_faults

MBIT = 125_000.0

# Tao, Poslad, Bigham 2013, Tables V and VI, 4 s after the burst: b1 serves 1, 3, 8 and 14, at 8.56 of 8 Mbit/s.
B1 = [
    Topic(1, 8, 50.0, 200.0, 1.8),
    Topic(3, 1, 250.0, 1000.0, 1.6),
    Topic(8, 7, 200.0, 400.0, 1.1, depth=100, delivery=175.0),
    Topic(14, 3, 200.0, 300.0, 50.0),
]
B0 = [Topic(9, 2, 250.0, 500.0, 1.0), Topic(10, 4, 400.0, 200.0, 0.9), Topic(6, 2, 90.0, 400.0, 1.3)]
"""5.14 of 6.5 Mbit/s: room for topic 1, and for no other of b1."""

FULL = [Topic(4, 2, 400.0, 400.0, 1.5), Topic(2, 2, 200.0, 800.0, 1.7)]


def planned(given: FleetSample, policy: DelaySensitive | None = None) -> RebalancingPlan:
    chosen = policy or DelaySensitive()
    plan = fleet_plan(chosen, given, {})
    takes = frozenset(load.name for load in given.loads) if given.takes is None else given.takes
    context = DeadlinePlanContext(given.profiles, takes, given.staying.keys(), given.most)
    assert deadline_plan_faults(plan, context) == []
    return plan


def moved(plan: RebalancingPlan) -> list[tuple[str, int, str]]:
    return [(move.key.partition("#")[0], len(move.subscribers), move.target) for move in plan.moves]


@pytest.mark.parametrize("rules", ["Plimsoll", "Text"])
def test_topic_1_of_the_paper_goes_to_b0(rules):
    given = sample(
        {"b0": B0, "b1": B1, "b2": FULL, "b3": FULL},
        {"b0": 6.5 * MBIT, "b1": 8 * MBIT, "b2": 5 * MBIT, "b3": 5.5 * MBIT},
    )
    plan = planned(given, DelaySensitive(rules=rules))
    assert moved(plan) == [("1", 8, "b0")]
    assert plan.ended == "Relieved"
    reasons = {each.key.partition("#")[0]: each.kind for each in plan.rejected}
    assert reasons["14"] == "TooMuch"
    assert "100 messages of 8#00000008 wait" in plan.moves[0].reason


def test_nothing_moves_where_no_deadline_is_in_danger():
    calm = [replace(topic, depth=0) for topic in B1]
    plan = planned(sample({"b0": B0, "b1": calm}, {"b0": 6.5 * MBIT, "b1": 8 * MBIT}))
    assert (moved(plan), plan.ended) == ([], "NotOverloaded")


def test_without_an_edge_that_is_low_nothing_moves():
    plan = planned(sample({"b1": B1, "b2": FULL}, {"b1": 8 * MBIT, "b2": 5 * MBIT}))
    assert (moved(plan), plan.ended) == ([], "NoBetter")
    assert {each.kind for each in plan.rejected if each.key.startswith(("1#", "8#"))} == {"NoCandidate"}
    assert "b1 stays overloaded" in plan.stopped


def test_several_edges_take_topics_of_one():
    """Each of the two has room for one of the two topics that have to go."""
    hot = [Topic(1, 2, 100.0, 10.0), Topic(2, 2, 100.0, 10.0), Topic(3, 2, 100.0, 10.0)]
    edges = {"a": hot, "b": [], "c": []}
    given = sample(
        edges, {"a": 1e5, "b": 2.3e3, "c": 2.3e3}, a={"downlink_utilization": 1.9}
    )  # fmt: skip
    plan = planned(given)
    assert sorted(target for _, _, target in moved(plan)) == ["b", "c"]
    assert plan.ended == "Relieved"


def test_the_next_topic_goes_whole_where_the_first_does_not_fit():
    """Eight subscribers where there is room for seven: the topic is not divided."""
    eight, seven = Topic(1, 8, 10.0, 100.0, 9.0), Topic(2, 7, 10.0, 100.0, 8.0)
    late = Topic(3, 1, 100.0, 100.0, 1.0, depth=400, delivery=90.0)
    plan = planned(sample({"a": [eight, seven, late], "b": []}, {"a": 25_000.0, "b": 7_900.0}))
    assert moved(plan) == [("2", 7, "b")]
    assert [each.kind for each in plan.rejected if each.key.startswith("1#")] == ["TooMuch"]


def test_units_go_singly_where_no_topic_fits():
    eight, late = Topic(1, 8, 10.0, 100.0, 9.0), Topic(3, 2, 100.0, 100.0, 1.0, depth=400, delivery=90.0)
    plan = planned(sample({"a": [eight, late], "b": []}, {"a": 27_000.0, "b": 5_000.0}))
    assert {key for key, _, _ in moved(plan)} == {"1"}
    assert sum(count for _, count, _ in moved(plan)) == 4
    assert all("of" in move.reason for move in plan.moves)


def test_a_topic_whose_units_all_went_singly_belongs_to_an_edge_with_most_of_them():
    """Four units where no edge has room for all: three go to one edge, and the last one to another."""
    four, late = Topic(1, 4, 10.0, 100.0, 9.0), Topic(3, 2, 100.0, 100.0, 1.0, depth=400, delivery=80.0)
    given = sample({"a": [four, late], "b": [], "c": []}, {"a": 22_000.0, "b": 3_500.0, "c": 1_500.0})
    plan = planned(given)
    assert sorted(moved(plan)) == [("1", 1, "b")] * 3 + [("1", 1, "c")]
    assert all(move.reason.startswith("1 of 4 units of 1#") for move in plan.moves)
    assert dict(plan.owners) == {"1#00000001": "b"}


def test_a_topic_that_is_spread_and_some_units_of_another_make_one_plan():
    """Its checker took a topic that is spread for one that is moved whole, and refused the plan."""
    two, eight = Topic(1, 2, 10.0, 100.0, 9.0), Topic(2, 8, 10.0, 50.0, 8.0)
    late = Topic(3, 2, 100.0, 100.0, 1.0, depth=400, delivery=60.0)
    given = sample({"a": [two, eight, late], "b": [], "c": []}, {"a": 25_000.0, "b": 1_500.0, "c": 2_000.0})
    assert sorted(moved(planned(given))) == [("1", 1, "b"), ("1", 1, "c"), ("2", 1, "c")]


def test_a_topic_of_which_some_units_stay_keeps_its_owner():
    eight, late = Topic(1, 8, 10.0, 100.0, 9.0), Topic(3, 2, 100.0, 100.0, 1.0, depth=400, delivery=90.0)
    assert planned(sample({"a": [eight, late], "b": []}, {"a": 27_000.0, "b": 5_000.0})).owners == ()


def test_units_that_may_not_move_hold_their_topic():
    given = sample(
        {"b0": B0, "b1": B1}, {"b0": 6.5 * MBIT, "b1": 8 * MBIT}, staying={unit("b1", 1, 3): "moved just now"}
    )  # fmt: skip
    plan = planned(given)
    assert ("1", 8, "b0") not in moved(plan)
    assert any(each.kind == "Staying" for each in plan.rejected)


def test_the_candidate_with_the_least_of_what_is_overloaded_comes_first():
    over = {"downlink_utilization": 0.99}
    hot = [Topic(1, 1, 10.0, 10.0), Topic(2, 1, 10.0, 10.0)]
    plan = planned(
        sample(
            {"a": hot, "b": [Topic(3)], "c": [Topic(4)]}, a=over, b={"downlink_utilization": 0.5},
            c={"downlink_utilization": 0.2},
        )
    )  # fmt: skip
    assert moved(plan) == [("1", 1, "c")]


def test_a_topic_that_is_not_sent_relieves_no_queue():
    idle, late = Topic(1, 3, 0.0, 100.0), Topic(3, 1, 100.0, 100.0, 1.0, depth=400, delivery=90.0)
    given = sample({"a": [idle, late], "b": []}, {"a": 9_000.0, "b": 50_000.0})
    assert moved(planned(given)) == [("3", 1, "b")]
    assert moved(planned(given, DelaySensitive(rules="Text"))) == [("1", 3, "b"), ("3", 1, "b")]


def test_a_target_is_left_below_its_lower_thresholds_or_at_what_it_can_send_by_the_letter():
    hot = [Topic(1, 1, 95.0, 100.0, 9.0), Topic(3, 1, 100.0, 100.0, 1.0, depth=400, delivery=50.0)]
    given = sample({"a": hot, "b": []}, {"a": 15_000.0, "b": 10_000.0})
    assert moved(planned(given)) == []
    assert moved(planned(given, DelaySensitive(rules="Text"))) == [("1", 1, "b")]


RISEN = (50.0,) * 8 + (100.0,) * 4


def correlated_fleet() -> FleetSample:
    """Topic 1 has to go. Edge b is the less used one, and has topic 5; c has as much room."""
    late = Topic(3, 1, 100.0, 100.0, 1.0, depth=80, delivery=90.0)
    edges = {"a": [Topic(1, 4, 10.0, 100.0, 9.0), late], "b": [Topic(5, 1, 1.0, 100.0)], "c": [Topic(6, 1, 9.0, 100.0)]}
    return sample(edges, 14_500.0)


def planned_apart(history: dict[str, list[float]], **own: Any) -> RebalancingPlan:
    policy = DelaySensitive(correlation=TopicCorrelation(), **own)
    return fleet_plan(policy, correlated_fleet(), {"history": history})


def test_a_topic_goes_where_no_correlated_one_is_and_the_reason_says_so():
    rising = {f"{topic:08x}": list(RISEN) for topic in (1, 5)}
    assert moved(planned_apart({})) == [("1", 4, "b")]
    plan = planned_apart(rising)
    assert moved(plan) == [("1", 4, "c")]
    assert plan.moves[0].reason.endswith("; b has 5#00000005, and their rates rise together, coefficient 1.00")
    assert moved(planned_apart(rising, rules="Text")) == [("1", 4, "b")], "the letter keeps only newcomers apart"


def test_a_deadline_comes_before_keeping_topics_apart():
    """Where each edge has a correlated topic, the first one that can takes it."""
    rising = {f"{topic:08x}": list(RISEN) for topic in (1, 5, 6)}
    plan = planned_apart(rising)
    assert moved(plan) == [("1", 4, "b")]
    assert "rise together" not in plan.moves[0].reason


def test_a_memory_that_cannot_be_read_keeps_nothing_apart():
    for history in ({"x": [1.0]}, {"00000001": ["a"]}, {"00000001": 3}, 7):
        policy = DelaySensitive(correlation=TopicCorrelation())
        assert moved(fleet_plan(policy, correlated_fleet(), {"history": history})) == [("1", 4, "b")]


# -- edges of another cluster


def planned_away(edges: dict[str, list[Topic]], bandwidth: dict[str, float], **away: float) -> RebalancingPlan:
    given = replace(sample(edges, bandwidth), away=away)
    plan = fleet_plan(DelaySensitive(), given, {})
    context = DeadlinePlanContext(given.profiles, frozenset(edges), away=away.keys())
    assert deadline_plan_faults(plan, context) == []
    return plan


LATE = Topic(3, 1, 100.0, 100.0, 1.0, depth=80, delivery=90.0)
ONE, TWO = Topic(1, 4, 10.0, 100.0, 9.0), Topic(2, 4, 10.0, 100.0, 8.0)


def test_an_edge_of_the_own_cluster_comes_before_a_less_used_one_of_another():
    edges = {"a": [ONE, LATE], "b": [Topic(5, 1, 50.0, 100.0)], "x": []}
    plan = planned_away(edges, {"a": 14_500.0, "b": 14_500.0, "x": 14_500.0}, x=0.01)
    assert moved(plan) == [("1", 4, "b")]
    assert "no edge of its cluster" not in plan.moves[0].reason


def test_what_the_own_edges_cannot_take_goes_to_another_cluster():
    """Edge b has room for topic 2 alone, and both have to go."""
    late = replace(LATE, depth=100, delivery=75.0)
    edges = {"a": [ONE, replace(TWO, rate=9.0), late], "b": [Topic(5, 1, 54.0, 100.0)], "x": []}
    plan = planned_away(edges, {"a": 15_000.0, "b": 10_200.0, "x": 10_000.0}, x=0.01)
    assert moved(plan) == [("2", 4, "b"), ("1", 4, "x")]
    assert plan.moves[1].reason.endswith("; no edge of its cluster takes it")


def test_an_edge_that_is_too_far_for_a_deadline_takes_nothing_for_it():
    """A queue is empty on arrival, but the way alone takes longer than the deadline leaves."""
    near = Topic(1, 4, 10.0, 100.0, 0.9, depth=1)
    edges = {"a": [near, LATE], "x": []}
    bandwidth = {"a": 14_500.0, "x": 14_500.0}
    assert moved(planned_away(edges, bandwidth, x=0.1)) == [("1", 4, "x")]
    far = planned_away(edges, bandwidth, x=0.7)
    assert moved(far) == []
    [reason] = [each.reason for each in far.rejected if each.key.startswith("1#")]
    assert "its way to x alone takes longer" in reason


def test_an_edge_of_another_cluster_gives_nothing_however_overloaded_it_is():
    edges = {"a": [], "b": [], "x": [ONE, LATE]}
    plan = planned_away(edges, {"a": 14_500.0, "b": 14_500.0, "x": 14_500.0}, x=0.01)
    assert (moved(plan), plan.ended) == ([], "NotOverloaded")


def test_a_topic_that_another_cluster_has_goes_to_its_edge_there_or_stays():
    edges = {"a": [ONE, LATE], "x": [], "y": [replace(ONE, subscribers=1), Topic(7, 1, 20.0, 100.0)]}
    wide = {"a": 14_500.0, "x": 14_500.0, "y": 14_500.0}
    assert moved(planned_away(edges, wide, x=0.01, y=0.01)) == [("1", 4, "y")]
    plan = planned_away(edges, {**wide, "y": 3_100.0}, x=0.01, y=0.01)
    assert {topic for topic, _, _ in moved(plan)} <= {"3"}
    assert next(each.kind for each in plan.rejected if each.key.startswith("1#")) == "Elsewhere"
