"""The status of a session for users: conditions, progress, and measurements beside the forecasts.

All of it is bounded and follows from the session; the full plan and the outcome of each member are in the stored state.
The condition `Succeeded` is Unknown until the session ends. Amounts are whole numbers with their unit in the name, as
custom resources have no floating-point numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

from msgspec.structs import replace

from plimsoll.core.printable import printable
from plimsoll.core.session.batch import OUTCOMES, AuditTotals
from plimsoll.core.session.delivery_verdict import delivered_condition
from plimsoll.core.session.session_plan import Forecast, LoadFigures, SessionPlan
from plimsoll.core.session.state import MOVING_PHASES, Session
from plimsoll.core.spec.status.conditions import Condition, merge_conditions
from plimsoll.core.verify.session_checker import SessionStateObserved

NAMED_AT_MOST = 20


def rfc3339(at: float) -> str:
    """A time as Kubernetes writes it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def with_conditions(session: Session, now: float) -> Session:
    """The session with its conditions as they are now."""
    conditions = merge_conditions(session.conditions, _conditions(session), session.generation, rfc3339(now))
    return session if conditions == session.conditions else replace(session, conditions=conditions)


def _conditions(session: Session) -> Iterable[Condition]:
    plan = session.plan
    if plan is not None:
        yield Condition("Planned", "True", "Planned", f"plan {plan.hash}: {plan.members} {session.member_noun}")
    else:
        yield Condition("Planned", "False", session.reason or session.phase, session.message)
    if plan is not None:
        if session.approved == plan.hash:
            yield Condition("Approved", "True", "Approved", f"plan {plan.hash}")
        elif not session.is_over:
            yield Condition("Approved", "False", session.reason or "AwaitingApproval", session.message)
    elif any(one["type"] == "Approved" for one in session.conditions):  # the plan is gone
        yield Condition("Approved", "False", session.reason or session.phase, session.message)
    if not session.is_over:
        yield Condition("Succeeded", "Unknown", session.reason or session.phase, session.message)
    elif session.phase in ("Succeeded", "Planned"):
        yield Condition("Succeeded", "True", session.reason, session.message)
    else:
        yield Condition("Succeeded", "False", session.reason, session.message)
    if session.batches or session.children or session.history:
        yield delivered_condition(session)


def status(session: Session, now: float) -> dict[str, Any]:
    """The status of the object, without the stored state."""
    found: dict[str, Any] = {
        "observedGeneration": session.generation,
        "phase": session.phase,
        "reason": session.reason,
        "message": printable(session.message),
        "conditions": session.conditions,
        "attempt": session.attempt,
        "requestedAt": rfc3339(session.requested_at),
        "deadlineAt": rfc3339(session.deadline_at),
        "source": ", ".join(session.between[:1] or session.sources),
        "target": ", ".join(session.between[1:] or session.targets or sorted(_takers(session))),
        "timeInPhases": _time_in_phases(session, now),
        "progress": progress(session, now),
        **_audit_fields(session.audit() if session.counts()["moved"] else None),
        "history": [_attempt_fields(session, index) for index in range(len(session.history))],
    }
    if session.started_at is not None:
        found["startedAt"] = rfc3339(session.started_at)
    if session.ended_at is not None:
        found["endedAt"] = rfc3339(session.ended_at)
    if session.offers:
        found["asked"] = [
            {"name": one.edge, "metric": one.metric, "difference": f"{round(1000 * one.difference)}m",
             "answer": one.answer, "message": printable(one.message)}
            for one in session.offers[:NAMED_AT_MOST]
        ]  # fmt: skip
    if session.plan is not None:
        found |= _plan_fields(session)
    if session.batches:
        found |= _batch_fields(session)
    if session.children:
        found["children"] = [
            {"name": child.name, "source": child.source, "target": child.target, "planned": child.members,
             "phase": child.phase, "reason": child.reason, **child.counts,
             **_audit_fields((child.audit or AuditTotals()) if child.counts.get("moved") else None)}
            for child in session.children
        ]  # fmt: skip
    return found


def _takers(session: Session) -> set[str]:
    """Where its children go, or the consumers that take slices."""
    if session.kind == "slices" and session.plan is not None:
        return {pair.target for pair in session.plan.pairs}
    return {child.target for child in session.children}


