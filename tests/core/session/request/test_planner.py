"""From the served subscribers to the moves of a plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.session.model import spec_of

from plimsoll.core.policies import LeastLoadedPlacer, PlacementTarget, PlacementUnit
from plimsoll.core.session import EdgeView, SessionRequest
from plimsoll.core.session.request.planner import (
    STAY_REASONS,
    Selection,
    describe_difference,
    empty_plan_reason,
    hash_pairs,
    make_plan,
    missing_members,
    placer_port,
    placer_unit,
    select_members,
    shorten_names,
)
from plimsoll.core.session.session_plan import PlannedPair, SessionPlan

SERVED = {"a": ["a1", "a2", "a3", "a4"], "b": ["b1", "b2"]}
NONE: frozenset[str] = frozenset()


def request(parent: Any = "", **fields: Any) -> SessionRequest:
    return SessionRequest("s", "uid", 1, spec_of(**{"scope": "Global", "source": {"name": "a"}, **fields}), parent)


def edge(name: str, subscribers: int = 0, cluster: str = "c", **report: float) -> EdgeView:
    return EdgeView(name, cluster, f"{cluster}-head", subscribers=subscribers, report=report)


@pytest.mark.parametrize(
    ("fields", "chosen"),
    [
        ({"select": {"count": 3}}, {"a": ["a1", "a2"], "b": ["b1"]}),
        ({"select": {"count": 4}}, {"a": ["a1", "a2", "a3"], "b": ["b1"]}),
        ({"select": {"count": 100}}, SERVED),
        ({"select": {"sharePercent": 50}}, {"a": ["a1", "a2"], "b": ["b1"]}),
        ({"select": {"sharePercent": 1}}, {"a": ["a1"]}),
        ({"select": {"sharePercent": 100}}, SERVED),
        ({"select": {"names": ["b2", "a4", "zz"]}}, {"a": ["a4"], "b": ["b2"]}),
        ({"action": "Drain"}, SERVED),
        ({"select": {"count": 6}, "limits": {"maxMoves": 1}}, {"a": ["a1"]}),
        ({"select": {"count": 6}, "exclusions": {"subscribers": ["a1", "b1"]}}, {"a": ["a2", "a3", "a4"], "b": ["b2"]}),
    ],
)
def test_who_is_selected(fields: dict[str, Any], chosen: dict[str, list[str]]):
    assert select_members(request(**fields), SERVED, None, NONE, NONE).chosen == chosen


def test_neither_names_nor_an_amount_select_no_subscriber():
    found = select_members(request(select={}), SERVED, None, NONE, NONE)
    assert (found.chosen, found.wanted) == ({}, 0)


def test_every_subscriber_has_a_reason_to_stay():
    fields = {"select": {"names": ["a1", "a2", "a3", "a4", "zz"]}, "exclusions": {"subscribers": ["a1"]}}
    found = select_members(request(limits={"maxMoves": 4}, **fields), SERVED, None, {"a2"}, {"a3"})
    assert found.chosen == {"a": ["a4"]}
    assert found.rejected == {
        "Excluded": ["a1"], "MovedRecently": ["a2"], "InAnotherSession": ["a3"], "NotServed": ["zz"],
    }  # fmt: skip
    assert set(found.rejected) <= set(STAY_REASONS)
    limited = select_members(
        request(select={"names": ["a1", "a2", "a3"]}, limits={"maxMoves": 1}), SERVED, None, NONE, NONE
    )
    assert limited.rejected == {"OverLimit": ["a2", "a3"]}
    by_one = select_members(
        request(select={"names": ["a1", "a2", "a3"]}, limits={"maxMoves": 2}), SERVED, None, NONE, NONE
    )
    assert by_one.rejected == {"OverLimit": ["a3"]}


def test_an_unselected_subscriber_has_no_reason_to_stay():
    for limits in ({}, {"maxMoves": 3}, {"maxMoves": 100}):
        assert select_members(request(select={"count": 3}, limits=limits), SERVED, None, NONE, NONE).rejected == {}


def test_who_was_moved_just_now_stays_but_for_drains_and_children():
    for fields, parent in (({"action": "Drain"}, ""), ({"select": {"names": ["a1"]}}, "parent")):
        assert "a1" in select_members(request(parent, **fields), SERVED, None, {"a1"}, NONE).chosen["a"]
    assert "a1" not in select_members(request(select={"count": 6}), SERVED, None, {"a1"}, NONE).chosen["a"]


def test_another_attempt_wants_what_is_left():
    assert select_members(request(select={"count": 5}), SERVED, 2, NONE, NONE).chosen == {"a": ["a1"], "b": ["b1"]}
    assert select_members(request(select={"sharePercent": 100}), SERVED, 0, NONE, NONE).chosen == {}


@given(st.dictionaries(st.sampled_from("abcde"), st.integers(0, 40), min_size=1), st.integers(1, 100))
def test_shares_add_up_and_are_fair(sizes: dict[str, int], percent: int):
    served = {name: [f"{name}{number:02}" for number in range(size)] for name, size in sizes.items()}
    total = sum(sizes.values())
    found = select_members(request(select={"sharePercent": percent}), served, None, NONE, NONE)
    assert sum(map(len, found.chosen.values())) == found.wanted == -(-total * percent // 100)
    for name, size in sizes.items():
        exact = found.wanted * size / total if total else 0
        assert abs(len(found.chosen.get(name, [])) - exact) < 1


def test_an_edge_as_a_port():
    busy = edge("a", 10, input_utilization=0.3, output_utilization=0.6, capacity=2.0)
    assert placer_port(busy) == PlacementTarget("a", 0.6, 10, 2.0)
    assert placer_unit(busy).load == pytest.approx(0.12)
    assert placer_port(edge("a", 3)) == PlacementTarget("a", 0.0, 3, 1.0)
    assert placer_unit(edge("a")) == PlacementUnit(1, 0.0)
    assert placer_port(edge("a", 0, input_utilization=float("nan"), capacity=float("inf"))) == PlacementTarget(
        "a", 0.0, 0, 1.0
    )


@pytest.mark.parametrize("nonsense", [True, "0.5", None, [0.5], -0.5])
def test_what_is_no_ratio_in_a_report_counts_as_nothing(nonsense: Any):
    assert placer_port(edge("a", 3, input_utilization=nonsense, capacity=nonsense)) == PlacementTarget("a", 0.0, 3, 1.0)


def plan_for(chosen: dict[str, list[str]], edges: list[EdgeView], targets: list[str]) -> SessionPlan:
    known = {one.name: one for one in edges}
    return make_plan(Selection(chosen, {}, 0), known, [known[name] for name in targets], LeastLoadedPlacer(), 5.0)


def test_a_plan_predicts_what_its_edges_will_carry():
    edges = [edge("a", 4, input_utilization=0.8), edge("b", 0, input_utilization=0.1)]
    plan = plan_for({"a": ["a1", "a2"]}, edges, ["b"])
    before_after = {one.edge: (one.utilization_before, one.utilization_after) for one in plan.forecasts}
    assert before_after == {"a": (0.8, 0.4), "b": (0.1, 0.5)}
    assert [(one.subscribers_before, one.subscribers_after) for one in plan.forecasts] == [(4, 2), (0, 2)]


def test_forecasts_are_told_to_four_places():
    edges = [edge("a", 3, input_utilization=0.123456), edge("b", 0, input_utilization=0.098765)]
    told = {
        one.edge: (one.utilization_before, one.utilization_after)
        for one in plan_for({"a": ["x"]}, edges, ["b"]).forecasts
    }
    assert told == {"a": (0.1235, 0.0823), "b": (0.0988, 0.1399)}


def test_sources_share_what_targets_have():
    edges = [edge("a", 10), edge("b", 10), edge("v", 0, "w"), edge("w", 4, "w")]
    chosen = {name: [f"{name}{number}" for number in range(5)] for name in "ab"}
    plan = plan_for(chosen, edges, ["v", "w"])
    loads = {one.edge: one.subscribers_after for one in plan.forecasts}
    assert loads == {"a": 5, "b": 5, "v": 7, "w": 7}
    assert all(pair.is_across for pair in plan.pairs)
    assert sum(len(pair.members) for pair in plan.pairs) == plan.members == 10


def test_who_finds_no_place_is_rejected():
    edges = [edge("a", 2)]
    plan = plan_for({"a": ["a1", "a2"]}, edges, [])
    assert (plan.pairs, plan.rejected) == ([], {"NoPlace": ["a1", "a2"]})


def pair(members: list[str], target: str = "b", source: str = "a") -> PlannedPair:
    return PlannedPair(source=source, target=target, source_head="h", target_head="h", members=members)


def plan_of(*pairs: PlannedPair) -> SessionPlan:
    return SessionPlan(hash=hash_pairs(pairs), pairs=list(pairs), made_at=0.0)


def test_the_hash_covers_who_from_where_to_where_and_in_which_order():
    hashes = {
        hash_pairs([pair(["x", "y"])]), hash_pairs([pair(["y", "x"])]), hash_pairs([pair(["x"])]), hash_pairs([]),
        hash_pairs([pair(["x", "y"], "c")]), hash_pairs([pair(["x", "y"], "b", "c")]), hash_pairs([pair(["x,y"])]),
        hash_pairs([pair(["x"]), pair(["y"])]),
    }  # fmt: skip
    assert len(hashes) == 8
    assert hash_pairs([pair(["x", "y"])]) == "d2d88a9e3180c925"
    assert all(len(one) == 16 and set(one) <= set("0123456789abcdef") for one in hashes)


def test_who_of_a_plan_is_gone():
    plan = plan_of(pair(["x", "y"]), pair(["z"], "b", "c"))
    assert missing_members(plan, {"a": ["x", "y"], "c": ["z"]}) == []
    assert missing_members(plan, {"a": ["x", "z"]}) == ["y", "z"]


def test_differences_in_words():
    old = plan_of(pair(["x", "y", "z"]))
    assert describe_difference(old, plan_of(pair(["x", "u"]), pair(["z"], "c"))) == (
        "1 no longer move: y; 1 move as well: u; 1 go elsewhere: z"
    )
    assert describe_difference(old, plan_of(pair(["y", "x", "z"]))) == "the same subscribers in another order"


def test_lists_are_shown_in_part():
    assert shorten_names(["a", "b"]) == "a, b"
    assert shorten_names(list("abcde")) == "a, b, c, d, e"
    assert shorten_names(list("abcdefg")) == "a, b, c, d, e and 2 more"
    assert empty_plan_reason({}) == "the source has no subscribers"
    assert empty_plan_reason({"NoPlace": ["a"]}) == "1 no edge can take it: a"
