"""The input offload algorithm: balances input utilisation by moving what lies in the source's covering set.

PADRES 2006, 5.1: only what no other subscription covers can take input with it when it goes.
"""

from __future__ import annotations

from plimsoll.core.policies.draft import Draft, End
from plimsoll.core.policies.padres.cards import Goal
from plimsoll.core.policies.padres.common import choose, ranking, reached
from plimsoll.core.policies.padres.tops import Tops
from plimsoll.core.policies.steps import Rejection


def offload(draft: Draft, goal: Goal) -> End:
    """Choose until the two are balanced, or nothing would bring them closer.

    The paper ends where nothing of the covering set does. While the two differ by more than the trigger, what cannot go
    is here taken out of the way of what it covers.
    """
    pair = draft.pair
    tops = Tops(row for row in draft.left.values() if row.bits)
    ranked = ranking(draft, goal)
    end = reached(draft, goal)
    while end is None:
        found = ranked.best(tops.rows)
        if found is not None:
            alone = pair.alone
            choose(draft, found, goal)
            tops.remove(found.row.key)
            ranked.again(key for key, row in tops.rows.items() if row.bits & pair.alone & ~alone)
            end = reached(draft, goal)
        elif tops.rows and pair.difference("input") > pair.limit("input"):
            for key in list(tops.rows):
                tops.remove(key)
        else:
            end = End("NoBetter", "no set in the source's covering set brings the two closer")
    for row, coverer in tops.covered():
        why = f"takes no input with it: {coverer} at the source matches all that it does"
        draft.reject(Rejection("Covered", row.key, pair.present[row.key], why), for_good=False)
    for row in [row for row in draft.left.values() if not row.bits]:
        why = "takes no input with it: nothing matches it"
        draft.reject(Rejection("NoTraffic", row.key, row.count, why), for_good=False)
    return end
