"""Delivery delays, from the publisher's call to the subscriber's callback, by second and by edge."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final

SHARES: Final = (("p50", 0.5), ("p99", 0.99))


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share does not exceed; None if there are none. `ordered`: ascending."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def summary(delays: Iterable[float]) -> dict[str, float | int | None]:
    """`count`, `p50`, `p99` and `max`, in seconds."""
    ordered = sorted(delays)
    shares = {name: percentile(ordered, share) for name, share in SHARES}
    return {"count": len(ordered), **shares, "max": ordered[-1] if ordered else None}


class DeliveryDelays:
    """All delays of a run. `start`: the time at which its first second begins."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._bins: dict[tuple[int, str], array[float]] = {}

    def take(self, edge: str, delivered_at: float, delay_seconds: float) -> None:
        key = (int(delivered_at - self._start), edge)
        kept = self._bins.get(key)
        if kept is None:
            kept = self._bins[key] = array("d")
        kept.append(delay_seconds)

    def add(self, other: DeliveryDelays) -> None:
        """Add the delays of another one with the same start."""
        for key, kept in other._bins.items():
            self._bins.setdefault(key, array("d")).extend(kept)

    @property
    def edges(self) -> list[str]:
        return sorted({edge for _, edge in self._bins})

    def summary(self, edge: str | None = None) -> dict[str, float | int | None]:
        """Of the whole run, for one edge or for all."""
        return summary(delay for (_, at), kept in self._bins.items() if edge in (None, at) for delay in kept)

    def between(self, begin: float, end: float) -> dict[str, float | int | None]:
        """Of what was delivered in the whole seconds between these times, at all edges."""
        return summary(
            delay for (second, _), kept in self._bins.items() if begin <= second and second + 1 <= end for delay in kept
        )

    def series(self, edge: str | None = None) -> dict[str, list[Any]]:
        """The same for each second with deliveries; `seconds` is the end of that second."""
        seconds = sorted({second for second, at in self._bins if edge in (None, at)})
        columns: dict[str, list[Any]] = {"seconds": [second + 1 for second in seconds]}
        for second in seconds:
            bins = (kept for (at, of), kept in self._bins.items() if at == second and edge in (None, of))
            for name, value in summary(delay for kept in bins for delay in kept).items():
                columns.setdefault(name, []).append(value)
        return columns
