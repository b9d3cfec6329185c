"""Admission rule by rule: what reserves a broker, the order of the queue, and which edges can give or take."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.core.session.made import context_of, fleet, request, session

from plimsoll.core.session import EdgeView, FleetView, HeadView, admission
from plimsoll.core.session.request import publisher_plan


def test_an_ended_session_keeps_its_brokers_until_the_moment_it_names():
    held = session("held", phase="Failed", ended_at=90.0, holds_until=110.0, sources=["a"])
    context = context_of(held, now=109.9)
    assert admission.holds_brokers(context, held)
    assert admission.blocked_by(context, session("s"), {"a"}) == "waits for held (a)"
    context.outbox.now = 110.0
    assert not admission.holds_brokers(context, held)
    assert admission.blocked_by(context, session("s"), {"a"}) == ""


def test_the_cap_of_the_fleet_does_not_count_for_parents():
    context = context_of(session("one", phase="Draining", sources=["a"], targets=["b"]), max_sessions=1)
    assert admission.blocked_by(context, session("s"), {"w"}).startswith("1 sessions are running")
    assert admission.blocked_by(context, session("s", kind="spread"), {"w"}) == ""


@pytest.mark.parametrize(
    ("fields", "waits_for"),
    [
        ({}, ""),  # the source is their parent's
        ({"targets": ["c"]}, "one (c)"),
        ({"sources": ["b"]}, "one (b)"),  # it is the target of the other
        ({"parent": "other"}, "one (a)"),
        ({"parent": ""}, "one (a)"),
    ],
)
def test_children_of_one_parent_share_its_source_and_nothing_else(fields: dict[str, Any], waits_for: str):
    parent = session("p", kind="drain", phase="Draining", sources=["a"])
    running = session("one", phase="Draining", parent="p", sources=["a"], targets=["b" if "sources" in fields else "c"])
    own = {"parent": "p", "sources": ["a"], "targets": ["b"], **fields}
    context = context_of(parent, session("other", kind="drain"), running)
    wait = admission.blocked_by(context, session("s", **own), {*own["sources"], *own["targets"]})
    assert wait == (f"waits for {waits_for}" if waits_for else "")


@pytest.mark.parametrize(
    ("fields", "is_ahead"),
    [
        ({}, True),
        ({"retry_at": 100.0}, True),
        ({"retry_at": 100.1}, False),
        ({"phase": "Planned", "approved": "hash"}, True),
        ({"phase": "Planned"}, False),
        ({"queued_at": 60.0}, False),
    ],
)
def test_who_stands_in_the_queue_goes_first_if_it_could_begin(fields: dict[str, Any], is_ahead: bool):
    other = session("first", **{"queued_at": 40.0, "sources": ["a"], **fields})
    context = context_of(other, requests=(request("first", source="a"),), now=100.0)
    said = admission.blocked_by(context, session("s", queued_at=50.0), {"a"})
    assert said == ("waits for first (a)" if is_ahead else "")


def test_a_session_whose_object_is_not_known_keeps_no_place_in_the_queue():
    context = context_of(session("first", sources=["a"]))
    assert not admission.is_queued(context, session("first", sources=["a"]))
    assert admission.blocked_by(context, session("s", queued_at=50.0), {"a"}) == ""


def test_a_session_that_is_over_keeps_no_place_in_the_queue():
    over = session("s", phase="Planned", approved="hash", ended_at=90.0)
    assert not admission.is_queued(context_of(over, requests=(request("s", source="a"),)), over)


def test_a_refusal_names_the_field_that_is_missing():
    context = context_of()
    without_source = admission.refusal(context, request("s", select={"count": 1}))
    without_select = admission.refusal(context, request("s", source="a"))
    assert without_source is not None
    assert without_select is not None
    assert without_source.message.endswith("set spec.source")
    assert without_select.message.endswith("set spec.select")


def test_an_edge_on_its_way_out_gives_and_does_not_take():
    context = context_of(view=fleet(b={"leaving": True}, c={"ready": False, "leaving": True}))
    for name in "bc":
        why = admission.unready_target(context, name)
        assert why is not None
        assert why.reason == "TargetNotReady"
        assert admission.unready_source(context, name) is None


def test_a_view_that_is_too_old_may_be_mended_by_another_attempt():
    context = context_of(now=100.0)
    context.outbox.now = 100.0 + context.timings.view
    assert admission.unready_source(context, "a") is None
    context.outbox.now += 0.1
    why = admission.unready_source(context, "a")
    assert why is not None
    assert (why.reason, why.again) == ("NoView", True)


@pytest.mark.parametrize(
    ("phase", "takes"),
    [("Requested", True), ("Negotiating", True), ("Planned", True), ("Sampling", False), ("Stabilizing", False)],
)
def test_a_drain_closes_its_edge_once_it_is_agreed_upon_and_while_it_runs(phase: Any, takes: bool):
    drain = session("drain", phase=phase, kind="drain", sources=["b"])
    context = context_of(drain)
    assert admission.draining_edges(context) == (frozenset() if takes else frozenset({"b"}))
    assert (admission.unready_target(context, "b") is None) == takes


def names(context: Any, **fields: Any) -> list[str]:
    return [edge.name for edge in admission.target_candidates(context, request("s", source="a", **fields), ["a"])]


def test_a_named_target_that_cannot_take_is_no_candidate():
    assert names(context_of(), target="b") == ["b"]
    assert names(context_of(view=fleet(b={"cordoned": True})), target="b") == []


def test_other_clusters_are_candidates_only_when_the_own_has_no_edge_left():
    full = {name: {"cordoned": True} for name in "bc"}
    assert names(context_of(), scope="Global") == ["b", "c"]
    assert names(context_of(view=fleet(**full)), scope="Global") == ["w"]
    assert names(context_of(view=fleet(**full)), scope="Local") == []


def test_children_of_one_parent_do_not_wait_for_the_source_that_it_keeps():
    parent = session("parent", phase="Draining", kind="spread", sources=["a"])
    one = session("one", parent="parent", sources=["a"], targets=["b"], queued_at=10.0)
    two = session("two", parent="parent", sources=["a"], targets=["c"], queued_at=20.0)
    context = context_of(parent, one, two, requests=(request("one", source="a"), request("two", source="a")))
    assert admission.blocked_by(context, two, two.brokers) == ""
    assert admission.blocked_by(context, session("foreign", queued_at=20.0), {"a"}) == "waits for one (a), parent (a)"


# -- which sessions wait for others


def test_a_parent_does_not_wait_for_its_children():
    parent = session("parent", kind="spread", sources=["a"])
    child = session("child", phase="Draining", parent="parent", sources=["a"], targets=["b"])
    assert admission.blocked_by(context_of(parent, child), parent, {"a"}) == ""


def test_a_child_goes_ahead_of_others_in_the_queue_as_they_may_wait_for_its_parent():
    parent = session("parent", phase="Draining", kind="spread", sources=["a"])
    first = session("first", sources=["b"], targets=["c"], queued_at=10.0)
    child = session("child", parent="parent", sources=["a"], targets=["c"], queued_at=20.0)
    context = context_of(parent, first, child, requests=(request("first", source="b"), request("child", source="a")))
    assert admission.blocked_by(context, child, child.brokers) == ""
    assert admission.blocked_by(context, session("late", queued_at=30.0), {"c"}) == "waits for first (c), child (c)"


def test_who_moves_by_an_approved_plan_waits_in_no_queue():
    running = session("s", phase="Preparing", approved="hash", sources=["a"])
    assert not admission.is_queued(context_of(running, requests=(request("s", source="a"),)), running)


# -- unknown state


def test_without_a_view_no_name_is_a_cluster_and_no_edge_gives_or_takes():
    context = context_of()
    context.fleet, context.fleet_observed_at = FleetView(), float("-inf")
    assert not context.fleet.is_cluster("east")
    for why in (admission.unready_source(context, "a"), admission.unready_target(context, "a")):
        assert why is not None
        assert (why.reason, why.again) == ("NoView", True)


def test_an_edge_whose_head_is_not_known_may_give_later():
    context = context_of()
    context.fleet = FleetView({}, context.fleet.edges)
    why = admission.unready_source(context, "a")
    assert why is not None
    assert (why.reason, why.again) == ("HeadNotReady", True)


# -- who may take


def test_only_a_drain_closes_its_edge():
    context = context_of(session("s", phase="Draining", sources=["b"], targets=["c"]))
    assert admission.draining_edges(context) == frozenset()
    assert admission.unready_target(context, "b") is None


def test_neither_a_source_nor_who_is_excluded_is_among_the_edges_of_a_target():
    assert names(context_of(), target="east") == ["b", "c"]
    assert names(context_of(), target="east", exclusions={"brokers": ["c"]}) == ["b"]


APART = FleetView(
    {f"{name}-head": HeadView(f"{name}-head", name, 1, endpoint="tcp://h") for name in ("east", "mid", "west", "far")},
    {f"{name[0]}-0": EdgeView(f"{name[0]}-0", name, f"{name}-head") for name in ("east", "west", "far")},
    neighbors={"east": frozenset(["mid"]), "mid": frozenset(["east", "west"]), "west": frozenset(["mid"]),
               "far": frozenset()},
)  # fmt: skip


def test_clusters_are_linked_over_any_number_of_heads():
    assert APART.are_linked("east", "west")
    assert APART.are_linked("far", "far")
    assert not APART.are_linked("east", "far")
    assert not APART.are_linked("far", "west")
    assert FleetView().are_linked("east", "far"), "the links are not known"


def test_an_edge_to_which_no_links_lead_is_no_target():
    context = context_of(view=APART)
    asked = request("s", source="e-0", action="Drain", scope="Global")
    assert [edge.name for edge in admission.target_candidates(context, asked, ["e-0"])] == ["w-0"]
    far = request("s", source="f-0", action="Drain", scope="Global")
    assert admission.target_candidates(context, far, ["f-0"]) == []


def test_a_target_to_which_no_links_lead_is_refused_with_the_way_to_have_it():
    context = context_of(view=APART)
    for source, target in (("e-0", "f-0"), ("far", "w-0"), ("east", "far")):
        why = admission.unlinked(context, request("s", source=source, target=target, scope="Global"))
        assert why is not None
        assert (why.reason, "neighbors" in why.message) == ("NotLinked", True)
    assert admission.unlinked(context, request("s", source="e-0", target="west", scope="Global")) is None
    assert admission.unlinked(context, request("s", source="e-0", scope="Global")) is None


def test_publishers_go_to_no_head_to_which_no_links_lead():
    asked = request("s", source="east", action="MovePublishers", scope="Global")
    heads = publisher_plan.target_heads(context_of(view=APART), asked)
    assert [head.cluster for head in heads] == ["mid", "west"]


def cut(head: str, *others: str) -> FleetView:
    """The fleet of `APART`, where a head reports that its links to others are down."""
    heads = {**APART.heads, head: replace(APART.heads[head], report={"neighbors_down": list(others)})}
    return replace(APART, heads=heads)


@pytest.mark.parametrize("view", [cut("mid-head", "west-head"), cut("west-head", "mid-head")])
def test_a_target_behind_a_link_that_is_down_is_not_chosen(view: FleetView):
    drain = request("s", source="e-0", action="Drain", scope="Global")
    assert admission.target_candidates(context_of(view=view), drain, ["e-0"]) == []
    asked = request("s", source="east", action="MovePublishers", scope="Global")
    assert [head.cluster for head in publisher_plan.target_heads(context_of(view=view), asked)] == ["mid"]
    assert view.are_linked("east", "west"), "the link is declared all the same"


def test_another_link_that_is_down_hinders_no_target():
    drain = request("s", source="e-0", action="Drain", scope="Global")
    for view in (cut("mid-head"), cut("mid-head", "gone-head"), cut("far-head", "mid-head")):
        found = admission.target_candidates(context_of(view=view), drain, ["e-0"])
        assert [edge.name for edge in found] == ["w-0"]
    assert FleetView().are_joined("east", "far"), "the links are not known"
