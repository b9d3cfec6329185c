"""The output offload algorithm: first what the target takes in anyway, then what costs it new input.

PADRES 2006, 5.3. Phase-I takes sets that the target covers, in three types: I, whose input the source is spared; II,
whose input it would be spared if all could go; III, whose input it needs for others. Phase-II takes the rest and brings
the target new input, so it ends when the input utilisations are balanced: otherwise it and the input algorithm would
undo each other's work for ever. An output-overloaded source goes on until it is below its lower threshold: it then is
N/A to those who would give back.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.core.policies.draft import Draft, End
from plimsoll.core.policies.padres.cards import Goal, ReportCard, card
from plimsoll.core.policies.padres.common import choose, ranking, reached
from plimsoll.core.policies.profile import Row
from plimsoll.core.policies.ranking import Ranking

STABILITY = "stability rule of Phase-II"


def offload(draft: Draft, goal: Goal) -> End:
    """Phase-I, and as long as there is more to do, one set by Phase-II and what it now covers by Phase-I."""
    ranked = ranking(draft, goal)
    while True:
        end = _phase_one(draft, goal) or _phase_two(draft, goal, ranked)
        if end is not None:
            return end


def _phase_one(draft: Draft, goal: Goal) -> End | None:
    """Sets that the target covers, as long as one of them brings the two closer; an end if the two are balanced."""
    while True:
        if (end := reached(draft, goal)) is not None:
            return end
        chosen = _first(draft, goal)
        if chosen is None:
            return None
        kind, found = chosen
        choose(draft, found, goal, f"Phase-I, Type-{kind}: ")


def _first(draft: Draft, goal: Goal) -> tuple[str, ReportCard] | None:
    """The next set: of the first type that there is, the one with the most output per subscriber."""
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


def _covered(draft: Draft) -> Iterator[Row]:
    pair = draft.pair
    rows = [row for row in draft.left.values() if pair.is_covered(row)]
    return iter(sorted(rows, key=lambda row: (-pair.bytes[row.key], row.key)))


def _card(draft: Draft, row: Row, goal: Goal) -> ReportCard | None:
    found = card(draft.pair, row, goal)
    if isinstance(found, ReportCard):
        return found
    draft.reject(found)
    return None


def _phase_two(draft: Draft, goal: Goal, ranked: Ranking[ReportCard]) -> End | None:
    """One set that the target does not cover, the one that leaves the two closest; or an end."""
    pair = draft.pair
    difference = pair.difference("input")
    if difference <= pair.parameters.balance_threshold:
        above = f"input utilisation of {pair.source.name} is {difference:+.4f} above that of {pair.target.name}"
        if not goal.exempt:
            return End("Stability", f"{STABILITY}: {above}")
        goal = Goal("output", relieves=("output",), exempt=True)
        if (end := reached(draft, goal)) is not None:
            return end
        ranked = ranking(draft, goal)
    found = ranked.best(draft.left)
    if found is not None:
        choose(draft, found, goal, "Phase-II: ")
        return None
    if draft.is_rejected("Unstable"):
        return End("Stability", f"{STABILITY}: what is left would bring input or matching delay further apart")
    return End("NoBetter", "no set brings the two closer")
