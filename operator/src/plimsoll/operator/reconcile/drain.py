"""How far an edge is emptied: a pure function of its sessions and of the subscribers that it reports.

Time alone proves nothing: while no operator runs, no session proceeds. An edge is empty when its session has ended and
it reports no subscribers. Remaining ones are moved by one more session; those that stay even then are disconnected when
the pod ends, and resume from the head's log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.mediator import evacuation
from plimsoll.mediator.session_objects import SESSION_KIND as SESSION
from plimsoll.mediator.session_objects import is_over
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import uid
from plimsoll.operator.reconcile.observed import ObservedObjects, unix_seconds

DRAIN_SESSIONS = 2
"""The number of sessions that try to empty an edge before it is ended with its remaining subscribers."""
UNSEEN_SECONDS = 1800.0
"""A session that a mediator has not taken in this time is never taken: the mediator has a fault."""
REPORT_WAIT_SECONDS = 10.0
"""An edge that has not reported for this long, while the mediator was running, is not waited for."""


@dataclass(frozen=True)
class ReportedSubscribers:
    """How many subscribers an edge has reported, and when, in seconds since 1970."""

    subscribers: int
    at: float


@dataclass(frozen=True)
class ReconcileContext:
    """The time, the scale of the fleet's clock, for how long its mediator has run, and what edges have reported.

    With `subscribers` None there are no reports at all, and sessions alone decide.
    """

    now: float
    time_factor: float = 1.0
    mediating_seconds: float = float("inf")
    subscribers: Mapping[str, ReportedSubscribers] | None = None


@dataclass(frozen=True)
class DrainProgress:
    """The name of the session to create (`next_session`), or the open session, or why draining is over."""

    session: Object | None = None
    is_over: bool = False
    reason: str = ""
    next_session: str = ""

    @property
    def name(self) -> str:
        """The name of the session."""
        return str(self.session["metadata"]["name"]) if self.session is not None else self.next_session


def drain_progress(observed: ObservedObjects, edge: str, name: str, context: ReconcileContext) -> DrainProgress:
    """How far an edge is emptied by the session of this name and its successor."""
    names = drain_session_names(name)
    found = [session for each in names if (session := observed.get(SESSION, each)) is not None]
    if not found:
        return DrainProgress(next_session=name)
    session, reported = found[-1], context.subscribers.get(edge) if context.subscribers is not None else None
    if not is_over(session):
        return _open_progress(session, reported, context)
    reason = str(session.get("status", {}).get("phase", "ended"))
    if context.subscribers is None:
        return DrainProgress(session, True, reason)
    ended = unix_seconds(session["status"]["endedAt"]) + 1.0  # written in whole seconds
    if reported is None or reported.at <= ended:
        listened = min(context.now - ended, context.mediating_seconds)
        unheard = listened > REPORT_WAIT_SECONDS
        return DrainProgress(session, unheard, f"{reason}; {edge} does not report its subscribers" if unheard else "")
    if reported.subscribers == 0:
        return DrainProgress(session, True, reason)
    if len(found) < len(names):
        return DrainProgress(
            next_session=names[len(found)], reason=f"{reported.subscribers} subscribers are left after {reason}"
        )
    return DrainProgress(
        session, True, f"{reason}; {reported.subscribers} subscribers are left, and resume from the head's log"
    )


def _open_progress(session: Object, reported: ReportedSubscribers | None, context: ReconcileContext) -> DrainProgress:
    """A session past the longest time is given up if no subscriber is left, or a mediator has run for that long.

    The time counts from when the mediator took it: until then nothing has been tried for the edge.
    """
    created, taken = session["metadata"].get("creationTimestamp"), session.get("status", {}).get("requestedAt")
    longest = evacuation.LONGEST_SECONDS * context.time_factor
    begun = taken or created
    if begun is None or context.now - unix_seconds(begun) <= longest:
        return DrainProgress(session)
    if reported is not None and reported.subscribers == 0:
        return DrainProgress(session, True, "the session takes too long, and no subscriber is left")
    if context.mediating_seconds > (longest if taken else UNSEEN_SECONDS):
        return DrainProgress(session, True, f"the session {'takes too long' if taken else 'is not taken up'}")
    return DrainProgress(session)


def drain_session_names(name: str) -> tuple[str, ...]:
    """The names of the sessions that empty an edge, in their order."""
    return tuple(name if number == 1 else f"{name}-{number}" for number in range(1, DRAIN_SESSIONS + 1))


def restart_session_name(observed: ObservedObjects, edge: str) -> str:
    """The name of the session that empties an edge before its present pod is replaced; empty without a pod."""
    pod = observed.pod(edge)
    return "" if pod is None or not uid(pod) else f"restart-{edge[:40].rstrip('-')}-{uid(pod)[:8]}"


def restart_sessions(observed: ObservedObjects, edge: str) -> list[Object]:
    """The sessions that empty, or have emptied, an edge whose present pod is to be replaced."""
    name = restart_session_name(observed, edge)
    return [found for each in drain_session_names(name) if name and (found := observed.get(SESSION, each)) is not None]
