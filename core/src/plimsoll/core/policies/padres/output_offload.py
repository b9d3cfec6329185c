"""The output offload algorithm: first sets whose input the target takes in anyway, then sets that cost it new input.

PADRES 2006, 5.3. Phase-I takes sets that the target covers, in three types: I saves the source their input; II would
save it if all could go; III does not, as the source needs the input for others. Phase-II takes the rest and brings the
target new input, so it ends when the input utilisations are balanced: otherwise it and the input algorithm would undo
each other's work without end. An output-overloaded source goes on until it is below its lower threshold: it is then
N/A to brokers that would give the load back.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.core.policies.model.plan_builder import PlanBuilder, PlanEnd
from plimsoll.core.policies.model.profile import ProfileRow
from plimsoll.core.policies.model.ranking import RowRanking
from plimsoll.core.policies.padres.report_cards import OffloadGoal, ReportCard, best_report_card
from plimsoll.core.policies.padres.selection import choose_card, goal_end, report_card_ranking

STABILITY = "stability rule of Phase-II"


def offload(draft: PlanBuilder, goal: OffloadGoal) -> PlanEnd:
    """Phase-I; then, while there is more to do, one set by Phase-II and the sets now covered by Phase-I."""
    ranked = report_card_ranking(draft, goal)
    while True:
        end = _phase_one(draft, goal) or _phase_two(draft, goal, ranked)
        if end is not None:
            return end


def _phase_one(draft: PlanBuilder, goal: OffloadGoal) -> PlanEnd | None:
    """Choose sets that the target covers while one brings the two closer; returns an end if the two are balanced."""
    while True:
        if (end := goal_end(draft, goal)) is not None:
            return end
        chosen = _first(draft, goal)
        if chosen is None:
            return None
        kind, found = chosen
        choose_card(draft, found, goal, f"Phase-I, Type-{kind}: ")


def _first(draft: PlanBuilder, goal: OffloadGoal) -> tuple[str, ReportCard] | None:
    """The next set: of the first type present, the one with the most output per subscriber."""
    second: ReportCard | None = None
    for row in list(_covered(draft)):
        if not draft.pair.saved_rate(row):
            continue
        found = _card(draft, row, goal)
        if found is not None and found.subscribers == draft.pair.present[row.key]:
            return "I", found
        second = second or found
    if second is not None:
        return "II", second
    for row in list(_covered(draft)):
        if not draft.pair.saved_rate(row) and (found := _card(draft, row, goal)) is not None:
            return "III", found
    return None


def _covered(draft: PlanBuilder) -> Iterator[ProfileRow]:
    pair = draft.pair
    rows = [row for row in draft.left.values() if pair.is_covered(row)]
    return iter(sorted(rows, key=lambda row: (-pair.bytes[row.key], row.key)))


def _card(draft: PlanBuilder, row: ProfileRow, goal: OffloadGoal) -> ReportCard | None:
    found = best_report_card(draft.pair, row, goal)
    if isinstance(found, ReportCard):
        return found
    draft.reject(found, for_good=not goal.exempt)
    return None


def _phase_two(draft: PlanBuilder, goal: OffloadGoal, ranked: RowRanking[ReportCard]) -> PlanEnd | None:
    """Choose the set not covered by the target that leaves the two closest; or return an end."""
    pair = draft.pair
    difference = pair.difference("input")
    if difference <= pair.parameters.balance_threshold:
        above = f"input utilisation of {pair.source.name} is {difference:+.4f} above that of {pair.target.name}"
        return _relief(draft) if goal.exempt else PlanEnd("Stability", f"{STABILITY}: {above}")
    found = ranked.best(draft.left)
    if found is not None:
        choose_card(draft, found, goal, "Phase-II: ")
        return None
    if goal.exempt and pair.parameters.rules != "Paper":
        return _relief(draft)
    if draft.is_rejected("Unstable"):
        return PlanEnd("Stability", f"{STABILITY}: what is left would bring input or matching delay further apart")
    return PlanEnd("NoBetter", "no set brings the two closer")


def _relief(draft: PlanBuilder) -> PlanEnd | None:
    """Choose the set that brings an overloaded source closest to its lower threshold; or return an end.

    By our rules also where no set brings the two closer: a source above its threshold is worse than a target that has
    more and is not.
    """
    goal = OffloadGoal("output", relieves=("output",), exempt=True)
    if (end := goal_end(draft, goal)) is not None:
        return end
    found = report_card_ranking(draft, goal).best(draft.left)
    if found is None:
        return PlanEnd("NoBetter", "no set lessens the overload")
    choose_card(draft, found, goal, "Phase-II: ")
    return None
