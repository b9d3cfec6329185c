"""The match offload algorithm: balances matching delay, or relieves processor, input and memory, by the least traffic.

PADRES 2006, 5.2: subscriptions with little traffic load the matching engine and nothing else.
"""

from __future__ import annotations

from plimsoll.core.policies.model.plan_builder import PlanBuilder, PlanEnd
from plimsoll.core.policies.padres.report_cards import OffloadGoal, ReportCard, best_report_card
from plimsoll.core.policies.padres.selection import choose_card, goal_end


def offload(draft: PlanBuilder, goal: OffloadGoal) -> PlanEnd:
    """Choose in ascending order of output; ties go to the row that brings the target less input."""
    pair = draft.pair
    rows = sorted(draft.left.values(), key=lambda row: (pair.bytes[row.key], pair.extra_rate(row), row.key))
    for row in rows:
        if (end := goal_end(draft, goal)) is not None:
            return end
        found = best_report_card(pair, row, goal)
        if isinstance(found, ReportCard):
            choose_card(draft, found, goal)
        else:
            draft.reject(found)
    return goal_end(draft, goal) or PlanEnd("Exhausted", "every set has been considered")
