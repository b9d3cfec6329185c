"""Which publishers leave an overloaded head, and where they go: the steps of a plan. Tao, Poslad, Bigham 2013, IV.C, D.

The heads of other clusters that are LOW are candidates, the one with the least of what is overloaded first. Publishers
go in the order of their groups, all of a topic together, each to the first candidate that can take them, until the head
is no longer overloaded; several heads may take some. They go singly only if no candidate takes all of any topic.

By the letter a publisher goes wherever it overloads no head. Ours: only if it lessens what is overloaded, and if the
target and the heads on the way stay below their lower thresholds, or they would be the next to shed (`rules`).
"""

# ruff: noqa: RUF009  # frozen values, safe as defaults

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from plimsoll.core.policies.delay_sensitive.head_fleet import HeadFleet, path
from plimsoll.core.policies.delay_sensitive.limits import DeadlineLimits, utilization_of
from plimsoll.core.policies.delay_sensitive.policy import Rules
from plimsoll.core.policies.model.load import NO_THRESHOLDS, BrokerLoad, OverloadThreshold
from plimsoll.core.policies.model.plan import PlanMove, PlanRejection
from plimsoll.core.policies.publisher_priority import (
    HeadMetric,
    HeadPublisher,
    PublisherBundle,
    bundles_to_offload,
    publishers_to_offload,
)
from plimsoll.core.policies.rebalancer import Step, Steps, StepsEnd

METRICS: Final[tuple[HeadMetric, ...]] = ("downlink", "uplink")

Moving = Generator[Step, None, HeadFleet]


@dataclass(frozen=True)
class HeadRelief:
    """Tao, Poslad, Bigham 2013, Tables I and III: a head is overloaded by what comes in and by what goes out."""

    name: ClassVar[str] = "DelaySensitive"
    metric: ClassVar[str] = "downlink and uplink of heads"

    limits: DeadlineLimits = DeadlineLimits(OverloadThreshold(), NO_THRESHOLDS, OverloadThreshold())
    rules: Rules = "Plimsoll"
    interval_seconds: float = 1.0

    @property
    def is_letter(self) -> bool:
        """Whether the letter of the text decides."""
        return self.rules == "Text"

    def overloaded(self, load: BrokerLoad) -> tuple[HeadMetric, ...]:
        """What is overloaded at a head, in the order in which it is relieved."""
        over = self.limits.above_higher(load)
        return tuple(metric for metric in METRICS if metric in over)

    def wanted(self, load: BrokerLoad) -> str:
        """Why publishers should leave a head; empty if they should not."""
        return ", ".join(self.limits.described(load))

    def steps(
        self, fleet: HeadFleet, allowed_seconds: Mapping[int, float], topics: Mapping[int, str] | None = None
    ) -> Steps:
        """Publishers that leave the source of the fleet.

        `allowed_seconds`: how long messages of a topic may wait, by its hash; a topic that is not there has no
        deadline. `topics`: their names, as far as they are known.
        """
        return _ReliefMoves(self, allowed_seconds, topics or {}).steps(fleet)


def unreported(source: str, names: Iterable[str]) -> Iterator[PlanRejection]:
    """Why publishers stay of which a head says nothing: they publish nothing, or too little to be among its rows."""
    for name in names:
        yield PlanRejection("Unreported", name, 1, f"stays at {source}, which reports no traffic of it")


def beyond_limit(names: Iterable[str], moves: Iterable[PlanMove], stopped: str) -> Iterator[PlanRejection]:
    """Why publishers stay whose turn did not come."""
    moved = {name for move in moves for name in move.subscribers}
    for name in names:
        if name not in moved:
            yield PlanRejection("NotNeeded", name, 1, stopped)


