"""Before a head is replaced its publishers move to other heads, so that none of their publications becomes `unknown`.

Its edges need no session: they keep their subscribers and resume. A head without another one that is ready is replaced
with its publishers, and so is one whose session takes too long or ends badly: the Event says which.
"""

from __future__ import annotations

from dataclasses import replace

from plimsoll.mediator import evacuation
from plimsoll.mediator.session_objects import SESSION_KIND, is_over
from plimsoll.operator.names import Object
from plimsoll.operator.reconcile.desired import DesiredFleet
from plimsoll.operator.reconcile.drain import ReconcileContext, restart_session_name
from plimsoll.operator.reconcile.observed import ObservedObjects, is_ready, unix_seconds
from plimsoll.operator.reconcile.steps import Evacuate, Restart, StepBlocked


def next_step(
    desired: DesiredFleet, observed: ObservedObjects, context: ReconcileContext, restart: Restart
) -> Restart | Evacuate | StepBlocked:
    """What comes next for a head that is to be restarted: its session, the wait for it, or the restart."""
    head = desired.brokers[restart.broker]
    stored = observed.get("BrokerCluster", head.cluster)
    if stored is None or not is_ready(observed.pod(head.name)):
        return restart  # it serves no publishers
    name = restart_session_name(observed, head.name)
    session = observed.get(SESSION_KIND, name)
    if session is None:
        if why := _cannot_move(desired, observed, head.name):
            return replace(restart, reason=f"{restart.reason}; {why}", event="NoOtherHead")
        return Evacuate(stored, evacuation.head_evacuation_session(stored, name), restart.reason)
    if not is_over(session):
        if _takes_too_long(session, context):
            return _late(restart, f"session {name} takes too long, so its publishers stay")
        why = f"waiting for session {name} to move its publishers: {restart.reason}"
        return StepBlocked(("BrokerCluster", head.cluster), why)
    status = session.get("status", {})
    if status.get("phase") == "Succeeded":
        return restart
    return _late(restart, f"session {name} has ended {status.get('phase', '')}: {status.get('message', '')}")


def _cannot_move(desired: DesiredFleet, observed: ObservedObjects, head: str) -> str:
    """Why the publishers of this head cannot move; empty if they can."""
    others = [broker.name for broker in desired.brokers.values() if broker.role == "head" and broker.name != head]
    unknown = "what they have under way may become unknown"
    if not others:
        return f"it is the only head, so its publishers stay, and {unknown}"
    if not any(is_ready(observed.pod(name)) for name in others):
        return f"no other head is ready, so its publishers stay, and {unknown}"
    return ""


def _takes_too_long(session: Object, context: ReconcileContext) -> bool:
    begun = session["metadata"].get("creationTimestamp")
    longest = evacuation.LONGEST_HEAD_SECONDS * context.time_factor
    return begun is not None and context.now - unix_seconds(begun) > longest


def _late(restart: Restart, why: str) -> Restart:
    return replace(restart, reason=f"{restart.reason}; {why}", event="DrainTimeout")
