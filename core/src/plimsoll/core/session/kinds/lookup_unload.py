"""Unloading by lookup: bundles lose their edge, and their subscribers look for it again and go on from the head's log.

Pulsar 2023, "Shedding (unloading) bundles from overloaded brokers": the owner gives up the bundle and closes the
connections of its clients. Here nothing is lost by it, since a subscriber resumes from its token.
"""

from __future__ import annotations

from msgspec.structs import replace

from plimsoll.core.session.completion import closing_seconds, end_by_verdict
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import SessionRequest
from plimsoll.core.session.session_plan import SessionPlan
from plimsoll.core.session.state import ChildSession, Session, SessionVerdict


def is_by_lookup(session: Session) -> bool:
    """Whether the plan of a session is carried out in this way."""
    return session.plan is not None and session.plan.handover == "lookup"


def step_moving(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Wait until every bundle with subscribers has an edge again, and those who left their edge are elsewhere."""
    plan = session.plan
    if plan is None:
        raise AssertionError("a session that moves has a plan")
    if session.phase == "Preparing":
        context.forget_answers(session.uid)
        return session.entered("Draining", context.now, "Unloading", "bundles are released; their units look them up")
    served = context.listings.of_all(session.uid, _sources(context, session))
    is_late = context.now >= min(
        session.phase_at + context.timings.drain, session.deadline_at - _closing(context, session)
    )
    if context.now < session.phase_at + context.timings.ask:
        return session
    # Listings are asked for again and again: when time is up one may be on its way, and the last one counts.
    if served is not None and session.children != (children := _outcomes(plan, served)):
        session = replace(session, children=children)
    counts = sum(child.counts.get("moved", 0) for child in session.children)
    if counts < plan.members and not is_late:
        if served is not None:
            context.listings.forget(session.uid)
        return session
    if not session.children:
        session = replace(session, children=_outcomes(plan, {}))
    if counts:
        context.forget_answers(session.uid)
        return session.entered("Stabilizing", context.now, "Settling", "loads settle, then they are measured")
    message = f"none of {plan.members} units has looked up its bundle in time"
    return end_by_verdict(context, request, session, SessionVerdict(reason="NobodyMoved", message=message, again=True))


def _closing(context: EngineContext, session: Session) -> float:
    return closing_seconds(context, session) / 2


def _sources(context: EngineContext, session: Session) -> list[tuple[str, str]]:
    edges = context.fleet.edges
    return [(name, edges[name].head) for name in session.sources if name in edges]


def _outcomes(plan: SessionPlan, served: dict[str, list[str]]) -> list[ChildSession]:
    """A child for each pair of the plan, with its units by outcome: those that another edge serves have moved."""
    where = {name: edge for edge, names in served.items() for name in names}
    found = []
    for number, pair in enumerate(plan.pairs):
        places = [where.get(name, "") for name in pair.members]
        states = {
            "moved": sum(place not in ("", pair.source) for place in places),
            "stayed": sum(place == pair.source for place in places),
            "gone": sum(place == "" for place in places),
        }
        counts = {state: count for state, count in states.items() if count}
        found.append(
            ChildSession(
                name=f"lookup-{number}", source=pair.source, target=pair.target, members=len(pair.members),
                phase="Succeeded", counts=counts,
            )
        )  # fmt: skip
    return found
