"""Exact time limits, plans that are not made yet, and the reasons on the way to an approved plan."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.core.session.model import World, spec_of

from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import EdgeView, EmitEvent, EngineSettings, FleetView, HeadView, Session, SessionRequest
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.request.lifecycle import (
    accept_plan,
    apply_request_change,
    begin_execution,
    make_children,
    plan_summary,
    request_fingerprint,
    step_negotiating,
    step_planned,
    step_requested,
    step_sampling,
)
from plimsoll.core.session.session_plan import Offer, PlannedPair, SessionPlan
from plimsoll.core.session.state import Phase, SessionKind
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec

NOW = 1000.0
MEMBERS = ["a1", "a2"]


def request_of(parent: str = "", **fields: Any) -> SessionRequest:
    given = {"source": {"name": "a"}, "target": {"name": "b"}, "select": {"count": 2}, **fields}
    return SessionRequest("s", "uid", 1, spec_of(**{"scope": "Local", "mode": "Execute", **given}), parent)


def context_of(now: float = NOW, policy: PolicySpec | None = None) -> EngineContext:
    context = EngineContext(3, EngineSettings())
    context.outbox.now = context.fleet_observed_at = now
    edges = {name: EdgeView(name, "east", "east-head") for name in "abc"}
    policies = {} if policy is None else {"east": policy}
    context.fleet = FleetView({"east-head": HeadView("east-head", "east", 1)}, edges, policies)
    return context


def session_of(context: EngineContext, phase: Phase = "Requested", **fields: Any) -> Session:
    given = {"requested_at": NOW, "queued_at": NOW, "phase_at": NOW, "deadline_at": NOW + 100.0, **fields}
    session = Session(**{"uid": "uid", "name": "s", "phase": phase, "sources": ["a"], "targets": ["b"], **given})
    context.table.put(session)
    return session


def plan_of(*members: str, pairs: int = 1) -> SessionPlan:
    made = [
        PlannedPair(source="a", target=target, source_head="east-head", target_head="east-head", members=list(members))
        for target in "bcdefghi"[:pairs]
    ]
    return SessionPlan(hash="0123", pairs=made, made_at=NOW)


def serve(context: EngineContext, *names: str) -> None:
    """The head lists the subscribers of a."""
    context.listings.of("uid", "a", "east-head")
    asked = next(listing.query_id for listing in context.listings._listings.values())
    context.listings.receive("east-head", msg.SubscriberPage(asked, "a", 1, list(names), False))
    assert context.listings.of("uid", "a", "east-head") == list(names)


def told(context: EngineContext) -> list[tuple[str, str]]:
    return [(effect.reason, effect.type) for effect in context.outbox.effects if isinstance(effect, EmitEvent)]


# ---------------------------------------------------------------- what is asked for


def test_a_fingerprint_is_the_same_in_every_version():
    """It is stored: with a different one, a session that waits for its approval would begin again after an upgrade."""
    assert request_fingerprint(request_of()) == "2f4d1673e56b"


def test_what_has_no_fingerprint_yet_has_not_changed():
    context = context_of()
    session = session_of(context)
    assert apply_request_change(context, request_of(), session) is session
    assert not told(context)


# ---------------------------------------------------------------- moments


@pytest.mark.parametrize(("now", "phase"), [(NOW + 99.9, "Requested"), (NOW + 100.0, "Rejected")])
def test_the_queue_ends_at_its_deadline(now: float, phase: str):
    context = context_of(now)
    context.fleet, context.fleet_observed_at = FleetView(), float("-inf")
    assert step_requested(context, request_of(), session_of(context)).phase == phase


@pytest.mark.parametrize("deadline", [7.0, 100.0])
def test_negotiation_ends_at_the_first_of_its_time_and_the_deadline(deadline: float):
    for after, phase in ((min(deadline, 15.0) - 0.1, "Negotiating"), (min(deadline, 15.0), "Rejected")):
        context = context_of(NOW + after)
        context.fleet = FleetView()
        session = session_of(context, "Negotiating", deadline_at=NOW + deadline)
        assert step_negotiating(context, request_of(), session).phase == phase


def test_a_mediator_without_a_recent_view_ends_no_negotiation_before_the_deadline():
    for after, phase, reason in ((99.9, "Negotiating", "NoView"), (100.0, "Rejected", "DeadlineExceeded")):
        context = context_of(NOW + after)
        context.fleet_observed_at = NOW
        session = session_of(context, "Negotiating", deadline_at=NOW + 100.0)
        ended = step_negotiating(context, request_of(), session)
        assert (ended.phase, ended.reason) == (phase, reason)


@pytest.mark.parametrize("deadline", [7.0, 100.0])
def test_a_sample_ends_at_the_first_of_its_time_and_the_deadline(deadline: float):
    for after, phase in ((min(deadline, 15.0) - 0.1, "Sampling"), (min(deadline, 15.0), "Rejected")):
        context = context_of(NOW + after)
        session = session_of(context, "Sampling", deadline_at=NOW + deadline)
        assert step_sampling(context, request_of(), session).phase == phase


@pytest.mark.parametrize(("kind", "after"), [("balance", 35.0), ("move", 15.0)])
def test_only_who_samples_for_a_policy_has_its_time(kind: SessionKind, after: float):
    press = parse_block(PolicySpec, {"type": "Padres", "estimation": {"type": "Press", "press": {"timeout": "20s"}}})
    for now, phase in ((NOW + after - 0.1, "Sampling"), (NOW + after, "Rejected")):
        context = context_of(now, press)
        session = session_of(context, "Sampling", kind=kind)
        assert step_sampling(context, request_of(), session).phase == phase


def test_a_child_ends_before_its_parent_closes():
    context = context_of()
    parent = session_of(context, "Draining", kind="spread", started_at=NOW, deadline_at=NOW + 40.0)
    context.table.put(replace(parent, uid="parent", targets=[]))
    session = session_of(context, parent="parent")
    begun = step_requested(context, request_of("parent", deadline="10m"), session)
    assert (begun.phase, begun.deadline_at) == ("Negotiating", NOW + 40.0 - 5.0 / 2)


# ---------------------------------------------------------------- the subscribers of the source are listed again


def test_an_attempt_lists_the_subscribers_of_its_source_again():
    context = context_of()
    serve(context, "a1")
    assert step_requested(context, request_of(), session_of(context)).phase == "Negotiating"
    assert context.listings.of("uid", "a", "east-head") is None


def test_a_session_that_begins_to_move_forgets_the_listing_of_its_source():
    context = context_of()
    serve(context, "a1")
    assert begin_execution(context, session_of(context, "Sampling", plan=plan_of("a1"))).phase == "Preparing"
    assert context.listings.of("uid", "a", "east-head") is None


# ---------------------------------------------------------------- plans


def test_a_drain_by_replay_has_no_pair_of_edges_to_judge():
    world = World()
    world.fill("a", 4)
    uid = world.ask("s", source="a", action="Drain", handover="Replay")
    world.until_over(uid)
    assert (world.session(uid).phase, world.serves["a"]) == ("Succeeded", set())


def test_a_plan_without_approval_is_never_carried_out():
    context = context_of()
    serve(context, *MEMBERS)
    session = session_of(context, "Sampling", plan=plan_of(*MEMBERS))
    after = step_sampling(context, request_of(approval={"policy": "Manual"}), session)
    assert (after.phase, after.reason, after.approved) == ("Planned", "AwaitingApproval", "")
    assert told(context) == [("AwaitingApproval", "Normal")]


def test_an_approved_plan_that_cannot_be_kept_is_told_as_a_warning():
    context = context_of()
    serve(context, "a2", "a3")
    session = session_of(context, "Sampling", plan=plan_of(*MEMBERS), approved="0123")
    after = step_sampling(context, request_of(approval={"policy": "Manual"}), session)
    assert (after.phase, after.reason, after.approved) == ("Planned", "PlanStale", "")
    assert after.message == "no longer at their source: a1; 1 no longer move: a1; 1 move as well: a3"
    assert told(context) == [("PlanStale", "Warning"), ("AwaitingApproval", "Normal")]


def test_only_who_runs_keeps_its_subscribers_from_others():
    world = World()
    world.fill("a", 4)
    waiting = world.ask("one", source="a", target="b", select={"count": 4}, approval={"policy": "Manual"})
    world.until(lambda: world.mediator.sessions[waiting].phase == "Planned")
    other = world.ask("two", source="a", target="c", select={"count": 4})
    world.until_over(other)
    assert world.session(other).counts()["moved"] == 4


def test_an_approval_asks_those_who_had_agreed_and_no_others():
    context = context_of()
    offers = [
        Offer(edge="c", metric="input", difference=0.5, asked_at=NOW, answer="BUSY", message="in another"),
        Offer(edge="b", metric="input", difference=0.4, asked_at=NOW, answer="OK", message="yes"),
    ]
    session = session_of(context, "Planned", plan=plan_of(*MEMBERS), kind="balance", offers=offers)
    request = request_of(approval={"policy": "Manual", "planHash": "0123"})
    context.requests["uid"] = request
    after = step_planned(context, request, session)
    assert (after.phase, after.approved) == ("Negotiating", "0123")
    assert after.offers == [Offer(edge="b", metric="input", difference=0.4)]
    assert told(context) == [("Approved", "Normal")]


def test_a_summary_names_five_pairs():
    ways = [f"1 from a to {target}" for target in "bcdef"]
    assert plan_summary(plan_of("x", pairs=5)) == f"move {', '.join(ways)}"
    assert plan_summary(plan_of("x", pairs=6)) == f"move {', '.join(ways)} and 1 more pairs"


# ---------------------------------------------------------------- moments, and whether another attempt may help


def test_an_ended_session_does_not_begin_again_when_it_is_changed():
    context = context_of()
    dry = session_of(context, "Planned", plan=plan_of("a1"), asked="another", ended_at=NOW - 1)
    assert apply_request_change(context, request_of(), dry) is dry
    assert not told(context)


@pytest.mark.parametrize(("now", "phase"), [(NOW + 4.9, "Requested"), (NOW + 5.0, "Negotiating")])
def test_another_attempt_begins_at_its_time(now: float, phase: str):
    context = context_of(now)
    assert step_requested(context, request_of(), session_of(context, retry_at=NOW + 5.0)).phase == phase


def test_a_session_that_begins_again_does_not_wait_for_an_edge_that_had_agreed_before():
    context = context_of(policy=parse_block(PolicySpec, {"type": "Padres"}))
    context.table.put(replace(session_of(context, "Draining"), uid="other", sources=["b"], targets=["c"]))
    session = session_of(context, kind="balance", targets=["b"])
    begun = step_requested(context, request_of(target=None, select=None), session)
    assert (begun.phase, begun.targets) == ("Negotiating", [])


@pytest.mark.parametrize(("now", "phase"), [(NOW + 99.9, "Planned"), (NOW + 100.0, "Rejected")])
def test_a_plan_waits_for_its_approval_until_its_deadline(now: float, phase: str):
    context = context_of(now)
    after = step_planned(
        context, request_of(approval={"policy": "Manual"}), session_of(context, "Planned", plan=plan_of("a1"))
    )
    assert after.phase == phase


def test_who_waited_in_vain_may_try_again():
    context = context_of(NOW + 100.0)
    context.fleet, context.fleet_observed_at = FleetView(), float("-inf")
    queued = step_requested(context, request_of(), session_of(context))
    context = context_of(NOW + 15.0)
    sampled = step_sampling(context, request_of(), session_of(context, "Sampling"))
    assert [(each.reason, each.may_retry) for each in (queued, sampled)] == [("QueueTimeout", True), ("NoSample", True)]


@pytest.mark.parametrize(("began_at", "later", "phase"), [
    (NOW + 5, 0.0, "Sampling"), (NOW + 5, 60.0, "Succeeded"), (NOW - 5, 0.0, "Succeeded"),
])  # fmt: skip
def test_a_mediator_that_just_began_looks_for_who_takes_until_it_has_heard_of_them(
    began_at: float, later: float, phase: str
):
    context = context_of(NOW + 6 + later)
    context.started_at = began_at
    edges = {"a": EdgeView("a", "east", "east-head")} | {x: EdgeView(x, "east", "east-head", ready=False) for x in "bc"}
    context.fleet = FleetView(context.fleet.heads, edges, {})
    context.listings.of_all = lambda *_: {"a": MEMBERS}
    session = session_of(context, "Sampling", targets=[], kind="drain")
    assert step_sampling(context, request_of(target=None, select={}, action="Drain"), session).phase == phase


def test_a_session_that_found_no_target_may_try_again():
    context = context_of(NOW + 15.0)
    rejected = step_negotiating(
        context, request_of(exclusions={"brokers": ["b", "c"]}), session_of(context, "Negotiating")
    )
    assert (rejected.phase, rejected.reason, rejected.may_retry) == ("Rejected", "NoTarget", True)


def test_who_wants_replay_from_a_log_that_is_too_short_may_try_again():
    context = context_of(NOW + 15.0)
    report = {"log_limit_bytes": 100.0, "log_bytes_per_second": 1000.0}
    context.fleet = FleetView({"east-head": HeadView("east-head", "east", 1, report=report)}, context.fleet.edges)
    refused = step_negotiating(context, request_of(handover="Replay"), session_of(context, "Negotiating"))
    assert (refused.phase, refused.reason, refused.may_retry) == ("Rejected", "LogTooShort", True)


# ---------------------------------------------------------------- a plan that is made


def test_once_there_is_a_plan_nothing_is_kept_of_what_it_was_made_from():
    context = context_of()
    serve(context, *MEMBERS)
    after = step_sampling(context, request_of(mode="DryRun"), session_of(context, "Sampling"))
    assert (after.phase, after.reason, after.is_over) == ("Planned", "DryRun", True)
    assert not context.listings._listings


@pytest.mark.parametrize(
    ("kind", "rejected", "stop", "reason", "message"),
    [
        ("drain", {}, "", "Empty", "the source has no subscribers"),
        ("drain", {"Excluded": ["a1"]}, "", "NothingToMove", "1 is excluded by the session: a1"),
        ("move", {}, "", "NothingToMove", "the source has no subscribers"),
        ("move", {}, "Balanced: all is well", "NothingToMove", "Balanced: all is well"),
        ("move", {"Excluded": ["a1"]}, "Balanced", "NothingToMove", "1 is excluded by the session: a1"),
    ],
)
def test_why_a_plan_is_empty(kind: SessionKind, rejected: dict[str, list[str]], stop: str, reason: str, message: str):
    context = context_of()
    plan = replace(plan_of(pairs=0), rejected=rejected, stop=stop)
    after = accept_plan(context, request_of(), session_of(context, "Sampling", kind=kind), plan)
    assert (after.phase, after.reason, after.message) == ("Succeeded", reason, message)


def test_names_of_children_are_the_same_in_every_version():
    """A restarted mediator, in another version, must not create them twice."""
    session = session_of(context_of(), kind="spread", name="drain-a")
    [child] = make_children(session, plan_of("a1"))
    assert child.name == "drain-a-dc9957-0"
