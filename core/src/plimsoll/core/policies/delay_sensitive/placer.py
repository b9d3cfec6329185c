"""Where a topic goes that no edge serves yet. Tao, Poslad, Bigham 2013, IV.A.

The first principle, subscribers of one topic at one edge, is kept by the head, which knows who has the topic. The
others are here: an edge without a correlated topic before one that has some, and then the edge of which least is used,
over all of its resources. An edge above a lower threshold takes none unless all are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.core.policies.placement import PlacementTarget, PlacementUnit


@dataclass(frozen=True)
class LeastUsedPlacer:
    """`most_usage`: the use of its busiest resource above which an edge takes no new topic, as a ratio."""

    most_usage: float = 0.9

    def place(self, unit: PlacementUnit, ports: Sequence[PlacementTarget]) -> PlacementTarget | None:
        """The least used edge, or None if there are no edges; the first by name among equals."""
        return min(ports, key=lambda port: self._burden(port.after(unit)), default=None)

    def _burden(self, port: PlacementTarget) -> tuple[bool, int, float, float, str]:
        used = max(port.usage, port.load)
        return used > self.most_usage, port.beside, used, port.load, port.name
