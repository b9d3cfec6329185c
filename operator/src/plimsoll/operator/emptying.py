"""How far an edge has been emptied: a pure function of its sessions and of what the edge itself says that it serves.

Time alone says nothing: while no operator runs, nobody moves anybody. An edge has been emptied when its session has
ended and it says that it serves nobody. Who is left is moved by another session, once; what that cannot move is let
go by the broker at its end, and goes on from the head's log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.mediator import evacuation
from plimsoll.mediator.sessions import KIND as SESSION
from plimsoll.mediator.sessions import is_over
from plimsoll.operator.names import Object
from plimsoll.operator.objects import uid
from plimsoll.operator.observed import Observed, seconds

ATTEMPTS = 2
"""So many sessions empty an edge, one after the other, before it goes with those who are left."""
HEARING_SECONDS = 10.0
"""An edge that has said nothing for so long, while it was listened to, is not waited for."""


@dataclass(frozen=True)
class Serves:
    """How many subscribers an edge has said that it serves, and when, in seconds since 1970."""

    subscribers: int
    at: float


@dataclass(frozen=True)
class Moment:
    """When, how fast the fleet's clock goes, for how long its mediator has been at work, and what it has heard.

    `serves` is None where nobody listens to edges, and sessions alone are gone by.
    """

    now: float
    factor: float = 1.0
    mediated_seconds: float = float("inf")
    serves: Mapping[str, Serves] | None = None


@dataclass(frozen=True)
class Emptying:
    """The session to be asked for (`wanted`), or the one that goes on, or why it is over."""

    session: Object | None = None
    over: bool = False
    reason: str = ""
    wanted: str = ""

    @property
    def name(self) -> str:
        """The name of the session."""
        return str(self.session["metadata"]["name"]) if self.session is not None else self.wanted


def emptying(observed: Observed, edge: str, name: str, moment: Moment) -> Emptying:
    """How far an edge has been emptied by sessions of this name and those that follow it."""
    names = attempts(name)
    found = [session for each in names if (session := observed.get(SESSION, each)) is not None]
    if not found:
        return Emptying(wanted=name)
    session, heard = found[-1], moment.serves.get(edge) if moment.serves is not None else None
    if not is_over(session):
        return _going(session, heard, moment)
    reason = str(session.get("status", {}).get("phase", "ended"))
    if moment.serves is None:
        return Emptying(session, True, reason)
    ended = seconds(session["status"]["endedAt"]) + 1.0  # written in whole seconds
    if heard is None or heard.at <= ended:
        listened = min(moment.now - ended, moment.mediated_seconds)
        unheard = listened > HEARING_SECONDS
        return Emptying(session, unheard, f"{reason}; {edge} does not say whom it serves" if unheard else "")
    if heard.subscribers == 0:
        return Emptying(session, True, reason)
    if len(found) < len(names):
        return Emptying(wanted=names[len(found)], reason=f"{heard.subscribers} are left after {reason}")
    return Emptying(session, True, f"{reason}; {heard.subscribers} are left, and go on from the head's log")


def _going(session: Object, heard: Serves | None, moment: Moment) -> Emptying:
    """One that takes longer than any may is over, if nobody is there any more, or a mediator has had that long."""
    begun, longest = session["metadata"].get("creationTimestamp"), evacuation.LONGEST_SECONDS * moment.factor
    if begun is None or moment.now - seconds(begun) <= longest:
        return Emptying(session)
    if heard is not None and heard.subscribers == 0:
        return Emptying(session, True, "it takes too long, and nobody is there any more")
    if moment.mediated_seconds > longest:
        return Emptying(session, True, "it takes too long")
    return Emptying(session)


def attempts(name: str) -> tuple[str, ...]:
    """The names of the sessions that empty an edge, in their order."""
    return tuple(name if number == 1 else f"{name}-{number}" for number in range(1, ATTEMPTS + 1))


def restarting(observed: Observed, edge: str) -> str:
    """The name of the session that empties an edge before its present pod is replaced; empty without a pod."""
    pod = observed.pod(edge)
    return "" if pod is None or not uid(pod) else f"restart-{edge[:40].rstrip('-')}-{uid(pod)[:8]}"


def restart_sessions(observed: Observed, edge: str) -> list[Object]:
    """The sessions that empty, or have emptied, an edge whose present pod is to be replaced."""
    name = restarting(observed, edge)
    return [found for each in attempts(name) if name and (found := observed.get(SESSION, each)) is not None]
