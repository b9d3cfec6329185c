"""Who should not return to an edge: at constant load balancing would go round in circles.

A policy has moved them away from it before. Moves change no edge's deliveries in sum, so a load is constant as long as
that sum is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from plimsoll.core.session.attempts import moved_since
from plimsoll.core.session.state import Session

CONSTANT_WITHIN = 0.2
"""Of the deliveries of a cluster: what changes by less may be chance, and is no reason to move a subscriber back."""


def moved_away(sessions: Iterable[Session], edge: str, delivered: float) -> frozenset[str]:
    """Subscribers that a policy of pairs has moved away from an edge, at a load like that of now."""
    found: set[str] = set()
    for one in sessions:
        if one.kind != "balance" or one.plan is None or not any(pair.source == edge for pair in one.plan.pairs):
            continue
        if _is_alike(one, delivered):
            found |= {name for name, outcome in one.outcomes().items() if outcome == "moved"}
    return frozenset(found)


def left_edges(sessions: Mapping[str, Session], edges: Iterable[str], delivered: float) -> dict[str, frozenset[str]]:
    """The edges of a cluster that each subscriber has left by plans of its policy, at a load like that of now.

    `sessions`: all of the table, by uid; the moves of a plan are sessions that it owns.
    """
    own = set(edges)
    plans = {
        uid for uid, one in sessions.items()
        if one.triggered and one.is_fleet_wide and own.issuperset(one.sources) and _is_alike(one, delivered)
    }  # fmt: skip
    found = defaultdict[str, set[str]](set)
    for child in sessions.values():
        if child.parent in plans:
            for name in moved_since(child, -math.inf):
                found[name].update(child.sources)
    return {name: frozenset(some) for name, some in found.items()}


def _is_alike(session: Session, delivered: float) -> bool:
    plan = session.plan
    return plan is not None and abs(plan.deliveries_per_second - delivered) <= CONSTANT_WITHIN * delivered
