"""Ours: even out what slices cost, by measured rate and seconds of work per item, with as few moves as needed.

A move is planned only if it lowers the higher of the two consumers by more than `gain` of the average; so constant load
comes to rest: each move lowers the sum of squares of the costs by a bounded amount.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, Shares, SliceLoad, SlicePlan


@dataclass(frozen=True, slots=True)
class CostBalancing:
    """`tolerance`: how far above the average a consumer may be, as a ratio. `gain`: of the average, that a move must
    bring. `moves_at_most`: in one plan.
    """

    tolerance: float = 0.1
    gain: float = 0.02
    moves_at_most: int = 64

    def balance(self, consumers: Sequence[ConsumerLoad]) -> SlicePlan:
        """From the costliest consumer to the cheapest, the slice that brings the two closest together."""
        staying = [c for c in consumers if c.stays]
        if not staying:
            return SlicePlan(reason="there is no consumer that stays")
        if any(not c.has_measured for c in staying):
            return SlicePlan(reason="a consumer has not reported its load since its slices changed")
        shares = Shares.of(staying)
        average = sum(c.cost for c in staying) / len(staying)
        names = sorted(shares.slices)
        costs = {name: shares.cost(name) for name in names}
        while len(shares.moves) < self.moves_at_most:
            giver = max(names, key=lambda name: (costs[name], name))
            taker = min(names, key=lambda name: (costs[name], name))
            if costs[giver] <= average * (1.0 + self.tolerance):
                return SlicePlan(shares.sessions(), "no consumer is far above the average")
            best = self._best(shares, giver, costs[giver] - costs[taker], average)
            if best is None:
                return SlicePlan(shares.sessions(), f"no slice of {giver} would bring it closer to the others")
            costs[giver] -= best.cost
            costs[taker] += best.cost
            shares.move(best.number, giver, taker)
        return SlicePlan(shares.sessions(), f"{self.moves_at_most} moves are as many as a plan has")

    def _best(self, shares: Shares, giver: str, between: float, average: float) -> SliceLoad | None:
        """The slice nearest to half the difference: any below the whole difference lowers the higher of the two."""
        fitting = [
            each for each in shares.slices[giver].values()
            if min(each.cost, between - each.cost) > self.gain * average
        ]  # fmt: skip
        return min(fitting, key=lambda each: (abs(between / 2 - each.cost), each.number), default=None)
