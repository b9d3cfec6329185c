"""Which bundles go where: the steps of a plan, each of which moves one bundle whole.

Pulsar 2023, "Shedding (unloading) bundles from overloaded brokers". By the letter a shed bundle goes to the edge that
scores least, whatever comes of it. Ours (`is_letter` is false): first those go by which no target has to shed in turn,
so a hot bundle stays and lighter ones leave it; then those by which the higher usage of the two edges falls for sure.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from plimsoll.core.policies.model.hash_ranges import HashRange
from plimsoll.core.policies.model.load import BrokerLoad, ResourceThresholds
from plimsoll.core.policies.model.plan import PlanMove, PlanRejection
from plimsoll.core.policies.placement import PlacementTarget, PlacementUnit, Placer
from plimsoll.core.policies.pulsar.fewest_moves import fewest_moves
from plimsoll.core.policies.pulsar.fleet import BundleUnits, PulsarFleet
from plimsoll.core.policies.pulsar.shedding import Relief
from plimsoll.core.policies.pulsar.usage import UsageWeights
from plimsoll.core.policies.rebalancer import Step, Steps, StepsEnd

GATHERED = "Gathered"
"""How a plan ends that only brings units to the edges that own their bundles."""

TOLERANCE = 1e-9
"""Usages are sums of measured rates: those that differ by a smaller part are equal, or equal edges swap for ever."""

LEAST_GAIN = 0.05
"""By what part of itself the higher usage must fall where the target has to shed in turn. Less is noise of measured
rates, by which a hot bundle would go from edge to edge."""

Moving = Generator[Step, None, PulsarFleet]


@dataclass
class BundleMoves:
    """The moves of one plan. `placed`: bundles placed so far, which numbers the draws of the placer.

    `is_by_lookup`: bundles that move are released, and looked up again. Units that have come late are handed over to
    the owner in a plan of their own: released, their bundle would be given to another edge each time.
    """

    placer: Placer
    weights: UsageWeights
    is_letter: bool = False
    is_by_lookup: bool = False
    overload: ResourceThresholds = ResourceThresholds()  # noqa: RUF009  # a frozen value
    placed: int = 0
    _rejected: dict[tuple[str, HashRange], tuple[str, str]] = field(default_factory=dict)
    _moved: set[tuple[str, HashRange]] = field(default_factory=set)

    def steps(self, fleet: PulsarFleet, reliefs: Sequence[Relief]) -> Steps:
        """Units that have come late, bundles to unload, then those that edges shed."""
        is_unload_first = self.is_by_lookup and bool(fleet.unload)
        if is_unload_first:
            fleet = yield from self._unloaded(fleet)
        is_unloaded = bool(self._moved)
        if not is_unloaded:
            fleet = yield from self._gathered(fleet)
        if self.is_by_lookup and self._moved and not is_unloaded:
            stopped = "units that came late are handed over first"
            return StepsEnd(GATHERED, stopped, tuple(self._stays(fleet, stopped)))
        if not is_unload_first:
            fleet = yield from self._unloaded(fleet)
        fleet = yield from self._shed(fleet, reliefs)
        usage = ", ".join(f"{load.name} {self.weights.usage(load):.3f}" for load in fleet.loads[:8])
        stopped = f"usage after it: {usage}"
        return StepsEnd("Unloaded" if fleet.unload else "Shed", stopped, tuple(self._stays(fleet, stopped)))

    def _shed(self, fleet: PulsarFleet, reliefs: Sequence[Relief]) -> Moving:
        """What edges shed; by our rules in the fewest moves, if so few are possible that all can be tried."""
        first, known = fleet, set(self._moved)
        moving, taken = self._reliefs(fleet, reliefs), list[Step]()
        while True:
            try:
                step = next(moving)
            except StopIteration as end:
                fleet = end.value
                break
            if self.is_letter or known:
                yield step
            taken.append(step)
        if self.is_letter or known:
            return fleet
        moved = sum(len(move.subscribers) for step in taken for move in step.moves)
        if (fewer := fewest_moves(first, fleet, moved, self.weights, self.overload)) is not None:
            taken, fleet = fewer, first
            for step in taken:
                fleet = fleet.after(step)
            self._moved = {(move.source, HashRange.of_name(move.key)) for step in taken for move in step.moves}
        yield from taken
        return fleet

    def _reliefs(self, fleet: PulsarFleet, reliefs: Sequence[Relief]) -> Moving:
        for relief in reliefs:
            fleet = yield from self._relieved(fleet, relief)
        return fleet

    def _stays(self, fleet: PulsarFleet, stopped: str) -> Iterator[PlanRejection]:
        """Why each bundle stays that does not move, and each subscriber without a topic."""
        start = fleet.start or fleet.served
        for edge in sorted(start):
            for bundle, units in sorted(start[edge].items()):
                if (edge, bundle) in self._moved:
                    if _is_back(units, fleet.served[edge].get(bundle)):
                        why_back = f"stay at {edge}: the rest of the bundle comes here"
                        yield PlanRejection("BestPlace", bundle.name, len(units.units), why_back)
                    continue
                why = self._rejected.get((edge, bundle), ("NotNeeded", f"stays at {edge}: {stopped}"))
                yield PlanRejection(why[0], bundle.name, len(units.units), why[1])
            if whole := fleet.whole.get(edge, 0):
                yield PlanRejection("NoTopic", "", whole, f"stay at {edge}: they ask for no topic that can be listed")

    def _gathered(self, fleet: PulsarFleet) -> Moving:
        for edge, units in list(fleet.late()):
            owner = fleet.owners[units.bundle]
            if units.fixed:
                self._reject("Staying", units, edge, f"{edge}: {units.fixed}")
            elif owner not in fleet.takes:
                self._reject("NotReady", units, edge, f"{owner}, which owns the bundle, takes none now")
            else:
                step = self._take(units, edge, owner, f"{owner} owns the bundle, and these came to {edge} meanwhile")
                yield step
                fleet = fleet.after(step)
        return fleet

    def _unloaded(self, fleet: PulsarFleet) -> Moving:
        for bundle in fleet.unload:
            source = fleet.owners.get(bundle)
            units = fleet.served[source].get(bundle) if source is not None else None
            if source is None or units is None:
                continue  # it has no subscribers, so that nothing is to be moved
            target = fleet.target or self._target(fleet, units, "")
            if target == source:
                self._reject("BestPlace", units, source, f"{source} is the edge that it would go to")
            elif units.fixed or target not in fleet.takes:
                why = units.fixed or f"{target or 'no edge'} takes none now"
                self._reject("Staying", units, source, f"{source}: {why}")
            else:
                step = self._take(units, source, target, f"is unloaded from {source}")
                yield step
                fleet = fleet.after(step)
        return fleet

    def _relieved(self, fleet: PulsarFleet, relief: Relief) -> Moving:
        """The bundles of one edge, those of the highest throughput first, until its relief is reached."""
        source, held = relief.source, fleet.owned(relief.source)
        if relief.is_overloaded:
            return (yield from self._rescued(fleet, relief, held))
        if len(held) < 2:
            for units in held:
                self._reject("OnlyBundle", units, source, f"{source} has no other; only a split relieves it")
            return fleet
        left = relief.share * sum(units.throughput for units in held)
        line = self._highest(fleet.loads, source) * (1.0 - relief.share)
        for highest in (None,) if self.is_letter or relief.target else (line, None):
            fleet, left = yield from self._shed_down(fleet, relief, left, highest)
        return fleet

    def _shed_down(
        self, fleet: PulsarFleet, relief: Relief, left: float, highest: float | None
    ) -> Generator[Step, None, tuple[PulsarFleet, float]]:
        """Bundles until `left` bytes per second have gone, each to an edge that stays at `highest` with it."""
        source = relief.source
        for units in fleet.owned(source):
            if left <= 0.0 or (not self.is_letter and len(fleet.owned(source)) < 2):
                break
            if not relief.hits_all and units.throughput > left:
                self._reject("TooLarge", units, source, f"{units.throughput:.4g} B/s; {left:.4g} should leave {source}")
                continue
            target = relief.target or self._target(fleet, units, source)
            if (why := self._refusal(fleet, units, relief, target, highest)) is not None:
                self._reject(why[0], units, source, why[1])
                continue
            step = self._take(units, source, target, f"{source}: {relief.reason}; {units.throughput:.4g} B/s leave it")
            yield step
            fleet, left = fleet.after(step), left - units.throughput
        return fleet, left

    def _rescued(self, fleet: PulsarFleet, relief: Relief, held: Sequence[BundleUnits]) -> Moving:
        """The bundles of an overloaded edge, those of the highest throughput first, until it is not.

        Each goes to the least used edge that it leaves below its lower thresholds. An only bundle goes, too: to a
        stronger edge.
        """
        source = relief.source
        for units in held:
            if not self.overload.above_lower(fleet.load(source).measures):
                break
            why = ("Staying", f"{source}: {units.fixed}") if units.fixed else None
            target = "" if why else self._spared(fleet, units, source)
            if why is None and not target:
                why = "WouldOverload", f"no edge that takes any has room for it, or {source} would be as overloaded"
            if why is not None:
                self._reject(why[0], units, source, why[1])
                continue
            step = self._take(units, source, target, f"{source} {relief.reason}; {target} stays below its thresholds")
            yield step
            fleet = fleet.after(step)
        return fleet

    def _spared(self, fleet: PulsarFleet, units: BundleUnits, source: str) -> str:
        """The least used edge with room for a bundle; empty if there is none, or if it does not relieve its source."""
        limits, before = self.overload, fleet.load(source).measures
        found = []
        for target in sorted(fleet.takes - {source}):
            loads = {load.name: load for load in fleet.after(_step(units, source, target, "")).loads}
            after = loads[source].measures
            lessens = any(after.of_resource(each) < before.of_resource(each) - TOLERANCE for each in
                          limits.above_lower(before))  # fmt: skip
            if lessens and not limits.above_lower(loads[target].measures):
                found.append((self.weights.usage(loads[target]), target))
        return min(found, default=(0.0, ""))[1]

    def _refusal(
        self, fleet: PulsarFleet, units: BundleUnits, relief: Relief, target: str, highest: float | None
    ) -> tuple[str, str] | None:
        """Why a bundle does not go to an edge, in a word and as a sentence; None if it does."""
        source, least = relief.source, 0.0 if relief.target else LEAST_GAIN
        if units.fixed:
            return "Staying", f"{source}: {units.fixed}"
        if not target or target not in fleet.takes:
            return "NotReady", f"{target or 'no edge'} takes none now"
        if self.is_letter:
            return None
        before, after = fleet.loads, fleet.after(_step(units, source, target, "")).loads
        high, low = self._highest(before, source, target), self._highest(after, source, target)
        if low >= high * (1.0 - TOLERANCE):
            return "NoBetter", f"with it {target} would be at {low:.3f}, and {source} is at {high:.3f}"
        there = self._highest(after, target)
        if highest is not None and there > highest * (1.0 + TOLERANCE):
            return "WouldShed", f"with it {target} would be at {there:.3f}, and have to shed above {highest:.3f}"
        if highest is None and low > high * (1.0 - least):
            return "TooLittle", f"it would bring {high:.3f} down to {low:.3f} only, less than a twentieth"
        return self._overloading(after, target)

    def _overloading(self, after: Iterable[BrokerLoad], target: str) -> tuple[str, str] | None:
        """Why a bundle does not go to an edge that it would overload; None if it would not."""
        over = next(self.overload.above_lower(load.measures) for load in after if load.name == target)
        if not over:
            return None
        return "WouldOverload", f"with it {target} would be above its lower threshold: {', '.join(over)}"

    def _highest(self, loads: Iterable[BrokerLoad], *names: str) -> float:
        return max(self.weights.usage(load) for load in loads if load.name in names)

    def _target(self, fleet: PulsarFleet, units: BundleUnits, source: str) -> str:
        """The edge that the placer draws; empty if no other takes one."""
        ports = [self._port(load) for load in fleet.loads if load.name in fleet.takes and load.name != source]
        self.placed += 1
        unit = PlacementUnit(len(units.units), number=self.placed, message_rate=units.message_rate)
        found = self.placer.place(unit, ports)
        return "" if found is None else found.name

    def _port(self, load: BrokerLoad) -> PlacementTarget:
        return PlacementTarget(
            load.name,
            max(load.input_utilization, load.output_utilization),
            load.subscribers,
            load.capacity,
            usage=max(load.cpu_ratio, load.memory_ratio, load.input_utilization, load.output_utilization),
            message_rate=load.input_rate + load.output_rate,
        )

    def _take(self, units: BundleUnits, source: str, target: str, why: str) -> Step:
        self._moved.add((source, units.bundle))
        return _step(units, source, target, why)

    def _reject(self, kind: str, units: BundleUnits, source: str, why: str) -> None:
        self._rejected[source, units.bundle] = kind, why


def _is_back(units: BundleUnits, there: BundleUnits | None) -> bool:
    """Whether units are where they were: they followed their bundle, and all of it went to their edge then."""
    return there is not None and units.units[0] in there.units


def _step(units: BundleUnits, source: str, target: str, why: str) -> Step:
    name = units.bundle.name
    return Step((PlanMove(name, units.units, source, target, f"{name} {why}"),), owners=((name, target),))
