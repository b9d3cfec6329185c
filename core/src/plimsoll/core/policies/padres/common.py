"""What the three offload algorithms share: when they end, and how the best of several report cards is chosen."""

from __future__ import annotations

from plimsoll.core.policies.draft import Draft, End
from plimsoll.core.policies.padres.cards import Goal, ReportCard, card
from plimsoll.core.policies.profile import Row
from plimsoll.core.policies.ranking import Order, Ranking


def reached(draft: Draft, goal: Goal) -> End | None:
    """PADRES 2006, 5.1: balanced within the threshold, or the source below the target; or relieved. 5.2."""
    pair, metric = draft.pair, goal.metric
    if pair.room == 0:
        return End("Limit", "as many move as the session's limit allows")
    if not goal.is_reached(pair):
        return None
    if goal.relieves:
        return End("Relieved", f"{', '.join(goal.relieves)} of {pair.source.name} safely below the lower thresholds")
    difference = pair.difference(metric)
    if abs(difference) <= pair.parameters.balance_threshold:
        return End("Balanced", f"{metric} differs by {difference:+.4f}: balanced within the threshold")
    return End("Below", f"{metric} of {pair.source.name} is below that of {pair.target.name} by {-difference:.4f}")


def ranking(draft: Draft, goal: Goal) -> Ranking[ReportCard]:
    """Ranks rows by how close they would leave the two; of equals, the one that spares both brokers more input.

    Those with an objection are rejected, and may be considered again.
    """

    def look(row: Row) -> tuple[Order, ReportCard] | None:
        found = card(draft.pair, row, goal)
        if not isinstance(found, ReportCard):
            draft.reject(found, for_good=False)
            return None
        gain = abs(draft.pair.difference(goal.metric)) - abs(found.difference)
        return (-round(gain, 9), -found.saved_rate, found.prospect.extra_rate, found.subscribers, row.key), found

    return Ranking(look)


def choose(draft: Draft, found: ReportCard, goal: Goal, why: str = "") -> None:
    """Take a card into the plan."""
    words = found.words(goal.metric, draft.pair.difference(goal.metric))
    draft.choose(found.row, found.subscribers, f"{why}{words}")
