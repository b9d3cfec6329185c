"""A slice of sessions: a fleet of its own, load, a number of sessions, rest, and a verdict over every delivery."""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from plimsoll.core.verify import observations as seen
from plimsoll.demo.leftovers import remove_folder
from plimsoll.demo.workload import DemoScenario
from plimsoll.soak.disturbance.fault_injector import SoakFaultInjector
from plimsoll.soak.handover_audit import SoakAudit, audit_handovers
from plimsoll.soak.harness.clients import SoakClients
from plimsoll.soak.harness.fleet_harness import FleetHarness, HarnessLayout
from plimsoll.soak.harness.residue import await_no_residue
from plimsoll.soak.session_series import saturated_lanes
from plimsoll.soak.session_series.lanes import SessionLanes, SessionMix
from plimsoll.soak.session_series.results import SliceResult
from plimsoll.soak.session_series.saturated_lanes import SaturatedLanes

ROUND_SECONDS: Final = 0.02
CLIENT_POLL_SECONDS: Final = 0.25
LEAST_SECONDS: Final = 3.0
"""Traffic before the first session and after the last one, as the baseline."""
RESIDUE_SECONDS: Final = 45.0
"""Longer than the longest lease: residue after it is permanent."""
LONGEST_SECONDS: Final = 3600.0
CLUSTERS: Final = {"east": 3, "west": 2}


@dataclass(frozen=True)
class SoakLoad:
    """`publishers` of the demo's quotes, at up to 4 a second times `speed`; `processes` that subscribe.

    `saturated`: sessions are by replay, from an overloaded source. `disturbed`: seconds between faults, 0 for none.
    `utilization`: of the input of each edge, were it to get all publications; if not 0, edges are emulated hardware.
    """

    subscribers: int = 300
    publishers: int = 20
    speed: float = 1.0
    processes: int = 2
    saturated: bool = False
    disturbed: float = 0.0
    utilization: float = 0.0

    def shape(self, seed: int) -> HarnessLayout:
        scenario = self.scenario(seed)
        if self.saturated:
            return saturated_lanes.saturated_layout(scenario)
        cost = self.utilization / saturated_lanes.publications_per_second(scenario)
        return HarnessLayout(CLUSTERS, emulated=(cost, 0.0) if cost else None)

    def scenario(self, seed: int) -> DemoScenario:
        return DemoScenario(
            seconds=LONGEST_SECONDS, publishers=self.publishers, subscribers=self.subscribers, seed=seed,
            rate_factor=4.0 * self.speed,
        )  # fmt: skip


