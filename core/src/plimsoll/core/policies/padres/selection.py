"""Shared by the three offload algorithms: when they end, and how the best of several report cards is chosen."""

from __future__ import annotations

from plimsoll.core.policies.model.plan_builder import PlanBuilder, PlanEnd
from plimsoll.core.policies.model.profile import ProfileRow
from plimsoll.core.policies.model.ranking import RankKey, RowRanking
from plimsoll.core.policies.padres.report_cards import OffloadGoal, ReportCard, best_report_card, relief_level


def goal_end(draft: PlanBuilder, goal: OffloadGoal) -> PlanEnd | None:
    """The end if the goal is reached: balanced or the source below the target (PADRES 2006, 5.1), or relieved (5.2)."""
    pair, metric = draft.pair, goal.metric
    if pair.moves_left == 0:
        return PlanEnd("Limit", "as many move as the session's limit allows")
    if not goal.is_reached(pair):
        return None
    if goal.relieves:
        spared = any(relief_level(pair, each) < pair.parameters.thresholds.of(each).relieved for each in goal.relieves)
        room = ", with room for the subscribers that are joining" if spared else ""
        what = f"{', '.join(goal.relieves)} of {pair.source.name} safely below the lower thresholds{room}"
        return PlanEnd("Relieved", what)
    difference = pair.difference(metric)
    if abs(difference) <= pair.parameters.balance_threshold:
        return PlanEnd("Balanced", f"{metric} differs by {difference:+.4f}: balanced within the threshold")
    return PlanEnd("Below", f"{metric} of {pair.source.name} is below that of {pair.target.name} by {-difference:.4f}")


def report_card_ranking(draft: PlanBuilder, goal: OffloadGoal) -> RowRanking[ReportCard]:
    """Ranks rows by how close they would leave the two; ties go to the row that saves both brokers more input.

    Rows with an objection are rejected, and may be considered again.
    """

    def look(row: ProfileRow) -> tuple[RankKey, ReportCard] | None:
        found = best_report_card(draft.pair, row, goal)
        if not isinstance(found, ReportCard):
            draft.reject(found, for_good=False)
            return None
        gain = abs(draft.pair.difference(goal.metric)) - abs(found.difference)
        return (-round(gain, 9), -found.saved_rate, found.prospect.extra_rate, found.subscribers, row.key), found

    return RowRanking(look)


def choose_card(draft: PlanBuilder, found: ReportCard, goal: OffloadGoal, why: str = "") -> None:
    """Take a card into the plan."""
    words = found.words(goal.metric, draft.pair.difference(goal.metric))
    draft.choose(found.row, found.subscribers, f"{why}{words}")
