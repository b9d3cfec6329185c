"""From a request to an approved plan: the queue, the negotiation, the sample, the plan and its approval."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Literal

from msgspec.structs import replace

from plimsoll.core.session import admission, choosing, estimate, offers, planning, shuffling
from plimsoll.core.session.ending import closing_seconds, end, ended_by
from plimsoll.core.session.record import Child, Plan, Session, Verdict
from plimsoll.core.session.turn import Turn, because, enter, is_running
from plimsoll.core.session.values import EdgeView, Request
from plimsoll.core.spec.resources import written

FIXED = ("scope", "source", "target", "action", "select", "candidates", "exclusions", "handover")


def fingerprint(request: Request) -> str:
    """Of what a plan is made from: it cannot change under it."""
    plain = written(request.spec, defaults=True)
    return sha256(repr([plain.get(name) for name in FIXED]).encode()).hexdigest()[:12]


def changed(turn: Turn, request: Request, session: Session) -> Session:
    """The specification is another one: what has no approved plan yet begins anew, what runs does not heed it."""
    if session.is_over or not session.asked or session.asked == fingerprint(request):
        return session
    if session.phase in ("Negotiating", "Sampling", "Planned"):
        text = "what is asked for has changed"
        session = replace(session, plan=None, approved="", wanted=None, asked="", queued_at=turn.now, offers=[])
        return _requeued(turn, request, enter(session, "Requested", turn.now, "Changed", text))
    text = f"{', '.join(FIXED)} do not change under a plan that runs: stop the session, or create another"
    turn.tell(session, "SpecIgnored", text, "Warning")
    return replace(session, asked=fingerprint(request))


def requested(turn: Turn, request: Request, session: Session) -> Session:
    """In the queue, or before the next attempt."""
    if session.retry_at is not None and turn.now < session.retry_at:
        return session
    if turn.view is None:
        return _overdue(turn, request, because(session, "NoView", "the state of the fleet is not known yet"))
    if (why := _refusal(turn, request)) is not None:
        return ended_by(turn, request, session, why)
    session = _with_parties(turn, request, session)
    if wait := admission.blocked_by(turn, session, session.brokers):
        return _queued(turn, request, session, wait)
    return _begun(turn, request, session)


def _refusal(turn: Turn, request: Request) -> Verdict | None:
    if request.spec.action == "Shuffle":
        return shuffling.refusal(turn, request)
    return admission.refusal(turn, request, by_policy=choosing.is_by_policy(turn, request))


def _with_parties(turn: Turn, request: Request, session: Session) -> Session:
    spec = request.spec
    if spec.source is None:
        raise AssertionError("a request without a source is refused before this")
    sources = [name for name in admission.edges_of(turn, spec.source.name) if name not in spec.exclusions.brokers]
    is_drain, is_shuffle = spec.action == "Drain", spec.action == "Shuffle"
    target = spec.target.name if spec.target is not None else ""
    is_parent = is_drain or is_shuffle or any(admission.is_cluster(turn, name) for name in (spec.source.name, target))
    found = {
        "sources": shuffling.edges_of(turn, request) if is_shuffle else sources,
        "targets": [target] if target and not is_parent else [],
        "is_parent": is_parent,
        "is_drain": is_drain,
        "is_shuffle": is_shuffle,
        "by_policy": choosing.is_by_policy(turn, request),
        "triggered": spec.trigger is not None,
    }
    known = {name: getattr(session, name) for name in found}
    return session if known == found else replace(session, **found)


def _queued(turn: Turn, request: Request, session: Session, wait: str) -> Session:
    if session.reason != "Queued":
        turn.tell(session, "Queued", wait)
    return _overdue(turn, request, because(session, "Queued", wait))


def _overdue(turn: Turn, request: Request, session: Session) -> Session:
    if turn.now < session.deadline_at:
        return session
    message = f"limits.queueFor is over: {session.message}"
    return ended_by(turn, request, session, Verdict(reason="QueueTimeout", message=message, again=True))


def _begun(turn: Turn, request: Request, session: Session) -> Session:
    """An attempt begins, and with it its deadline; a child's is not later than its parent's."""
    deadline = turn.now + turn.settings.seconds(request.spec.deadline)
    parent = turn.book.get(session.parent)
    if parent is not None:
        deadline = min(deadline, parent.deadline_at - closing_seconds(turn, parent) / 2)
    turn.unlist(session.uid)
    asked = session.asked or fingerprint(request)
    session = replace(session, started_at=turn.now, deadline_at=deadline, asked=asked)
    session = replace(session, retry_at=None, holds_until=None)
    return enter(session, "Negotiating", turn.now)


def negotiating(turn: Turn, request: Request, session: Session) -> Session:
    """Both ends are asked whether they can: by what is known of them, or one after the other."""
    if session.by_policy:
        return offers.negotiating(turn, request, session)
    if session.is_shuffle:
        return shuffling.negotiating(turn, request, session)
    session, why = _agreed(turn, request, session)
    if why is None:
        return enter(session, "Sampling", turn.now)
    if turn.now < min(turn.waits_since(session) + turn.timings.negotiate, session.deadline_at):
        return because(session, why.reason, why.message)
    return ended_by(turn, request, session, why)


def _agreed(turn: Turn, request: Request, session: Session) -> tuple[Session, Verdict | None]:
    for source in session.sources:
        if (why := admission.unready_source(turn, source)) is not None:
            return session, why
    for target in session.targets:
        if (why := admission.unready_target(turn, target)) is not None:
            return session, why
    able = admission.candidates(turn, request, session.sources)
    if not session.targets and not session.is_parent:
        able = [edge for edge in able if not admission.blocked_by(turn, session, {edge.name})]
        if able:
            return _with_target(turn, session, able), None
    if not able:
        return session, Verdict(reason="NoTarget", message="no edge can take subscribers now", again=True)
    if request.spec.handover == "Replay" and not session.is_parent and (why := _no_replay(turn, session)) is not None:
        return session, why
    return session, None


def _with_target(turn: Turn, session: Session, able: list[EdgeView]) -> Session:
    unit = planning.unit_of(_edges(turn)[session.sources[0]])
    port = turn.settings.placer.place(unit, [planning.port_of(edge) for edge in able])
    return session if port is None else replace(session, targets=[port.name])


def _no_replay(turn: Turn, session: Session) -> Verdict | None:
    choice = choice_of(turn, "Replay", session.sources[0], session.targets[0])
    return Verdict(reason="LogTooShort", message=choice.why, again=True) if choice.refused else None


def choice_of(turn: Turn, handover: str, source: str, target: str) -> estimate.Choice:
    """Drain or replay between two edges that are both in the view."""
    edges = _edges(turn)
    heads = turn.view.heads if turn.view is not None else {}
    across = edges[source].head != edges[target].head
    return estimate.choose(handover, edges[source], heads[edges[source].head], turn.settings, across=across)


def sampling(turn: Turn, request: Request, session: Session) -> Session:
    """Whom do the sources serve?"""
    edges = _edges(turn)
    served = turn.listings(session.uid, [(name, edges[name].head) for name in session.sources if name in edges])
    is_known = served is not None and all(name in served for name in session.sources)
    chooses = session.by_policy or session.is_shuffle
    if is_known and not chooses and _knows_no_taker_yet(turn, request, session):
        return session
    if served is not None and is_known and (after := _with_plan(turn, request, session, served)) is not None:
        return after
    patience = choosing.sample_seconds(turn, session) if chooses else turn.timings.sample
    if turn.now < min(turn.waits_since(session) + patience, session.deadline_at):
        return session
    message = f"the head did not say in time whom {planning.shown(session.sources)} serves"
    if served is not None:
        message = f"{planning.shown(session.sources)} did not say in time what its subscribers take"
    return ended_by(turn, request, session, Verdict(reason="NoSample", message=message, again=True))


def _knows_no_taker_yet(turn: Turn, request: Request, session: Session) -> bool:
    """A mediator that went on with it a moment ago may not have heard of those who were able before its life."""
    until = turn.began_at + min(turn.timings.negotiate, turn.timings.sample)
    is_early = session.phase_at < turn.began_at and turn.now < min(until, session.deadline_at)
    return is_early and not admission.candidates(turn, request, session.sources)


def _with_plan(turn: Turn, request: Request, session: Session, served: Mapping[str, list[str]]) -> Session | None:
    """An approved plan stands as long as it can be carried out to the letter; else there is a new one, if it can be."""
    old = session.plan
    is_approved = old is not None and session.approved == old.hash
    missing = planning.gone(old, served) if old is not None and is_approved else []
    if is_approved and not missing:
        return moving(turn, session)
    new, wanted = (
        _chosen(turn, request, session, served)
        if session.by_policy or session.is_shuffle
        else plan_of(turn, request, session, served)
    )
    if new is None:
        return None
    session = replace(session, wanted=wanted)
    if old is None or not is_approved:
        return _planned(turn, request, session, new)
    text = f"not where the plan has them: {planning.shown(missing)}; {planning.difference(old, new)}"
    turn.tell(session, "PlanStale", text, "Warning")
    return _planned(turn, request, replace(session, approved=""), new, stale=text)


def _chosen(
    turn: Turn, request: Request, session: Session, served: Mapping[str, list[str]]
) -> tuple[Plan | None, int | None]:
    """The plan of a policy; None as long as it waits for what it chooses by."""
    resting = _moved(turn, turn.settings.seconds(request.spec.limits.move_interval))
    chosen = shuffling.plan_of if session.is_shuffle else choosing.plan_of
    found = chosen(turn, request, session, served, resting, _busy(turn, session))
    return (None if found is None else _with_way(turn, request, found)), None


def plan_of(turn: Turn, request: Request, session: Session, served: Mapping[str, list[str]]) -> tuple[Plan, int | None]:
    """A plan for those that are served now, and how many should move in all where the request says so."""
    edges = _edges(turn)
    resting = _moved(turn, turn.settings.seconds(request.spec.limits.move_interval))
    selection = planning.select(request, served, session.wanted, resting, _busy(turn, session))
    able = admission.candidates(turn, request, session.sources)
    if not session.is_parent:
        able = [edges[name] for name in session.targets]
    plan = planning.make(selection, edges, able, turn.settings.placer, turn.now)
    return _with_way(turn, request, plan), None if request.spec.select is None else selection.wanted


def _with_way(turn: Turn, request: Request, plan: Plan) -> Plan:
    """The plan with how its first pair would go, and why so."""
    if not plan.pairs:
        return plan
    first = plan.pairs[0]
    choice = choice_of(turn, request.spec.handover, first.source, first.target)
    handover: Literal["replay", "drain"] = "replay" if choice.replay else "drain"
    return replace(plan, drain_seconds=choice.drain_seconds, handover=handover, why=choice.why)


def _moved(turn: Turn, interval: float) -> set[str]:
    """Those that were moved, by any session, less than so long ago."""
    since = turn.now - interval
    sessions = (one for one in turn.book.sessions.values() if one.ended_at is None or one.ended_at > since)
    return {name for session in sessions for name in session.moved_since(since)}


def _busy(turn: Turn, session: Session) -> set[str]:
    """Those whom another session is moving."""
    others = (one for one in turn.book.open() if one.uid != session.uid and not one.is_parent and is_running(one))
    return {name for one in others if one.plan is not None for pair in one.plan.pairs for name in pair.members}


def _planned(turn: Turn, request: Request, session: Session, plan: Plan, stale: str = "") -> Session:
    session = enter(replace(session, plan=plan), "Planned", turn.now)
    turn.unlist(session.uid)
    if plan.faults:
        return ended_by(turn, request, session, Verdict(reason="FaultyPlan", message="; ".join(plan.faults)))
    if not plan.members:
        reason = "Empty" if session.is_drain and not plan.rejected else "NothingToMove"
        why = planning.why_nothing(plan.rejected) if plan.rejected or not plan.stop else plan.stop
        return end(turn, request, session, "Succeeded", Verdict(reason=reason, message=why))
    if request.spec.mode != "Execute":
        turn.tell(session, request.spec.mode, summary(plan))
        return replace(because(session, request.spec.mode, summary(plan)), ended_at=turn.now)
    if is_approved(request, plan):
        turn.tell(session, "Planned", summary(plan))
        return moving(turn, replace(session, approved=plan.hash))
    reason, message = ("PlanStale", stale) if stale else ("AwaitingApproval", f"approve it with planHash {plan.hash}")
    turn.tell(session, "AwaitingApproval", f"{summary(plan)}; approve it with planHash {plan.hash}")
    within = turn.settings.seconds(request.spec.approval.within)
    return replace(because(session, reason, message), deadline_at=turn.now + within)


def summary(plan: Plan) -> str:
    """A plan in a line."""
    ways = ", ".join(f"{len(pair.members)} from {pair.source} to {pair.target}" for pair in plan.pairs[:5])
    more = f" and {len(plan.pairs) - 5} more pairs" if len(plan.pairs) > 5 else ""
    return f"move {ways}{more}"


def is_approved(request: Request, plan: Plan) -> bool:
    """A hash that is given names exactly this plan."""
    approval = request.spec.approval
    return approval.plan_hash == plan.hash if approval.plan_hash else approval.policy == "Automatic"


def planned(turn: Turn, request: Request, session: Session) -> Session:
    """A plan waits for its approval; approved, it waits in the queue, and is negotiated again."""
    plan = session.plan
    if plan is None:
        raise AssertionError("a session in Planned has a plan")
    if not session.approved and is_approved(request, plan):
        turn.tell(session, "Approved", f"plan {plan.hash}")
        asked = [replace(each, asked_at=None, answer="", message="") for each in session.offers if each.answer == "OK"]
        approved = replace(session, approved=plan.hash, queued_at=turn.now, offers=asked)
        session = _requeued(turn, request, because(approved, "Approved", f"plan {plan.hash}"))
    if session.approved:
        if wait := admission.blocked_by(turn, session, session.brokers):
            return _queued(turn, request, session, wait)
        return _begun(turn, request, session)
    if turn.now >= session.deadline_at:
        message = f"nobody has approved plan {plan.hash} in time"
        return ended_by(turn, request, session, Verdict(reason="NotApproved", message=message))
    return _refused_hash(turn, request, session, plan)


def _requeued(turn: Turn, request: Request, session: Session) -> Session:
    return replace(session, deadline_at=turn.now + turn.settings.seconds(request.spec.limits.queue_for))


def _refused_hash(turn: Turn, request: Request, session: Session, plan: Plan) -> Session:
    given = request.spec.approval.plan_hash
    if not given or session.reason == "PlanStale":
        return session
    message = f"plan {given} was approved, the plan is {plan.hash}: {summary(plan)}"
    turn.tell(session, "PlanStale", message, "Warning")
    return because(session, "PlanStale", message)


def moving(turn: Turn, session: Session) -> Session:
    """The plan is approved and its brokers are kept: it begins."""
    plan = session.plan
    if plan is None:
        raise AssertionError("only a plan is carried out")
    turn.unlist(session.uid)
    session = replace(session, moving_at=turn.now, children=children_of(session, plan) if session.is_parent else [])
    return enter(session, "Preparing", turn.now)


def children_of(session: Session, plan: Plan) -> list[Child]:
    """A child for each pair of a plan; names are the same whenever they are made."""
    mark = sha256(f"{session.uid}/{session.attempt}/{session.round}".encode()).hexdigest()[:6]
    return [
        Child(
            name=f"{session.name[:50].rstrip('-')}-{mark}-{number}",
            source=pair.source,
            target=pair.target,
            members=len(pair.members),
            round=session.round,
            wave=pair.wave,
        )
        for number, pair in enumerate(plan.pairs)
    ]


def _edges(turn: Turn) -> Mapping[str, EdgeView]:
    return turn.view.edges if turn.view is not None else {}
