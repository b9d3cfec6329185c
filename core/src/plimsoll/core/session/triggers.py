"""Edges that want to be balanced: each trigger that is heeded becomes a session, made as an object by the shell.

Triggers come again as long as they are meant, may be lost, late or repeated, and bind nobody. Of one edge there is one
session at a time; after sessions that moved nobody the next one waits, longer each time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from plimsoll.core import records as r
from plimsoll.core.session import overview
from plimsoll.core.session.events import Create
from plimsoll.core.session.record import Session
from plimsoll.core.session.turn import Turn, is_running
from plimsoll.core.session.values import EdgeView
from plimsoll.core.spec.quantities import Duration

LARGEST_DIFFERENCE = 1e6
LATE_REPORTS = 10
"""A trigger from before the last so many load reports of its edge says nothing of now."""

KEPT_AT_MOST = 200
"""So many ended sessions that edges wanted are kept, however long their time to live is."""

LONGEST_PAUSE = 4
"""Pauses between sessions that move nobody double up to so many times the first."""

QUEUE_FOR = "15s"
DEADLINE = "5m"
TTL = "24h"


def heed(turn: Turn, trigger: r.Trigger) -> None:
    """Make a session of a trigger, unless there is one, or it is too early for one."""
    known = turn.view.edges.get(trigger.edge) if turn.view is not None else None
    if known is None or turn.view is None or known.cluster not in turn.view.policies or not trigger.actions:
        return
    if not _is_new(turn, trigger) or _is_late(known.report, trigger) or known.leaving:
        return
    own = [session for session in turn.book.sessions.values() if _is_of(session, turn, trigger.edge)]
    if any(_blocks(session, trigger) for session in own) or _is_taking(turn, trigger):
        return
    detection = turn.view.policies[known.cluster].detection
    pause = min(turn.timings.retry, turn.settings.seconds(detection.interval))
    if turn.now < _not_before([session for session in own if session.triggered], pause):
        return
    here = [action for action in trigger.actions if _is_beside(turn, known, action.target)]
    if here and turn.is_due(f"trigger/{trigger.edge}", turn.timings.ask):
        name = f"balance-{trigger.edge[:30].rstrip('-')}-{trigger.epoch & 0xFFFFFFFF:x}-{trigger.seq}"
        spec, parent = _spec(trigger, here, detection.stabilize_for), _parent(turn, known, here)
        if parent is None:
            turn.effects.append(Create(name, "", "", spec))
        else:
            turn.effects.append(Create(name, parent.uid, parent.name, {**spec, "scope": "Global"}))


def _parent(turn: Turn, edge: EdgeView, actions: Iterable[r.ActionItem]) -> Session | None:
    """The session between clusters that this belongs to, if it asks an edge of another cluster."""
    edges = turn.view.edges if turn.view is not None else {}
    is_across = any(edges[action.target].cluster != edge.cluster for action in actions)
    return overview.session_of(turn, edge.cluster) if is_across else None


def _is_beside(turn: Turn, edge: EdgeView, other: str) -> bool:
    """Whether an edge may be asked: one of the same cluster, or of the one that it is joined to for now."""
    known = turn.view.edges.get(other) if turn.view is not None else None
    near = (edge.cluster, overview.joined(turn, edge.cluster))
    return known is not None and other != edge.name and known.cluster in near


def _is_new(turn: Turn, trigger: r.Trigger) -> bool:
    number = (trigger.epoch, trigger.seq)
    if number <= turn.triggered.get(trigger.edge, (0, 0)):
        return False
    turn.triggered[trigger.edge] = number
    return True


def _is_late(report: Any, trigger: r.Trigger) -> bool:
    """Whether the edge has said much since, or has started anew."""
    epoch, seq = report.get("epoch"), report.get("seq")
    if not isinstance(epoch, int) or not isinstance(seq, int):
        return False
    return trigger.epoch < epoch or (trigger.epoch == epoch and trigger.seq < seq - LATE_REPORTS)


def _is_of(session: Session, turn: Turn, edge: str) -> bool:
    """Whether a session takes from this edge, or will; what has not begun yet is known by what it asks for."""
    if session.sources:
        return edge in session.sources
    request = turn.requests.get(session.uid)
    return request is not None and request.spec.source is not None and request.spec.source.name == edge


def _blocks(session: Session, trigger: r.Trigger) -> bool:
    """Whether it has not ended; one that only waits for loads to settle ends if there is need."""
    is_urgent = any(action.overloaded for action in trigger.actions)
    return not session.is_over and not (is_urgent and session.by_policy and session.phase == "Stabilizing")


def _is_taking(turn: Turn, trigger: r.Trigger) -> bool:
    """Whether it takes part in another session."""
    running = (session for session in turn.book.open() if is_running(session))
    return any(trigger.edge in session.brokers and _blocks(session, trigger) for session in running)


def _not_before(sessions: list[Session], pause: float) -> float:
    """When the next one may be made: not soon after some that moved nobody, `pause` seconds after the first of them."""
    fruitless = 0
    ended = sorted(((session.ended_at or 0.0, session) for session in sessions), key=lambda each: each[0], reverse=True)
    for _, session in ended:
        if session.counts()["moved"]:
            break
        fruitless += 1
    if not fruitless:
        return 0.0
    return ended[0][0] + pause * float(min(2 ** (fruitless - 1), LONGEST_PAUSE))


def _spec(trigger: r.Trigger, actions: Iterable[r.ActionItem], rest: Duration) -> dict[str, Any]:
    """The specification of the session, as in YAML. Whoever was moved may move again when its edge has stabilised."""
    return {
        "scope": "Local",
        "source": {"name": trigger.edge},
        "action": "Rebalance",
        "mode": "Execute",
        "candidates": [_candidate(action) for action in actions],
        "trigger": {"broker": trigger.edge, "reason": trigger.reason[:500]},
        "limits": {"queueFor": QUEUE_FOR, "moveInterval": str(rest)},
        "deadline": DEADLINE,
        "ttl": TTL,
    }


def _candidate(action: r.ActionItem) -> dict[str, Any]:
    difference = min(max(action.difference, 0.0), LARGEST_DIFFERENCE) if math.isfinite(action.difference) else 0.0
    found: dict[str, Any] = {
        "name": action.target,
        "metric": action.metric.capitalize(),
        "difference": f"{round(1000 * difference)}m",
    }
    overloaded = [each.capitalize() for each in dict.fromkeys(action.overloaded)]  # a list says nothing twice
    return {**found, "overloaded": overloaded} if overloaded else found


def superseded(turn: Turn) -> Iterator[Session]:
    """Ended sessions beyond those that are kept, the oldest."""
    ended = [each for each in turn.book.sessions.values() if each.triggered and each.ended_at is not None]
    if len(ended) > KEPT_AT_MOST:
        ended.sort(key=lambda session: (session.ended_at or 0.0, session.name))
        yield from (session for session in ended[:-KEPT_AT_MOST] if session.uid in turn.requests)