class SliceRun:
    """One slice, from its first process to its last."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        sessions: int,
        load: SoakLoad,
        mix: SessionMix,
        lanes: int,
        say: Callable[[str], None],
    ) -> None:
        self._folder, self._seed, self._sessions, self._load, self._lanes = folder, seed, sessions, load, lanes
        self._mix, self._print = mix, say
        self._hear_at = self._say_at = 0.0
        self._disturbing: SoakFaultInjector | None = None
        self._faults: dict[str, int] = {}

    def run(self) -> tuple[SliceResult, SoakAudit]:
        """Run it; raises whatever a misbehaving fleet or worker raises."""
        for name in ("journals", "fleet"):
            remove_folder(self._folder / name)
        began = time.monotonic()
        fleet = self._folder / "fleet" / "soak"
        scenario = self._load.scenario(self._seed)
        with (
            FleetHarness(fleet, self._load.shape(self._seed)) as ground,
            SoakClients(scenario, ground.entry(), self._folder, self._load.processes) as crowd,
        ):
            moving = self._moving(ground)
            seconds = self._traffic(ground, crowd, moving)
            left = self._await_rest(ground, crowd, moving)
            crowd.finish()
        ground.keep_logs(self._folder / "logs")
        residue = [seen.ResidueObserved("fleet", what, 1, time.monotonic()) for what in left]
        links = seen.HeadTreeObserved([("east-head", "west-head")])
        others = [links, *residue]
        judgement = audit_handovers(
            *crowd.journals, moving.done, others,
            saturated=self._load.saturated, disturbed=self._load.disturbed > 0,
        )  # fmt: skip
        result = self._slice(moving, judgement, left, crowd, seconds)
        result.seconds = time.monotonic() - began
        if judgement.is_clean:
            shutil.rmtree(self._folder / "journals")
        return result, judgement

    def _moving(self, ground: FleetHarness) -> SessionLanes:
        draw = random.Random(self._seed)  # noqa: S311  # a plan that can be repeated, no secret
        if self._load.saturated:
            return SaturatedLanes(ground, draw, self._mix, self._load.subscribers)
        return SessionLanes(ground, draw, self._lanes, self._mix)

    def _traffic(self, ground: FleetHarness, crowd: SoakClients, moving: SessionLanes) -> float:
        """All subscribers join, then sessions under load; returns how long those took."""
        if self._mix.members or self._load.saturated:  # a herd begins at one edge
            ground.cordon(ground.edges()[1:])
        for _ in crowd.joining():
            moving.step(ROUND_SECONDS, begin=0)
        ground.cordon([])
        first = crowd.begin() + LEAST_SECONDS
        while time.monotonic() < first:
            self._poll(ground, crowd, moving, begin=0)
        if self._load.disturbed:
            draw = random.Random(self._seed)  # noqa: S311  # a plan that can be repeated, no secret
            self._disturbing = SoakFaultInjector(ground, crowd, draw, self._load.disturbed, self._load.processes)
        while len(moving.counted) < self._sessions:
            self._poll(ground, crowd, moving, begin=self._sessions - len(moving.counted))
        seconds = time.monotonic() - first
        self._stop_faults()
        while not moving.is_idle or time.monotonic() < first + seconds + LEAST_SECONDS:
            self._poll(ground, crowd, moving, begin=0)
        return seconds

    def _await_rest(self, ground: FleetHarness, crowd: SoakClients, moving: SessionLanes) -> list[str]:
        """Wait until all has arrived and nothing is left over; returns the residue."""
        for _ in crowd.ending():
            moving.step(ROUND_SECONDS, begin=0)
        crowd.report_homes(True)
        return await_no_residue(ground, moving.listings, crowd.homes, RESIDUE_SECONDS, moving.on_outcome)

    def _stop_faults(self) -> None:
        if self._disturbing is not None:
            self._disturbing.heal()
            self._faults, self._disturbing = dict(self._disturbing.done), None

    def _poll(self, ground: FleetHarness, crowd: SoakClients, moving: SessionLanes, begin: int) -> None:
        moving.step(ROUND_SECONDS, begin)
        now = time.monotonic()
        if self._disturbing is not None:
            self._disturbing.step(now)
        if now >= self._hear_at:
            self._hear_at = now + CLIENT_POLL_SECONDS
            crowd.poll()
            ground.check()
        if now >= self._say_at:
            self._say_at = now + 10.0
            done, had = len(moving.counted), crowd.total("delivered")
            self._print(f"  seed {self._seed}: {done} of {self._sessions} sessions, {had:,} deliveries")

    def _slice(
        self, moving: SessionLanes, judgement: SoakAudit, left: list[str], crowd: SoakClients, seconds: float
    ) -> SliceResult:
        verdict, added = judgement.verdict, judgement.added
        counted = moving.counted
        outcomes = Counter(state for one in counted for _, state in one.members)
        return SliceResult(
            seed=self._seed,
            sessions=len(counted),
            states=dict(Counter(one.state for one in counted)),
            outcomes=dict(outcomes),
            reasons=dict(Counter(one.reason for one in counted if one.reason)),
            moving_seconds=seconds,
            published=verdict.published,
            expected=verdict.expected,
            delivered=verdict.delivered,
            lost=verdict.lost,
            duplicated=verdict.duplicated,
            reordered=verdict.reordered,
            gaps=verdict.gaps,
            orphaned=len(left),
            violations=judgement.violations[:20],
            violated=dict(verdict.violated),
            contradictions=len(judgement.contradictions),
            session_seconds=[round(one.seconds, 4) for one in counted if one.state == "done"],
            added=(added.beside_source if self._load.saturated else added.during).as_dict(),
            beside_source=added.beside_source.as_dict(),
            spread=added.outside.as_dict(),
            raw=added.raw_during.as_dict(),
            raw_outside=added.raw_outside.as_dict(),
            held_up=added.held_up.as_dict(),
            loads=moving.loads.as_dict(),
            counters=dict(crowd.counters),
            faults=self._faults,
        )  # fmt: skip
