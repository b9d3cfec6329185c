"""The input offload algorithm: balances input utilisation by moving what lies in the source's covering set.

PADRES 2006, 5.1: only what no other subscription covers can take input with it when it goes.
"""

from __future__ import annotations

from plimsoll.core.policies.draft import Draft, End
from plimsoll.core.policies.padres.cards import Goal
from plimsoll.core.policies.padres.common import best, choose, reached
from plimsoll.core.policies.padres.tops import Tops
from plimsoll.core.policies.steps import Rejection


def offload(draft: Draft, goal: Goal) -> End:
    """Choose until the two are balanced, or nothing would bring them closer."""
    tops = Tops(row for row in draft.left.values() if row.bits)
    end = reached(draft, goal)
    while end is None:
        found = best(draft, tops, goal)
        if found is None:
            end = End("NoBetter", "no set in the source's covering set brings the two closer")
        else:
            choose(draft, found, goal)
            tops.remove(found.row.key)
            end = reached(draft, goal)
    for row, coverer in tops.covered():
        why = f"takes no input with it: {coverer} at the source matches all that it does"
        draft.reject(Rejection("Covered", row.key, draft.pair.present[row.key], why))
    for row in [row for row in draft.left.values() if not row.bits]:
        draft.reject(Rejection("NoTraffic", row.key, row.count, "takes no input with it: nothing matches it"))
    return end
