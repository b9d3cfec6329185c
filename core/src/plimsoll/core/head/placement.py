"""Where a newcomer goes: the edges of a cluster as a head sees them, and the placer that chooses among them.

Placements since an edge's last report are counted: a burst of newcomers must not all go to the edge that was the
emptiest at that time.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from plimsoll.core.policies import LeastLoadedPlacer, Location, PlacementTarget, PlacementUnit, Placer
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec

NEWCOMER: Final = PlacementUnit()

LONG_TERM: Final = 0.9
"""The weight of all reports before in the long-term message rate of an edge."""

RATIOS: Final = ("cpu_ratio", "memory_ratio", "downlink_utilization")
"""Utilisations of resources beside input and output."""


@dataclass(slots=True)
class EdgeCandidate:
    """An edge, where clients reach it, and its load: as reported, and newcomers since."""

    target: PlacementTarget
    endpoint: str
    public_key: str

    long_term_rate: float | None = None

    @property
    def name(self) -> str:
        return self.target.name

    def note_rate(self, now: float) -> float:
        """The long-term message rate with one more report; the first counts as it is."""
        before = now if self.long_term_rate is None else self.long_term_rate
        self.long_term_rate = LONG_TERM * before + (1.0 - LONG_TERM) * now
        return self.long_term_rate


class Placement:
    """The edges that can take subscribers now."""

    def __init__(self, placer: Placer | None = None) -> None:
        self.placer = placer or LeastLoadedPlacer()
        self._candidates: dict[str, EdgeCandidate] = {}
        self._placed = 0
        self.cordoned: frozenset[str] = frozenset()
        """Edges that take no newcomers; their subscribers stay."""

    def add(self, name: str, endpoint: str, public_key: str) -> None:
        self._candidates[name] = EdgeCandidate(PlacementTarget(name), endpoint, public_key)

    def remove(self, name: str) -> None:
        self._candidates.pop(name, None)

    def update_load(self, report: Mapping[str, Any]) -> None:
        """Take over the load that an edge reports.

        Raises:
            WireError: `report`, if it cannot be read. The last load stays.

        """
        candidate = self._candidates.get(str(report.get("broker")))
        if candidate is None:
            return
        try:
            utilization = max(float(report["input_utilization"]), float(report["output_utilization"]))
            capacity, subscribers = float(report.get("capacity", 1.0)), int(report["subscribers"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise WireError("report", f"the load report of {candidate.name} cannot be read: {error!r}") from error
        if not (0.0 <= utilization < float("inf") and 0.0 < capacity < float("inf") and subscribers >= 0):
            raise WireError("report", f"the load report of {candidate.name} has a number out of range")
        location, usage = reported_location(report), max(utilization, *(_ratio(report, each) for each in RATIOS))
        rate = candidate.note_rate(_ratio(report, "input_rate") + _ratio(report, "output_rate"))
        candidate.target = PlacementTarget(candidate.name, utilization, subscribers, capacity, location, usage, rate)

    def open_candidate(self, name: str) -> EdgeCandidate | None:
        """An edge that takes newcomers now; None if it does not, or is not here."""
        return None if name in self.cordoned else self._candidates.get(name)

    def note(self, candidate: EdgeCandidate, rate: float = 0.0) -> EdgeCandidate:
        """Count one more subscriber at an edge, until its next report."""
        candidate.target = candidate.target.after(replace(NEWCOMER, message_rate=rate))
        return candidate

    @property
    def message_rate(self) -> float:
        """Publications per second of all edges, in and out, over a long term."""
        return sum(candidate.long_term_rate or 0.0 for candidate in self._candidates.values())

    def place(
        self, exclude: Collection[str], prefer: str = "", location: Location | None = None, rate: float = 0.0,
        beside: Mapping[str, int] = MappingProxyType({}),
    ) -> EdgeCandidate | None:  # fmt: skip
        """Choose an edge for a newcomer, or None if there is none; `exclude` counts unless nothing else is left.

        `rate`: publications per second, in and out, that it is taken to bring. `beside`: what each edge has that should
        be apart from it.
        """
        open_candidates = [candidate for candidate in self._candidates.values() if candidate.name not in self.cordoned]
        candidates = [candidate for candidate in open_candidates if candidate.name not in exclude] or open_candidates
        if not candidates:
            return None
        by_name = {candidate.name: candidate for candidate in candidates}
        wanted = {prefer: by_name[prefer]} if prefer in by_name else by_name
        at = location if is_location(location) else None
        newcomer = replace(NEWCOMER, number=self._placed, location=at, message_rate=rate)
        targets = [replace(each.target, beside=beside.get(each.name, 0)) for each in wanted.values()]
        target = self.placer.place(newcomer, targets)
        if target is None:
            return None
        self._placed += not prefer
        return self.note(wanted[target.name], rate)


def policy_of(policy: Mapping[str, Any] | None) -> PolicySpec | None:
    """The policy as brokers are given it.

    Raises:
        InvalidResourcesError: a field is missing, unknown or out of bounds.

    """
    return None if policy is None else parse_block(PolicySpec, policy)


def _ratio(report: Mapping[str, Any], name: str) -> float:
    """A measure of a report that may be missing; 0 if it is, or if it is no number."""
    found = report.get(name)
    is_usable = isinstance(found, int | float) and not isinstance(found, bool) and 0.0 <= found < math.inf
    return float(found) if is_usable and found is not None else 0.0


def is_location(at: Location | None) -> bool:
    """Whether these are usable coordinates: a client may send any numbers."""
    return at is not None and all(math.isfinite(each) for each in at)


def reported_location(report: Mapping[str, Any]) -> Location | None:
    """Where an edge is, by its report; None if it does not say."""
    found = [report.get(name) for name in ("location_x", "location_y")]
    if any(isinstance(each, bool) or not isinstance(each, int | float) for each in found):
        return None
    at = (float(found[0] or 0.0), float(found[1] or 0.0))
    return at if is_location(at) else None
