"""How long subscribers that changed their edge were given nothing: a histogram for each way to do it.

A pause begins when all that the old edge delivers has reached the subscriber, and ends when what the new edge delivers
can reach it. Nothing is lost in it: publications of this time come late.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Literal

from plimsoll.simulator.queueing.delays import DelayHistogram

Way = Literal["drain", "replay", "lookup"]


class Pauses:
    """`by_way`: hand-overs by drain or by replay, and bundles that were unloaded by lookup."""

    def __init__(self) -> None:
        self.by_way: defaultdict[Way, DelayHistogram] = defaultdict(DelayHistogram)
        self.longest: dict[Way, float] = {}

    def add(self, way: Way, begins_at: float, ends_at: float) -> None:
        """Count the pause of one subscriber."""
        seconds = max(ends_at - begins_at, 0.0)
        self.by_way[way].add(seconds, 1)
        self.longest[way] = max(self.longest.get(way, 0.0), seconds)

    def rows(self) -> dict[str, dict[str, Any]]:
        """Number, mean, median and maximum in seconds, by way."""
        return {
            way: {
                "count": found.count, "mean_seconds": found.mean, "p50_seconds": found.percentile(0.5),
                "longest_seconds": self.longest[way],
            }
            for way, found in sorted(self.by_way.items())
        }  # fmt: skip
