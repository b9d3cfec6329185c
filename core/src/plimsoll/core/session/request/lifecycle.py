"""From a request to an approved plan: the queue, the negotiation, the sample, the plan and its approval."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Literal

from msgspec.structs import replace

from plimsoll.core.session import admission
from plimsoll.core.session.completion import closing_seconds, end_attempt, end_by_verdict, end_negotiation
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import EdgeView, FleetView, SessionRequest
from plimsoll.core.session.request import (
    fleet_plan,
    handover_method,
    negotiation,
    planner,
    policy_plan,
    publisher_plan,
    session_kind,
    shuffle_plan,
    slice_plan,
)
from plimsoll.core.session.session_plan import SessionPlan
from plimsoll.core.session.state import FLEET_WIDE_KINDS, ChildSession, Session, SessionKind, SessionVerdict
from plimsoll.core.spec.resources import to_mapping

FINGERPRINTED_FIELDS = ("scope", "source", "target", "action", "select", "candidates", "exclusions", "handover")


def request_fingerprint(request: SessionRequest) -> str:
    """A hash of the fields that a plan is made from, to notice that one of them changes under a plan."""
    plain = to_mapping(request.spec, defaults=True)
    if isinstance(select := plain.get("select"), dict) and not select.get("bundles"):
        select.pop("bundles", None)  # a later field: without it the hash is what earlier versions have stored
    found = [plain.get(name) for name in FINGERPRINTED_FIELDS]
    found += [slices] if (slices := plain.get("slices")) is not None else []  # a later field, too
    return sha256(repr(found).encode()).hexdigest()[:12]


def apply_request_change(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Take a changed specification: without an approved plan the session begins again, a running one ignores it."""
    if session.is_over or not session.asked or session.asked == request_fingerprint(request):
        return session
    if session.phase in ("Negotiating", "Sampling", "Planned"):
        text = "the request has changed"
        session = replace(session, plan=None, approved="", wanted=None, asked="", queued_at=context.now, offers=[])
        return _with_queue_deadline(context, request, session.entered("Requested", context.now, "Changed", text))
    text = (
        f"{', '.join(FINGERPRINTED_FIELDS)} do not change under a plan that runs: stop the session, or create another"
    )
    context.outbox.emit(session, "SpecIgnored", text, "Warning")
    return replace(session, asked=request_fingerprint(request))