def _time_in_phases(session: Session, now: float) -> list[dict[str, Any]]:
    spent = dict(session.spent)
    if not session.is_over:
        spent[session.phase] = spent.get(session.phase, 0.0) + max(0.0, now - session.phase_at)
    return [{"phase": phase, "milliseconds": round(1000 * seconds)} for phase, seconds in spent.items()]


def progress(session: Session, now: float) -> dict[str, Any]:
    """Planned, moved and left, in percent too; the time that the rest takes at the rate until now."""
    counts = session.counts()
    planned = session.planned
    done = sum(counts.values())
    found: dict[str, Any] = {"planned": planned, **{state: counts[state] for state in OUTCOMES}}
    found["percent"] = 100 * done // planned if planned else 0
    if session.moving_at is not None and session.phase in MOVING_PHASES and done and now > session.moving_at:
        rate = done / (now - session.moving_at)
        found["movesPerMinute"] = round(60 * rate)
        found["etaSeconds"] = math.ceil((planned - done) / rate)
    return found


def _audit_fields(audit: AuditTotals | None) -> dict[str, Any]:
    """The audit of moved subscribers, or of publishers that moved. Without a report the sums are left out: they are not
    0, they are not known."""
    if audit is None:
        return {}
    known = [*_COUNTED, *_SUMS] if audit.subscribers else _COUNTED
    names = known if audit.publishers else [name for name in known if name not in _OF_PUBLISHERS]
    return {"audit": {name: getattr(audit, name) for name in names}}


_COUNTED: Final = ("subscribers", "publishers", "asked")
_SUMS: Final = ("lost", "duplicated", "reordered", "suppressed", "before", "after")
_OF_PUBLISHERS: Final = ("publishers", "asked", "before", "after")


def _plan_fields(session: Session) -> dict[str, Any]:
    plan = session.plan
    if plan is None:
        return {}
    pairs = [{"source": pair.source, "target": pair.target, "subscribers": len(pair.members)} for pair in plan.pairs]
    return {
        "planHash": plan.hash,
        "plan": {
            "subscribers": plan.members,
            "pairs": pairs[:NAMED_AT_MOST],
            "handover": plan.handover,
            "why": plan.why,
            "rejected": [{"reason": reason, "subscribers": len(names)} for reason, names in plan.rejected.items()],
            **(_policy_fields(plan) if plan.policy else {}),
        },
        "predicted": {
            "drainMilliseconds": round(1000 * plan.drain_seconds),
            "edges": [_predicted_fields(one) for one in plan.forecasts[:NAMED_AT_MOST]],
        },
        "measured": {
            "edges": [
                _measured_fields(one) for one in plan.forecasts[:NAMED_AT_MOST] if one.utilization_measured is not None
            ],
            **_largest_error(plan),
            **_drain_milliseconds(session),
        },
    }


def _policy_fields(plan: SessionPlan) -> dict[str, Any]:
    """The reasons of a policy for its plan; further ones are in the stored state."""
    return {
        "policy": plan.policy,
        "metric": plan.metric,
        "stopped": plan.stop,
        "moves": [
            {"subscribers": one.count, "what": one.what, "reason": one.reason} for one in plan.moves[:NAMED_AT_MOST]
        ],
        "stays": [
            {"subscribers": one.count, "kind": one.kind, "what": one.what, "reason": one.reason}
            for one in plan.stays[:NAMED_AT_MOST]
        ],
    }


def _predicted_fields(one: Forecast) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": one.edge,
        "utilizationBeforePercent": round(100 * one.utilization_before),
        "utilizationAfterPercent": round(100 * one.utilization_after),
        "subscribersBefore": one.subscribers_before,
        "subscribersAfter": one.subscribers_after,
    }
    return found | {
        name: _load_fields(loads)
        for name, loads in (("before", one.before), ("after", one.after), ("uncertain", one.uncertain))
        if loads is not None
    }


def _measured_fields(one: Forecast) -> dict[str, Any]:
    """The measured loads of an edge, and how far they are from the forecast."""
    found: dict[str, Any] = {
        "name": one.edge,
        "utilizationPercent": round(100 * (one.utilization_measured or 0.0)),
        "errorPercent": round(100 * utilization_error(one)),
        "subscribers": one.subscribers_measured,
    }
    error = loads_error(one)
    if one.measured is None or error is None:
        return found
    return {**found, "after": _load_fields(one.measured), "error": _load_fields(error)}


