"""Who takes a bundle that has no owner: LeastLongTermMessageRate (Pulsar 2023, section 1), or any by hash.

The score of an edge is its long-term message rate, in and out; infinite above the overload line. One of those with the
least score is drawn. If all are above the line, all score the same, and one of them is drawn (the text's algorithm does
that, too): a bundle without an owner is served by none.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.core.policies.placement import PlacementTarget, PlacementUnit


@dataclass(frozen=True)
class LeastLongTermMessageRate:
    """`overloaded`: the highest usage with which an edge still takes bundles, as a ratio."""

    overloaded: float = 0.85
    seed: int = 1

    def place(self, unit: PlacementUnit, ports: Sequence[PlacementTarget]) -> PlacementTarget | None:
        """One of the edges with the least score, each as likely as the others."""
        if not ports:
            return None
        scores = {port.name: self.score(port) for port in ports}
        least = min(scores.values())
        best = sorted((port for port in ports if scores[port.name] == least), key=lambda port: port.name)
        return best[draw(self.seed, unit.number, len(best))]

    def score(self, port: PlacementTarget) -> float:
        """The long-term message rate of an edge, in and out; infinite if it is overloaded."""
        return math.inf if port.usage > self.overloaded else port.message_rate


def draw(seed: int, number: int, choices: int) -> int:
    """One of some choices, each as likely as the others; equal seeds and numbers draw the same."""
    drawn = hashlib.sha256(f"{seed}/{number}".encode()).digest()
    return int.from_bytes(drawn[:8], "big") % choices
