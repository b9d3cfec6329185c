"""Why slices move, in words: for triggers, plans and reports."""

from __future__ import annotations

from collections.abc import Sequence

from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, SlicePlan


def imbalance_text(consumers: Sequence[ConsumerLoad], plan: SlicePlan) -> str:
    """What a policy has found, in one line: the consumer that gives most, and how the others stand."""
    moves = plan.moves
    if not moves:
        return plan.reason
    counts = {c.name: sum(move.giver == c.name for move in moves) for c in consumers}
    giver = max(consumers, key=lambda c: (counts[c.name], c.name))
    average = sum(c.cost for c in consumers) / len(consumers)
    return (
        f"{giver.name} works {giver.cost:.2f} s a second (processor {giver.cpu:.0%}), the average is {average:.2f} s;"
        f" {len(moves)} {'slice' if len(moves) == 1 else 'slices'} would move"
    )


def numbers_text(numbers: Sequence[int], most: int = 10) -> str:
    """Numbers of slices as a list, shortened: `slices 3, 4, 7 and 12 more`."""
    shown = ", ".join(map(str, numbers[:most]))
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return f"{'slice' if len(numbers) == 1 else 'slices'} {shown}{more}"