@dataclass
class _ReliefMoves:
    """The moves of one plan."""

    policy: HeadRelief
    allowed_seconds: Mapping[int, float]
    topics: Mapping[int, str]
    _rejected: dict[str, tuple[str, str]] = field(default_factory=dict)
    _moved: set[str] = field(default_factory=set)

    def steps(self, fleet: HeadFleet) -> Steps:
        start, source = fleet, fleet.source
        metrics = self.policy.overloaded(fleet.heads[source])
        for metric in metrics:
            fleet = yield from self._relieved_of(fleet, metric)
        over = self.policy.overloaded(fleet.heads[source])
        if not metrics:
            ended, stopped = "NotOverloaded", f"{source} is not overloaded any more"
        elif over:
            told = self.policy.wanted(fleet.heads[source])
            ended, stopped = "NoBetter", f"{source} stays overloaded: {told}"
        else:
            ended, stopped = "Relieved", f"{source} is no longer overloaded"
        return StepsEnd(ended, stopped, tuple(self._stays(start, stopped)))

    def _relieved_of(self, fleet: HeadFleet, metric: HeadMetric) -> Moving:
        candidates = self._candidates(fleet, metric)
        bundles = bundles_to_offload(fleet.rows, metric, self.allowed_seconds)
        if not candidates:
            for name in fleet.publishers:
                self._reject("NoCandidate", [name], f"stays at {fleet.source}: no other head is LOW")
            return fleet
        for bundle in bundles:
            names = [one.publisher for one in bundle.publishers]
            for target in candidates:
                fleet = yield from self._moved_to(fleet, target, names, metric, self._bundle_text(bundle))
        if self._moved:
            return fleet
        for one in publishers_to_offload(fleet.rows, metric, self.allowed_seconds):
            for target in candidates:
                fleet = yield from self._moved_to(fleet, target, [one.publisher], metric, _publisher_text(one))
        return fleet

    def _candidates(self, fleet: HeadFleet, metric: HeadMetric) -> list[str]:
        """The heads that are LOW; those with the least of what is overloaded first, then the least used."""
        limits, found = self.policy.limits, []
        for load in fleet.loads:
            is_other = load.name != fleet.source and load.name in fleet.takes
            if is_other and limits.state(load, endangered=False) == "LOW":
                used = max(utilization_of(load, each) for each in METRICS)
                found.append((utilization_of(load, metric), used, load.name))
        return [name for *_, name in sorted(found) if path(fleet.neighbors, fleet.source, name)]

    def _moved_to(self, fleet: HeadFleet, target: str, names: Sequence[str], metric: HeadMetric, what: str) -> Moving:
        """The fleet with these publishers at the target; without, if they cannot go there or need not."""
        source, before = fleet.source, fleet.heads[fleet.source]
        if metric not in self.policy.overloaded(before) or not fleet.publishers.keys() >= set(names):
            return fleet
        if held := [name for name in names if name in fleet.fixed]:
            self._reject("Staying", names, f"stays at {source}: {held[0]}: {fleet.fixed[held[0]]}")
            return fleet
        told = f"{metric} at {utilization_of(before, metric):.3f}, above {self.policy.limits.of(metric).higher:g}"
        step = Step((PlanMove(what, tuple(names), source, target, f"{what} relieves {source}: {told}"),))
        after = fleet.after(step)
        if not self.policy.is_letter and not _is_less(after.heads[source], before, metric):
            why = f"stays at {source}: without it the {metric} would be no less"
            self._reject("NoRelief", names, why)
            return fleet
        if refusal := self._refusal(after, target):
            self._reject("TooMuch", names, f"stays at {source}: with it {refusal}")
            return fleet
        self._moved.update(names)
        for name in names:
            self._rejected.pop(name, None)
        yield step
        return after

    def _refusal(self, after: HeadFleet, target: str) -> str:
        """Which head would carry too much, and of what; empty if none would."""
        way = path(after.neighbors, after.source, target)
        for name in way[:0:-1]:
            load = after.heads.get(name)
            if load is None:
                continue
            over = self._too_much(load)
            if over:
                return f"{name} would have {over[0]} at {utilization_of(load, over[0]):.3f}"
            if self.policy.is_letter:
                break  # the text asks the target alone
        return ""

    def _too_much(self, load: BrokerLoad) -> tuple[HeadMetric, ...]:
        limits = self.policy.limits
        over = set[str](limits.above_higher(load))
        if not self.policy.is_letter:
            over.update(limits.above_lower(load))
        return tuple(metric for metric in METRICS if metric in over or utilization_of(load, metric) > 1.0)

    def _bundle_text(self, bundle: PublisherBundle) -> str:
        if bundle.topic is None:
            return _publisher_text(bundle.publishers[0])
        name = self.topics.get(bundle.topic, f"{bundle.topic:08x}")
        return f"topic {name} ({bundle.group}, {len(bundle.publishers)} publishers)"

    def _stays(self, start: HeadFleet, stopped: str) -> Iterator[PlanRejection]:
        for name in sorted(start.publishers):
            if name not in self._moved:
                kind, why = self._rejected.get(name, ("NotNeeded", f"stays at {start.source}: {stopped}"))
                yield PlanRejection(kind, name, 1, why)

    def _reject(self, kind: str, names: Sequence[str], why: str) -> None:
        self._rejected.update(dict.fromkeys(names, (kind, why)))


def _publisher_text(one: HeadPublisher) -> str:
    return f"publisher {one.publisher} ({one.group})"


def _is_less(after: BrokerLoad, before: BrokerLoad, metric: HeadMetric) -> bool:
    return utilization_of(after, metric) < utilization_of(before, metric) - 1e-9