def utilization_error(one: Forecast) -> float:
    """How far the measured utilisation is from the predicted one, as a ratio of the capacity."""
    return abs((one.utilization_measured or 0.0) - one.utilization_after)


def loads_error(one: Forecast) -> LoadFigures | None:
    """How far each measured load is from the predicted one; None where a policy has not planned, or nothing came."""
    if one.measured is None or one.after is None:
        return None
    return LoadFigures(
        input=abs(one.measured.input - one.after.input),
        output=abs(one.measured.output - one.after.output),
        match_seconds=abs(one.measured.match_seconds - one.after.match_seconds),
    )


def _largest_error(plan: SessionPlan) -> dict[str, int]:
    """The largest error of any edge."""
    errors = [utilization_error(one) for one in plan.forecasts if one.utilization_measured is not None]
    return {"errorPercentMax": round(100 * max(errors))} if errors else {}


def _load_fields(loads: LoadFigures) -> dict[str, int]:
    return {
        "inputPercent": round(100 * loads.input),
        "outputPercent": round(100 * loads.output),
        "matchMicroseconds": round(1e6 * loads.match_seconds),
    }


def _drain_milliseconds(session: Session) -> dict[str, int]:
    """The longest and the mean time from the cut of a batch to its end."""
    took = measured_drain_seconds(session)
    if not took:
        return {}
    return {
        "drainMillisecondsMax": round(1000 * max(took)),
        "drainMillisecondsMean": round(1000 * sum(took) / len(took)),
    }


def measured_drain_seconds(session: Session) -> list[float]:
    """From the cut of each batch to its end."""
    return [
        batch.ended_at - batch.cut_at
        for batch in session.batches
        if batch.cut_at is not None and batch.ended_at is not None
    ]


def _batch_fields(session: Session) -> dict[str, Any]:
    batch = session.batches[-1]
    return {
        "batches": {
            "begun": len(session.batches),
            "ended": sum(one.ended_at is not None for one in session.batches),
            "byReplay": sum(one.replay for one in session.batches),
        },
        "batch": {
            "id": batch.id, "state": batch.state, "intent": batch.intent, "subscribers": len(batch.members),
            "handover": "replay" if batch.replay else "drain", "why": batch.why, "reason": batch.reason,
        },
    }  # fmt: skip


def _attempt_fields(session: Session, index: int) -> dict[str, Any]:
    one = session.history[index]
    return {
        "number": one.number,
        "phase": one.phase,
        "reason": one.reason,
        "message": printable(one.message),
        "startedAt": rfc3339(one.started_at),
        "endedAt": rfc3339(one.ended_at),
        "planned": one.planned,
        **one.counts,
        **_audit_fields(one.audit),
    }


def moves(session: Session) -> list[dict[str, Any]]:
    """All subscribers of a plan: source, target and outcome; then the rejected ones, and why."""
    if session.plan is None:
        return []
    outcomes = session.outcomes()
    reasons = {name: batch.reason for batch in session.batches for name in batch.members}
    found: list[dict[str, Any]] = []
    why = [one.reason for one in session.plan.moves for _ in range(one.count)]
    number = -1
    for pair in session.plan.pairs:
        for name in pair.members:
            number += 1
            outcome = outcomes.get(name, "")
            reason = reasons.get(name, "") if outcome not in ("", "moved") else ""
            move = {"subscriber": name, "source": pair.source, "target": pair.target, "outcome": outcome}
            found.append({**move, "reason": reason, "why": why[number] if number < len(why) else ""})
    for reason, names in session.plan.rejected.items():
        found.extend({"subscriber": name, "outcome": "rejected", "reason": reason} for name in names)
    return found


def observed_session(session: Session, at: float) -> SessionStateObserved:
    """The session as its checker sees it, stored at this time."""
    counts = {state: number for state, number in session.counts().items() if number}
    brokers = sorted(session.brokers)
    return SessionStateObserved(
        session.uid, session.parent, session.phase, session.attempt, session.deadline_at, session.is_over, brokers,
        session.planned, counts, at, sorted(session.sources),
    )  # fmt: skip
