"""The input offload algorithm: balances input utilisation by moving subscriptions of the source's covering set.

PADRES 2006, 5.1: only a subscription that no other one covers takes input with it when it goes.
"""

from __future__ import annotations

from plimsoll.core.policies.model.plan import PlanRejection
from plimsoll.core.policies.model.plan_builder import PlanBuilder, PlanEnd
from plimsoll.core.policies.padres.maximal_rows import MaximalRows
from plimsoll.core.policies.padres.report_cards import OffloadGoal
from plimsoll.core.policies.padres.selection import choose_card, goal_end, report_card_ranking


def offload(draft: PlanBuilder, goal: OffloadGoal) -> PlanEnd:
    """Choose until the two are balanced, or nothing would bring them closer.

    The paper stops when no row of the covering set helps. Here, while the two differ by more than the trigger, a row
    that cannot go is set aside, so that the rows that it covers are considered.
    """
    pair = draft.pair
    tops = MaximalRows(row for row in draft.left.values() if row.bits)
    ranked = report_card_ranking(draft, goal)
    end = goal_end(draft, goal)
    while end is None:
        found = ranked.best(tops.rows)
        if found is not None:
            alone = pair.alone
            choose_card(draft, found, goal)
            tops.remove(found.row.key)
            ranked.invalidate(key for key, row in tops.rows.items() if row.bits & pair.alone & ~alone)
            end = goal_end(draft, goal)
        elif tops.rows and pair.difference("input") > pair.limit("input"):
            for key in list(tops.rows):
                tops.remove(key)
        else:
            end = PlanEnd("NoBetter", "no set in the source's covering set brings the two closer")
    for row, coverer in tops.covered():
        why = f"takes no input with it: {coverer} at the source matches all that it does"
        draft.reject(PlanRejection("Covered", row.key, pair.present[row.key], why), for_good=False)
    for row in [row for row in draft.left.values() if not row.bits]:
        why = "takes no input with it: nothing matches it"
        draft.reject(PlanRejection("NoTraffic", row.key, row.count, why), for_good=False)
    return end
