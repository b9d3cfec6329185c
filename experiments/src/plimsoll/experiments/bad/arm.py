"""One arm of an experiment of BAD: a placement with a scheme, run on the queueing model, and its loads over time.

Loads are those that brokers measure: F = I + O, what comes in and what goes out in bytes per second, by their reports.
Policy, placers, session engine, profiles and hand-overs are the product's own.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Final

from plimsoll.core.policies.bad.imbalance import Imbalance
from plimsoll.core.spec import Resources, SourceDocument, parse
from plimsoll.experiments.bad.channels import CLUSTER, ChannelWorld, Point
from plimsoll.simulator.queueing.fleet import QueueingFleet

API: Final = "plimsoll.dev/v1alpha1"
REPORT_SECONDS: Final = 10
OUTPUT_BYTES_PER_SECOND: Final = 500_000
"""Of every edge, far above its load: a queue would hide what is asked for. Our shuffle needs a bound to balance."""


@dataclass(frozen=True, slots=True)
class BadArm:
    """A placement with a scheme. `ours_at`: when our own shuffle is asked for once, in seconds; None: never."""

    name: str
    placement: str
    migration: str = "None"
    shuffle: str = "None"
    alpha: str = "150m"
    ours_at: float | None = None

    def policy(self, seed: int) -> dict[str, Any]:
        """The policy block, as in a custom resource; the rest are the defaults, which are the paper's."""
        own = {
            "placement": self.placement, "migration": self.migration, "shuffle": self.shuffle, "alpha": self.alpha,
            "seed": seed, "rules": "Paper",
        }  # fmt: skip
        return {"type": "Bad", "bad": own}


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """All brokers at one time. `moved`: subscribers that were moved up to then."""

    seconds: float
    highest: float
    cov: float
    moved: int
    loads: Mapping[str, float]


@dataclass(frozen=True)
class ArmRun:
    """What a run has left behind. `delivered`: None if deliveries are not counted one by one."""

    arm: BadArm
    points: Sequence[LoadPoint]
    moved: int
    plans: int
    published: int
    delivered: int | None
    processor_seconds: float
    failed: tuple[str, ...] = ()

    def highest(self, start: float, end: float) -> float:
        """The highest F of a broker, as a mean over this time."""
        return max(fmean(loads) for loads in self._loads(start, end).values())

    def cov(self, start: float, end: float) -> float:
        """cov of the brokers' loads, each as a mean over this time."""
        return Imbalance.of(fmean(loads) for loads in self._loads(start, end).values()).cov

    def _loads(self, start: float, end: float) -> dict[str, list[float]]:
        some = [each for each in self.points if start <= each.seconds < end]
        return {name: [each.loads[name] for each in some] for name in some[0].loads}

    def moved_between(self, start: float, end: float) -> int:
        """Subscribers that were moved in this time."""
        return self._moved_by(end) - self._moved_by(start)

    def _moved_by(self, at: float) -> int:
        return max((each.moved for each in self.points if each.seconds <= at), default=0)

    def first_plan_at(self) -> float:
        """When the first subscribers had been moved; the end if none were."""
        return next((each.seconds for each in self.points if each.moved), self.points[-1].seconds)

    def last_move_at(self) -> float:
        """When the last subscriber had been moved; 0 if none was."""
        return next((each.seconds for each in self.points if each.moved == self.points[-1].moved and each.moved), 0.0)

    def row(self, start: float, end: float) -> dict[str, Any]:
        """What a reader compares."""
        return {
            "run": self.arm.name, "max_load": round(self.highest(start, end), 1), "cov": round(self.cov(start, end), 4),
            "moved": self.moved, "plans": self.plans, "published": self.published, "delivered": self.delivered,
            "failed": list(self.failed), "processor_seconds": round(self.processor_seconds, 2),
        }  # fmt: skip