def step_requested(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Wait in the queue, or for the next attempt."""
    if session.retry_at is not None and context.now < session.retry_at:
        return session
    if not context.is_fleet_known:
        return _end_if_overdue(context, request, session.because("NoView", "the state of the fleet is not known yet"))
    if (why := _refusal(context, request)) is not None:
        return end_by_verdict(context, request, session, why)
    session = _with_parties(context, request, session)
    if session.kind in ("move", "balance", "drain") and (why := admission.missing_party(context, session)) is not None:
        return end_by_verdict(context, request, session, why)
    if wait := admission.blocked_by(context, session, session.brokers):
        return _wait_in_queue(context, request, session, wait)
    return _begin_attempt(context, request, session)


def _refusal(context: EngineContext, request: SessionRequest) -> SessionVerdict | None:
    kind = session_kind.kind_of(request, context.fleet)
    if request.spec.scope == "Global" and (why := admission.unlinked(context, request)) is not None:
        return why
    if request.spec.action == "Unload" and (why := fleet_plan.unload_refusal(context, request)) is not None:
        return why
    if kind == "publishers":
        return publisher_plan.refusal(context, request)
    if kind == "slices":
        return slice_plan.refusal(context, request)
    if kind in FLEET_WIDE_KINDS:
        return shuffle_plan.refusal(context, request)
    return admission.refusal(context, request, by_policy=kind == "balance")


def _with_parties(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """The session with its kind and edges as the fleet has them now; in the queue they may still change."""
    kind = session_kind.kind_of(request, context.fleet)
    sources, targets = _parties_of(kind, request, context.fleet)
    found = {"kind": kind, "sources": sources, "targets": targets, "triggered": request.spec.trigger is not None}
    known = {name: getattr(session, name) for name in found}
    return session if known == found else replace(session, **found)


def _parties_of(kind: SessionKind, request: SessionRequest, fleet: FleetView) -> tuple[list[str], list[str]]:
    """Sources, and targets where the request names one edge; parents leave targets to their children."""
    spec = request.spec
    if spec.source is None:
        raise AssertionError("a request without a source is refused before this")
    if kind == "publishers":
        head = fleet.head_of(spec.source.name)
        return ([] if head is None else [head.name]), []
    if kind == "slices":
        return [slice_plan.group_of(request)], []
    if kind in FLEET_WIDE_KINDS:
        return shuffle_plan.shuffled_edges(fleet, request), []
    sources = [name for name in fleet.resolve(spec.source.name) if name not in spec.exclusions.brokers]
    return sources, [spec.target.name] if spec.target is not None and kind in ("move", "balance") else []


def _wait_in_queue(context: EngineContext, request: SessionRequest, session: Session, wait: str) -> Session:
    wait = admission.with_place(context, session, wait)
    if session.reason != "Queued":
        context.outbox.emit(session, "Queued", wait)
    return _end_if_overdue(context, request, session.because("Queued", wait))


def _end_if_overdue(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    if context.now < session.deadline_at:
        return session
    message = f"limits.queueFor has passed: {session.message}"
    return end_by_verdict(context, request, session, SessionVerdict(reason="QueueTimeout", message=message, again=True))


def _begin_attempt(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Begin an attempt and set its deadline. A child ends before its parent, which has to count its outcome."""
    deadline = context.now + context.settings.seconds(request.spec.deadline)
    parent = context.table.get(session.parent)
    if parent is not None:
        deadline = min(deadline, parent.deadline_at - closing_seconds(context, parent) / 2)
    context.forget_answers(session.uid)
    asked = session.asked or request_fingerprint(request)
    session = replace(session, started_at=context.now, deadline_at=deadline, asked=asked)
    session = replace(session, retry_at=None, holds_until=None)
    return session.entered("Negotiating", context.now)


def step_negotiating(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Check that all edges are ready, and choose a target where the request names none."""
    session, why = _agree_on_target(context, request, session)
    return end_negotiation(context, request, session, why)


def _agree_on_target(
    context: EngineContext, request: SessionRequest, session: Session
) -> tuple[Session, SessionVerdict | None]:
    for source in session.sources:
        if (why := admission.unready_source(context, source)) is not None:
            return session, why
    for target in session.targets:
        if (why := admission.unready_target(context, target)) is not None:
            return session, why
    able = admission.target_candidates(context, request, session.sources)
    if not session.targets and not session.is_parent:
        able = [edge for edge in able if not admission.blocked_by(context, session, {edge.name})]
        if able:
            return _with_target(context, session, able), None
    if not able:
        return session, SessionVerdict(reason="NoTarget", message="no edge can take subscribers now", again=True)
    if (
        request.spec.handover == "Replay"
        and not session.is_parent
        and (why := _replay_refusal(context, session)) is not None
    ):
        return session, why
    return session, None


def _with_target(context: EngineContext, session: Session, able: list[EdgeView]) -> Session:
    unit = planner.placer_unit(context.fleet.edges[session.sources[0]])
    port = context.settings.placer.place(unit, [planner.placer_port(edge) for edge in able])
    return session if port is None else replace(session, targets=[port.name])


def _replay_refusal(context: EngineContext, session: Session) -> SessionVerdict | None:
    choice = handover_method_of(context, "Replay", session.sources[0], session.targets[0])
    return SessionVerdict(reason="LogTooShort", message=choice.why, again=True) if choice.refused else None


def handover_method_of(
    context: EngineContext, handover: str, source: str, target: str
) -> handover_method.HandoverMethod:
    """Drain or replay between two edges that are both in the fleet."""
    edges = context.fleet.edges
    heads = context.fleet.heads
    across = edges[source].head != edges[target].head
    return handover_method.choose_method(
        handover, edges[source], heads[edges[source].head], context.settings, across=across
    )


def step_sampling(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Wait for the subscribers of the sources, and for the plan's other inputs."""
    edges = context.fleet.edges
    served = context.listings.of_all(
        session.uid, [(name, edges[name].head) for name in session.sources if name in edges]
    )
    is_known = served is not None and all(name in served for name in session.sources)
    chooses = session.chooses_by_policy
    if is_known and not chooses and _awaits_targets(context, request, session):
        return session
    if served is not None and is_known and (after := _with_plan(context, request, session, served)) is not None:
        return after
    patience = policy_plan.sample_seconds(context, session) if chooses else context.timings.sample
    if context.now < min(context.waiting_since(session) + patience, session.deadline_at):
        return session
    message = f"the subscribers of {planner.shorten_names(session.sources)} were not listed in time"
    if served is not None:
        message = f"the subscription profiles of {planner.shorten_names(session.sources)} did not come in time"
        if fault := context.profile_queries.fault_of(session.uid):
            message += f"; the last one cannot be read: {fault}"
    return end_by_verdict(context, request, session, SessionVerdict(reason="NoSample", message=message, again=True))


def _awaits_targets(context: EngineContext, request: SessionRequest, session: Session) -> bool:
    """Soon after a restart no target may be known yet although there was one before: wait before planning without."""
    until = context.started_at + min(context.timings.negotiate, context.timings.sample)
    is_early = session.phase_at < context.started_at and context.now < min(until, session.deadline_at)
    return is_early and not admission.target_candidates(context, request, session.sources)


def _with_plan(
    context: EngineContext, request: SessionRequest, session: Session, served: Mapping[str, list[str]]
) -> Session | None:
    """Execute an approved plan if all its members are still at their sources; else make a new one if possible."""
    old = session.plan
    is_approved = old is not None and session.approved == old.hash
    missing = planner.missing_members(old, served) if old is not None and is_approved else []
    if is_approved and not missing:
        return begin_execution(context, session)
    new, wanted = (
        _plan_by_policy(context, request, session, served)
        if session.chooses_by_policy
        else make_selection_plan(context, request, session, served)
    )
    if new is None:
        return None
    session = replace(session, wanted=wanted)
    if old is None or not is_approved:
        return accept_plan(context, request, session, new)
    text = f"no longer at their source: {planner.shorten_names(missing)}; {planner.describe_difference(old, new)}"
    context.outbox.emit(session, "PlanStale", text, "Warning")
    return accept_plan(context, request, replace(session, approved=""), new, stale=text)


def _plan_by_policy(
    context: EngineContext, request: SessionRequest, session: Session, served: Mapping[str, list[str]]
) -> tuple[SessionPlan | None, int | None]:
    """The plan of a policy; None while it waits for its inputs."""
    resting = context.recently_moved(context.settings.seconds(request.spec.limits.move_interval))
    chosen = fleet_plan.make_fleet_plan if session.is_fleet_wide else policy_plan.make_policy_plan
    found = chosen(context, request, session, served, resting, _members_of_other_sessions(context, session))
    return (None if found is None else _with_handover_method(context, request, found)), None


def make_selection_plan(
    context: EngineContext, request: SessionRequest, session: Session, served: Mapping[str, list[str]]
) -> tuple[SessionPlan, int | None]:
    """A plan for the present subscribers, and how many should move in all attempts if the request gives a number."""
    edges = context.fleet.edges
    resting = context.recently_moved(context.settings.seconds(request.spec.limits.move_interval))
    selection = planner.select_members(
        request, served, session.wanted, resting, _members_of_other_sessions(context, session)
    )
    able = admission.target_candidates(context, request, session.sources)
    if not session.is_parent:
        able = [edges[name] for name in session.targets]
    plan = planner.make_plan(selection, edges, able, context.settings.placer, context.now)
    return _with_handover_method(context, request, plan), None if request.spec.select is None else selection.wanted


def _with_handover_method(context: EngineContext, request: SessionRequest, plan: SessionPlan) -> SessionPlan:
    """The plan with the method of its first pair, drain or replay, and the reason."""
    if not plan.pairs:
        return plan
    first = plan.pairs[0]
    choice = handover_method_of(context, request.spec.handover, first.source, first.target)
    if plan.handover == "lookup":
        return plan
    handover: Literal["replay", "drain"] = "replay" if choice.replay else "drain"
    return replace(plan, drain_seconds=choice.drain_seconds, handover=handover, why=choice.why)


def _members_of_other_sessions(context: EngineContext, session: Session) -> set[str]:
    """Subscribers that another session is moving."""
    others = (one for one in context.table.holding() if one.uid != session.uid and not one.is_parent and one.is_running)
    return {name for one in others if one.plan is not None for pair in one.plan.pairs for name in pair.members}


def accept_plan(
    context: EngineContext, request: SessionRequest, session: Session, plan: SessionPlan, stale: str = ""
) -> Session:
    session = replace(session, plan=plan).entered("Planned", context.now)
    context.forget_answers(session.uid)
    if plan.faults:
        return end_by_verdict(
            context, request, session, SessionVerdict(reason="FaultyPlan", message="; ".join(plan.faults))
        )
    if not plan.members:
        reason = "Empty" if session.kind == "drain" and not plan.rejected else "NothingToMove"
        why = planner.empty_plan_reason(plan.rejected) if plan.rejected or not plan.stop else plan.stop
        if session.kind == "balance":
            session = negotiation.with_futile_offer(session, why)
            if not all(offer.answer for offer in session.offers):
                return replace(session, targets=[]).entered("Negotiating", context.now)
            why = negotiation.refusals_text(session.offers) if len(session.offers) > 1 else why
        return end_attempt(context, request, session, "Succeeded", SessionVerdict(reason=reason, message=why))
    if request.spec.mode != "Execute":
        context.outbox.emit(session, request.spec.mode, plan_summary(plan))
        said = f"it only plans, and it is over: {plan_summary(plan)}; `plimsoll approve {session.name}` carries it out"
        return replace(session.because(request.spec.mode, said), ended_at=context.now)
    if is_approved(request, plan):
        context.outbox.emit(session, "Planned", plan_summary(plan))
        return begin_execution(context, replace(session, approved=plan.hash))
    reason, message = ("PlanStale", stale) if stale else ("AwaitingApproval", f"approve it with planHash {plan.hash}")
    context.outbox.emit(session, "AwaitingApproval", f"{plan_summary(plan)}; approve it with planHash {plan.hash}")
    within = context.settings.seconds(request.spec.approval.within)
    return replace(session.because(reason, message), deadline_at=context.now + within)


def plan_summary(plan: SessionPlan) -> str:
    """A plan in one line."""
    ways = ", ".join(f"{len(pair.members)} from {pair.source} to {pair.target}" for pair in plan.pairs[:5])
    more = f" and {len(plan.pairs) - 5} more pairs" if len(plan.pairs) > 5 else ""
    return f"move {ways}{more}"


def is_approved(request: SessionRequest, plan: SessionPlan) -> bool:
    """Whether the request approves this plan: by its hash if it gives one, else by its policy."""
    approval = request.spec.approval
    return approval.plan_hash == plan.hash if approval.plan_hash else approval.policy == "Automatic"


def step_planned(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Wait for approval, then in the queue. The edges are negotiated again: they were free while the plan waited."""
    plan = session.plan
    if plan is None:
        raise AssertionError("a session in Planned has a plan")
    if not session.approved and is_approved(request, plan):
        context.outbox.emit(session, "Approved", f"plan {plan.hash}")
        accepted = session.accepted_offer
        asked = [] if accepted is None else [replace(accepted, asked_at=None, answer="", message="")]
        approved = replace(session, approved=plan.hash, queued_at=context.now, offers=asked)
        session = _with_queue_deadline(context, request, approved.because("Approved", f"plan {plan.hash}"))
    if session.approved:
        if wait := admission.blocked_by(context, session, session.brokers):
            return _wait_in_queue(context, request, session, wait)
        return _begin_attempt(context, request, session)
    if context.now >= session.deadline_at:
        message = f"plan {plan.hash} was not approved in time"
        return end_by_verdict(context, request, session, SessionVerdict(reason="NotApproved", message=message))
    return _with_stale_approval(context, request, session, plan)


def _with_queue_deadline(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    return replace(session, deadline_at=context.now + context.settings.seconds(request.spec.limits.queue_for))


def _with_stale_approval(
    context: EngineContext, request: SessionRequest, session: Session, plan: SessionPlan
) -> Session:
    given = request.spec.approval.plan_hash
    if not given or session.reason == "PlanStale":
        return session
    message = f"plan {given} was approved, the plan is {plan.hash}: {plan_summary(plan)}"
    context.outbox.emit(session, "PlanStale", message, "Warning")
    return session.because("PlanStale", message)


def begin_execution(context: EngineContext, session: Session) -> Session:
    """Begin to execute an approved plan whose brokers are reserved."""
    plan = session.plan
    if plan is None:
        raise AssertionError("only a plan is carried out")
    context.forget_answers(session.uid)
    session = replace(
        session,
        moving_at=context.now,
        children=make_children(session, plan) if session.is_parent and plan.handover != "lookup" else [],
    )
    return session.entered("Preparing", context.now)


def make_children(session: Session, plan: SessionPlan) -> list[ChildSession]:
    """A child for each pair of a plan. Names follow from the session alone, so a restart creates none twice."""
    mark = sha256(f"{session.uid}/{session.attempt}/{session.round}".encode()).hexdigest()[:6]
    return [
        ChildSession(
            name=f"{session.name[:50].rstrip('-')}-{mark}-{number}",
            source=pair.source,
            target=pair.target,
            members=len(pair.members),
            round=session.round,
            wave=pair.wave,
        )
        for number, pair in enumerate(plan.pairs)
    ]
