"""The fleet that plans of Pulsar are made in: edges with the bundles that they serve. Frozen values.

A bundle moves whole: every unit at its edge that asks for one of its topics. Where the bundle of a unit is owned by
another edge than the one that serves it, the unit has come late, and follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from plimsoll.core.policies.model.broker_pair import likened_loads
from plimsoll.core.policies.model.hash_ranges import HashRange, Partition
from plimsoll.core.policies.model.load import BrokerLoad, LoadChange
from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.traffic import union_bits
from plimsoll.core.policies.rebalancer import FleetSample, Step
from plimsoll.core.protocol.topic_units import hash_of_unit


@dataclass(frozen=True, slots=True)
class BundleUnits:
    """The units of a bundle at one edge. `change`: what they add to the edge that serves them.

    `throughput`: bytes per second in and out. `fixed`: why they may not move now, empty if they may.
    """

    bundle: HashRange
    units: tuple[str, ...]
    change: LoadChange
    throughput: float
    fixed: str = ""

    @property
    def message_rate(self) -> float:
        """Publications per second in and out."""
        return self.change.input_rate + self.change.delivery_rate

    def plus(self, other: BundleUnits) -> BundleUnits:
        """Both together."""
        units, fixed = (*self.units, *other.units), self.fixed or other.fixed
        return BundleUnits(
            self.bundle, units, self.change.plus(other.change), self.throughput + other.throughput, fixed
        )


Served = Mapping[HashRange, BundleUnits]


@dataclass(frozen=True)
class PulsarFleet:
    """`served`: by edge, its bundles; `whole`: by edge, how many subscribers without a topic it has.

    `owners`: the edge of each bundle that has one. `takes`: edges that may take. `unload`: bundles that are to leave
    their edge whatever its usage, to `target` if that is given.
    """

    reports: Mapping[str, BrokerLoad]
    served: Mapping[str, Served]
    owners: Mapping[HashRange, str]
    takes: frozenset[str]
    whole: Mapping[str, int] = field(default_factory=dict)
    unload: tuple[HashRange, ...] = ()
    target: str = ""
    start: Mapping[str, Served] | None = None

    @property
    def loads(self) -> tuple[BrokerLoad, ...]:
        """What each edge would report."""
        return tuple(self.load(name) for name in sorted(self.reports))

    def load(self, name: str) -> BrokerLoad:
        """What one edge would report: its last report, and the change that bundles make."""
        now, was = self.served[name], (self.start or self.served)[name]
        if now is was:
            return self.reports[name]
        come = (each.change for bundle, each in now.items() if was.get(bundle) is not each)
        gone = (_less(each.change) for bundle, each in was.items() if now.get(bundle) is not each)
        return self.reports[name].after(_sum([*come, *gone]))

    def after(self, step: Step) -> PulsarFleet:
        """The fleet after a step."""
        served = {name: dict(held) for name, held in self.served.items()}
        for move in step.moves:
            bundle = HashRange.of_name(move.key)
            moved = served[move.source].pop(bundle)
            there = served[move.target].get(bundle)
            served[move.target][bundle] = moved if there is None else there.plus(moved)
        owners = {**self.owners, **{HashRange.of_name(name): edge for name, edge in step.owners}}
        kept = {name: self.served[name] if held == self.served[name] else held for name, held in served.items()}
        return replace(self, served=kept, owners=owners, start=self.start or self.served)

    def late(self) -> Iterable[tuple[str, BundleUnits]]:
        """Units that are served by another edge than the one that owns their bundle, each with their edge."""
        for name in sorted(self.served):
            for bundle in sorted(self.served[name]):
                if self.owners.get(bundle, name) != name:
                    yield name, self.served[name][bundle]

    def owned(self, edge: str) -> list[BundleUnits]:
        """The bundles that an edge owns and serves, those of the highest throughput first."""
        some = [each for bundle, each in self.served[edge].items() if self.owners.get(bundle, edge) == edge]
        return sorted(some, key=lambda each: (-each.throughput, each.bundle))


def pulsar_fleet(sample: FleetSample, partition: Partition, unload: Iterable[str] = ()) -> PulsarFleet:
    """The fleet of a sample, under a partition of the topics."""
    served = {load.name: _served(sample.profiles[load.name], partition, load, sample.staying) for load in sample.loads}
    names = {bundle.name: bundle for bundle in partition.ranges}
    owners = {names[name]: edge for name, edge in sample.owners.items() if name in names and edge in served}
    for edge in sorted(served):  # a head that has just begun may not have told all of them yet
        for bundle in served[edge]:
            owners.setdefault(bundle, edge)
    wanted = tuple(names[name] for name in dict.fromkeys((*sample.unload, *unload)) if name in names)
    takes = frozenset(served) if sample.takes is None else sample.takes
    reports = {load.name: load for load in likened_loads(sample.loads)}
    whole = {
        name: sum(hash_of_unit(each) is None for row in profile.rows for each in row.names)
        for name, profile in sample.profiles.items()
    }
    return PulsarFleet(reports, served, owners, takes, whole, wanted, sample.target)


def _served(
    profile: SubscriptionProfile, partition: Partition, load: BrokerLoad, staying: Mapping[str, str]
) -> dict[HashRange, BundleUnits]:
    """The bundles of one edge, from the rows of its profile."""
    found: dict[HashRange, list[tuple[ProfileRow, list[str]]]] = {}
    for row in profile.rows:
        by_bundle: dict[HashRange, list[str]] = {}
        for name in row.names:
            topic = hash_of_unit(name)
            if topic is not None:
                by_bundle.setdefault(partition.range_of(topic), []).append(name)
        for bundle, names in by_bundle.items():
            found.setdefault(bundle, []).append((row, names))
    measured = {each.bundle: each.throughput for each in load.bundles}
    return {bundle: _units(profile, bundle, rows, measured.get(bundle), staying) for bundle, rows in found.items()}


def _units(
    profile: SubscriptionProfile,
    bundle: HashRange,
    rows: list[tuple[ProfileRow, list[str]]],
    measured: float | None,
    staying: Mapping[str, str],
) -> BundleUnits:
    traffic, bits = profile.traffic, union_bits(row.bits for row, _ in rows)
    units = tuple(sorted(name for _, names in rows for name in names))
    sent = sum(profile.output_bytes_per_second(row) * len(names) for row, names in rows)
    change = LoadChange(
        len(units),
        sum(row.subscriptions * len(names) for row, names in rows),
        traffic.rate(bits),
        sum(profile.rate(row) * len(names) for row, names in rows),
        sent,
    )
    held = [(name, staying[name]) for name in units if name in staying]
    fixed = f"{held[0][0]}: {held[0][1]}" if held else ""
    throughput = traffic.bytes_per_second(bits) + sent if measured is None else measured
    return BundleUnits(bundle, units, change, throughput, fixed)


def _sum(changes: Iterable[LoadChange]) -> LoadChange:
    total = LoadChange()
    for each in changes:
        total = total.plus(each)
    return total


def _less(change: LoadChange) -> LoadChange:
    return LoadChange(
        -change.subscribers,
        -change.subscriptions,
        -change.input_rate,
        -change.delivery_rate,
        -change.bytes_per_second,
    )
