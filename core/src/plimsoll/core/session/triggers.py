"""Edges that want to be balanced: each trigger that is heeded becomes a session, made as an object by the shell.

Triggers come again as long as they are meant, may be lost, late or repeated, and bind nobody. Of one edge there is one
session at a time. What cannot begin yet, as all that could take load are in sessions or stabilise, waits for two
looks of its edge: whoever is overloaded comes first, then who is the furthest from another. After sessions that failed
to move anybody the next one waits, longer each time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from plimsoll.core import records as r
from plimsoll.core.session import overview, states
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

WAITS_LOOKS = 2
"""So many detection intervals a trigger waits for those that it names: by then its edge has looked again."""

PASSING = ("BUSY", "STABILIZING")
"""Answers of edges that may take soon."""

QUEUE_FOR = "15s"
DEADLINE = "5m"
TTL = "24h"


def heed(turn: Turn, trigger: r.Trigger) -> None:
    """Make a session of a trigger as soon as one may begin, unless there is one, or the trigger is not meant now."""
    known = turn.view.edges.get(trigger.edge) if turn.view is not None else None
    if known is None or turn.view is None or known.cluster not in turn.view.policies or not trigger.actions:
        return
    if _is_new(turn, trigger) and not _is_late(known.report, trigger):
        turn.wishes[trigger.edge] = turn.now, trigger
        grant(turn)


def grant(turn: Turn) -> None:
    """Make sessions of triggers that have waited for others to end; those that are old by now are forgotten."""
    engaged: set[str] = set()
    for said_at, trigger in sorted(turn.wishes.values(), key=_by_need):
        known = turn.view.edges.get(trigger.edge) if turn.view is not None else None
        policy = turn.view.policy_of(trigger.edge) if turn.view is not None else None
        if known is None or turn.view is None or policy is None or known.leaving:
            del turn.wishes[trigger.edge]
            continue
        interval = turn.settings.seconds(policy.detection.interval)
        if turn.now > said_at + WAITS_LOOKS * interval:
            del turn.wishes[trigger.edge]
        elif trigger.edge not in engaged and not _must_wait(turn, trigger, min(turn.timings.retry, interval)):
            here = [action for action in trigger.actions if _is_beside(turn, known, action.target)]
            free = (action.target for action in here if _is_free(turn, action.target, trigger))
            if (first := next((name for name in free if name not in engaged), None)) is not None:
                engaged |= {trigger.edge, first}
                _make(turn, trigger, known, here, policy.detection.stabilize_for)


def _by_need(wish: tuple[float, r.Trigger]) -> tuple[bool, float, str]:
    actions = wish[1].actions
    return not any(each.overloaded for each in actions), -max(each.difference for each in actions), wish[1].edge


def _must_wait(turn: Turn, trigger: r.Trigger, pause: float) -> bool:
    """Whether its edge takes part in a session, or has had some that failed just now."""
    own = [session for session in turn.book.sessions.values() if _is_of(session, turn, trigger.edge)]
    if any(_blocks(session, trigger) for session in own) or _is_engaged(turn, trigger.edge, trigger):
        return True
    return turn.now < _not_before([session for session in own if session.triggered], pause)


def _make(turn: Turn, trigger: r.Trigger, edge: EdgeView, actions: Sequence[r.ActionItem], rest: Duration) -> None:
    if turn.is_due(f"trigger/{trigger.edge}", turn.timings.ask):
        del turn.wishes[trigger.edge]
        name = f"balance-{trigger.edge[:30].rstrip('-')}-{trigger.epoch & 0xFFFFFFFF:x}-{trigger.seq}"
        spec, parent = _spec(trigger, actions, rest), _parent(turn, edge, actions)
        if parent is None:
            turn.effects.append(Create(name, "", "", spec))
        else:
            turn.effects.append(Create(name, parent.uid, parent.name, {**spec, **_handed_on(turn, parent)}))


def _handed_on(turn: Turn, parent: Session) -> dict[str, Any]:
    """What a session between clusters says for all that its edges do across."""
    found: dict[str, Any] = {"scope": "Global"}
    request = turn.requests.get(parent.uid)
    if request is None:
        return found
    left = request.spec.exclusions
    kept = {"subscribers": list(left.subscribers), "brokers": list(left.brokers)}
    if any(kept.values()):
        found["exclusions"] = {name: names for name, names in kept.items() if names}
    return {**found, "handover": request.spec.handover}


def _parent(turn: Turn, edge: EdgeView, actions: Iterable[r.ActionItem]) -> Session | None:
    """The session between clusters that this belongs to, if it asks an edge of another cluster."""
    edges = turn.view.edges if turn.view is not None else {}
    is_across = any(edges[action.target].cluster != edge.cluster for action in actions)
    return overview.session_of(turn, edge.cluster) if is_across else None


def _is_beside(turn: Turn, edge: EdgeView, other: str) -> bool:
    """Whether an edge may be asked: one of the same cluster, or of the one that it is joined to for now."""
    known = turn.view.edges.get(other) if turn.view is not None else None
    if known is None or other == edge.name:
        return False
    if known.cluster == edge.cluster:
        return True
    return known.cluster == overview.joined(turn, edge.cluster) and not {edge.name, other} & _left_alone(turn, edge)


def _left_alone(turn: Turn, edge: EdgeView) -> frozenset[str]:
    """Edges that the session between clusters leaves out."""
    session = overview.session_of(turn, edge.cluster)
    request = turn.requests.get(session.uid) if session is not None else None
    return frozenset(request.spec.exclusions.brokers if request is not None else ())


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


def _is_engaged(turn: Turn, edge: str, trigger: r.Trigger) -> bool:
    """Whether an edge takes part in a session that this trigger does not pass."""
    running = (session for session in turn.book.open() if is_running(session))
    return any(edge in session.brokers and _blocks(session, trigger) for session in running)


def _is_free(turn: Turn, edge: str, trigger: r.Trigger) -> bool:
    """Whether an edge could say yes: it is in no session, and has not said that it would refuse."""
    known = turn.view.edges.get(edge) if turn.view is not None else None
    state = known.report.get("state", "OK") if known is not None else "OK"
    return state in ("OK", "BUSY") and not _is_engaged(turn, edge, trigger)


def _not_before(sessions: list[Session], pause: float) -> float:
    """When the next one may be made: not soon after some that moved nobody, `pause` seconds after the first of them.

    Where a plan was empty, its edge wants something else by now. Where others were busy, to wait longer would not help.
    """
    failed = refused = 0
    ended = sorted(((session.ended_at or 0.0, session) for session in sessions), key=lambda each: each[0], reverse=True)
    for _, session in ended:
        if session.counts()["moved"] or states.came_to_nothing(session):
            break
        is_passing = any(offer.answer in PASSING for offer in session.offers)
        refused += is_passing
        failed += not is_passing
    if not failed + refused:
        return 0.0
    return ended[0][0] + pause * float(min(2 ** max(failed - 1, 0), LONGEST_PAUSE))


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
