"""The algorithm of the text: consumers are overloaded, normal or underloaded, and pairs of them move slices.

DPSLB 2014, 3.3: the overloaded give to the underloaded; how many slices follows from how far the giver is above the
average, its slices taken to weigh alike. The text leaves the lines open; 0.8 and 0.5 are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, Shares, SlicePlan


@dataclass(frozen=True, slots=True)
class Pairing:
    """`overloaded`, `underloaded`: lines of usage, 0 to 1. `sessions_at_most`: pairs in one plan."""

    overloaded: float = 0.8
    underloaded: float = 0.5
    sessions_at_most: int = 8

    def balance(self, consumers: Sequence[ConsumerLoad]) -> SlicePlan:
        """Pairs, the highest giver with the lowest taker first."""
        staying = [c for c in consumers if c.stays]
        if any(not c.has_measured for c in staying):
            return SlicePlan(reason="a consumer has not reported its load since its slices changed")
        usage = {c.name: c.usage for c in staying}
        shares = Shares.of(staying)
        each = {c.name: c.usage / len(c.slices) for c in staying if c.slices}
        pairs = 0
        while pairs < self.sessions_at_most and (pair := self._pair(usage, shares)) is not None:
            giver, taker = pair
            pairs += self._give(giver, taker, usage, shares, each[giver])
        return SlicePlan(shares.sessions(), self._reason(usage, shares))

    def _pair(self, usage: dict[str, float], shares: Shares) -> tuple[str, str] | None:
        givers = [name for name, used in usage.items() if used > self.overloaded and len(shares.slices[name]) > 1]
        takers = [name for name, used in usage.items() if used < self.underloaded]
        if not givers or not takers:
            return None
        giver = max(givers, key=lambda name: (usage[name], name))
        return giver, min(takers, key=lambda name: (usage[name], name))

    def _give(self, giver: str, taker: str, usage: dict[str, float], shares: Shares, weight: float) -> int:
        """Move slices until the giver is at the average of the two; returns 1, or 0 and closes the pair."""
        many = int((usage[giver] - usage[taker]) / 2 / weight)
        many = max(0, min(many, len(shares.slices[giver]) - 1))
        if not many:
            usage.pop(giver)  # one slice is more than the difference: to move it would only swap the two
            return 0
        for number in sorted(shares.slices[giver])[-many:]:
            shares.move(number, giver, taker)
        usage[giver] -= many * weight
        usage[taker] += many * weight
        return 1

    def _reason(self, usage: dict[str, float], shares: Shares) -> str:
        if not any(used > self.overloaded for used in usage.values()):
            return "no consumer is overloaded whose slices could go elsewhere"
        if not any(used < self.underloaded for used in usage.values()):
            return "no consumer is underloaded"
        return f"{self.sessions_at_most} sessions are as many as a plan has" if shares.moves else "nothing can move"
