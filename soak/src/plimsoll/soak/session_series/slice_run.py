"""A slice: a fleet of its own under load, a number of sessions, a check for residue, and an audit of every delivery."""

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
"""Longer than any lease: residue that is left after it is permanent."""
LONGEST_SECONDS: Final = 3600.0
CLUSTERS: Final = {"east": 3, "west": 2}


@dataclass(frozen=True)
class SoakLoad:
    """The load of a slice. `publishers` publish the demo's quotes, each at up to 4 a second times `speed`.

    `processes`: of subscribers. `saturated`: sessions are by replay, from an overloaded edge. `disturbed`: seconds
    between faults, 0 for none. `utilization`: edges are emulated so that all publications would use an edge's input to
    this share; 0 for edges that are not emulated.
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
    """One slice, from the start of its fleet to its audit."""

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
        self._poll_clients_at = self._print_at = 0.0
        self._disturbing: SoakFaultInjector | None = None
        self._faults: dict[str, int] = {}

    def run(self) -> tuple[SliceResult, SoakAudit]:
        """Run the slice; raises `FleetHarnessError` or `WorkerError` if a process fails."""
        for name in ("journals", "fleet"):
            remove_folder(self._folder / name)
        began = time.monotonic()
        fleet = self._folder / "fleet" / "soak"
        scenario = self._load.scenario(self._seed)
        with (
            FleetHarness(fleet, self._load.shape(self._seed)) as harness,
            SoakClients(scenario, harness.entry(), self._folder, self._load.processes) as clients,
        ):
            lanes = self._new_lanes(harness)
            seconds = self._traffic(harness, clients, lanes)
            left = self._await_rest(harness, clients, lanes)
            clients.finish()
        harness.keep_logs(self._folder / "logs")
        residue = [seen.ResidueObserved("fleet", what, 1, time.monotonic()) for what in left]
        links = seen.HeadTreeObserved([("east-head", "west-head")])
        others = [links, *residue]
        audit = audit_handovers(
            *clients.journals, lanes.done, others,
            saturated=self._load.saturated, disturbed=self._load.disturbed > 0,
        )  # fmt: skip
        result = self._slice(lanes, audit, left, clients, seconds)
        result.seconds = time.monotonic() - began
        if audit.is_clean:
            shutil.rmtree(self._folder / "journals")
        return result, audit

    def _new_lanes(self, harness: FleetHarness) -> SessionLanes:
        draw = random.Random(self._seed)  # noqa: S311  # a plan that can be repeated, no secret
        if self._load.saturated:
            return SaturatedLanes(harness, draw, self._mix, self._load.subscribers)
        return SessionLanes(harness, draw, self._lanes, self._mix)

    def _traffic(self, harness: FleetHarness, clients: SoakClients, lanes: SessionLanes) -> float:
        """Let all subscribers join, then run the sessions under load; returns the seconds that sessions took."""
        if self._mix.members or self._load.saturated:  # all subscribers start at one edge
            harness.cordon(harness.edges()[1:])
        for _ in clients.joining():
            lanes.step(ROUND_SECONDS, begin=0)
        harness.cordon([])
        first = clients.begin() + LEAST_SECONDS
        while time.monotonic() < first:
            self._poll(harness, clients, lanes, begin=0)
        if self._load.disturbed:
            draw = random.Random(self._seed)  # noqa: S311  # a plan that can be repeated, no secret
            self._disturbing = SoakFaultInjector(harness, clients, draw, self._load.disturbed, self._load.processes)
        while len(lanes.counted) < self._sessions:
            self._poll(harness, clients, lanes, begin=self._sessions - len(lanes.counted))
        seconds = time.monotonic() - first
        self._stop_faults()
        while not lanes.is_idle or time.monotonic() < first + seconds + LEAST_SECONDS:
            self._poll(harness, clients, lanes, begin=0)
        return seconds

    def _await_rest(self, harness: FleetHarness, clients: SoakClients, lanes: SessionLanes) -> list[str]:
        """Wait until deliveries have stopped and brokers are clean; returns the residue."""
        for _ in clients.ending():
            lanes.step(ROUND_SECONDS, begin=0)
        clients.report_homes(True)
        return await_no_residue(harness, lanes.listings, clients.homes, RESIDUE_SECONDS, lanes.on_outcome)

    def _stop_faults(self) -> None:
        if self._disturbing is not None:
            self._disturbing.heal()
            self._faults, self._disturbing = dict(self._disturbing.done), None

    def _poll(self, harness: FleetHarness, clients: SoakClients, lanes: SessionLanes, begin: int) -> None:
        lanes.step(ROUND_SECONDS, begin)
        now = time.monotonic()
        if self._disturbing is not None:
            self._disturbing.step(now)
        if now >= self._poll_clients_at:
            self._poll_clients_at = now + CLIENT_POLL_SECONDS
            clients.poll()
            harness.check()
        if now >= self._print_at:
            self._print_at = now + 10.0
            done, delivered = len(lanes.counted), clients.total("delivered")
            self._print(f"  seed {self._seed}: {done} of {self._sessions} sessions, {delivered:,} deliveries")

    def _slice(
        self, lanes: SessionLanes, audit: SoakAudit, left: list[str], clients: SoakClients, seconds: float
    ) -> SliceResult:
        verdict, added = audit.verdict, audit.added
        counted = lanes.counted
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
            violations=audit.violations[:20],
            violated=dict(verdict.violated),
            contradictions=len(audit.contradictions),
            session_seconds=[round(one.seconds, 4) for one in counted if one.state == "done"],
            added=(added.beside_source if self._load.saturated else added.during).as_dict(),
            beside_source=added.beside_source.as_dict(),
            spread=added.outside.as_dict(),
            raw=added.raw_during.as_dict(),
            raw_outside=added.raw_outside.as_dict(),
            held_up=added.held_up.as_dict(),
            loads=lanes.loads.as_dict(),
            counters=dict(clients.counters),
            faults=self._faults,
        )  # fmt: skip
