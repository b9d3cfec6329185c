"""The match offload algorithm: balances matching delay, or relieves processor, input and memory, by what flows least.

PADRES 2006, 5.2: subscriptions of little traffic weigh on the matching engine and on nothing else.
"""

from __future__ import annotations

from plimsoll.core.policies.draft import Draft, End
from plimsoll.core.policies.padres.cards import Goal, ReportCard, card
from plimsoll.core.policies.padres.common import choose, reached


def offload(draft: Draft, goal: Goal) -> End:
    """Choose in ascending order of output, of equals what brings the target less input first."""
    pair = draft.pair
    rows = sorted(draft.left.values(), key=lambda row: (pair.bytes[row.key], pair.extra_rate(row), row.key))
    for row in rows:
        if (end := reached(draft, goal)) is not None:
            return end
        found = card(pair, row, goal)
        if isinstance(found, ReportCard):
            choose(draft, found, goal)
        else:
            draft.reject(found)
    return reached(draft, goal) or End("Exhausted", "every set has been considered")