def documents(brokers: Mapping[str, Point], policy: Mapping[str, Any]) -> list[SourceDocument]:
    """The custom resources of a fleet of one cluster."""
    telemetry = {"reportInterval": f"{REPORT_SECONDS}s"}
    edges = [
        {"name": name, "profile": "edge", "location": {"east": f"{x:.6f}", "north": f"{y:.6f}"}}
        for name, (x, y) in brokers.items()
    ]
    return [SourceDocument(each, "<experiment>") for each in (
        {"apiVersion": API, "kind": "BrokerFleet", "metadata": {"name": "experiment"},
         "spec": {"defaults": {"policy": dict(policy)}, "telemetry": telemetry}},
        {"apiVersion": API, "kind": "HardwareProfile", "metadata": {"name": "head"},
         "spec": {"cpu": "1", "memory": "1280Mi"}},
        {"apiVersion": API, "kind": "HardwareProfile", "metadata": {"name": "edge"},
         "spec": {"cpu": "1", "memory": "1280Mi", "bandwidth": {"outputBytesPerSecond": OUTPUT_BYTES_PER_SECOND}}},
        {"apiVersion": API, "kind": "BrokerCluster", "metadata": {"name": CLUSTER},
         "spec": {"head": {"profile": "head"}, "edges": edges}},
    )]  # fmt: skip


def resources(brokers: Mapping[str, Point], policy: Mapping[str, Any]) -> Resources:
    """The fleet, parsed and checked as files would be."""
    return parse(documents(brokers, policy))


@dataclass
class _Reports:
    """The loads of all edges by the time of their reports."""

    edges: int
    by_time: dict[float, dict[str, float]] = field(default_factory=dict)

    def take(self, report: Mapping[str, Any], now: float) -> None:
        if report["role"] == "edge":
            at = self.by_time.setdefault(round(now, 1), {})
            at[str(report["broker"])] = report["input_bytes_per_second"] + report["output_bytes_per_second"]

    def points(self, moved: Mapping[float, int]) -> Iterable[LoadPoint]:
        for at, loads in sorted(self.by_time.items()):
            if len(loads) == self.edges:
                so_far = max((count for when, count in moved.items() if when <= at), default=0)
                yield LoadPoint(at, max(loads.values()), Imbalance.of(loads.values()).cov, so_far, loads)


def run_arm(world: ChannelWorld, arm: BadArm, seed: int) -> ArmRun:
    """Run one arm to the end of the world's time."""
    began, reports, moved = time.process_time(), _Reports(len(world.brokers)), dict[float, int]()
    fleet = QueueingFleet(
        resources(world.brokers, arm.policy(seed)), world.traffic(), seed=seed, on_report=reports.take,
        delay_interval_seconds=60.0, spread_reports=False,
    )  # fmt: skip
    if arm.ours_at is not None:
        fleet.at(arm.ours_at, _ask_for_our_shuffle, fleet)
    for at in range(REPORT_SECONDS, int(world.seconds) + 1, REPORT_SECONDS):
        fleet.run(float(at))
        moved[float(at)] = _moved(fleet)
    sessions = [one.session for one in fleet.mediator.objects.values() if one.session is not None]
    plans = [one for one in sessions if one.is_parent]
    failed = tuple(f"{one.name}: {one.reason}, {one.message}" for one in plans if one.phase in ("Failed", "Rejected"))
    return ArmRun(
        arm, list(reports.points(moved)), _moved(fleet), len(plans), fleet.counts.published, fleet.counts.delivered,
        time.process_time() - began, failed,
    )  # fmt: skip


def _ask_for_our_shuffle(fleet: QueueingFleet) -> None:
    fleet.mediator.create(
        "ours", {"scope": "Local", "source": {"name": CLUSTER}, "action": "Shuffle", "mode": "Execute"}
    )


def _moved(fleet: QueueingFleet) -> int:
    sessions = (one.session for one in fleet.mediator.objects.values())
    return sum(each.counts()["moved"] for each in sessions if each is not None and not each.is_parent)
