"""A fleet under traffic from its start to the audit of every delivery, with a director of what happens meanwhile.

Everything started here has ended when it returns, even after an error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plimsoll.core.printable import printable_lines
from plimsoll.core.spec import Resources
from plimsoll.demo.analysis.load_series import LoadSeries
from plimsoll.demo.analysis.machine_load import MachineLoad
from plimsoll.demo.command import CONFLICT, FAILED, INTERRUPTED, interruptible
from plimsoll.demo.fleet import DemoFleet, DemoFleetError
from plimsoll.demo.leftovers import empty_report_folder
from plimsoll.demo.live_display import LiveDisplay
from plimsoll.demo.run_audit import DemoAudit, audit_run
from plimsoll.demo.traffic import DemoTraffic
from plimsoll.demo.workers.worker_process import WorkerError
from plimsoll.demo.workload import DemoScenario
from plimsoll.local.storage.fleet_folder import FleetBusyError, FleetFolder

CLIENTS = 2
"""Processes that subscribe."""


class RunDirector:
    """What is done to a fleet under traffic; this one does nothing."""

    def begin(self, fleet: DemoFleet, state: FleetFolder) -> None:
        """The fleet is ready."""

    def look(self, seconds: float, reports: Mapping[str, Mapping[str, Any]]) -> None:
        """Four times a second of the traffic, with the latest report of each broker."""

    def unexpected(self, deaths: Sequence[str]) -> list[str]:
        """The ends of brokers that it has not caused itself."""
        return list(deaths)


@dataclass(frozen=True)
class AuditedRun:
    """A run that has ended. `sessions`: their objects at its end; `began_at`: of the traffic, by the wall clock.

    `journals`: of publishers and subscribers. They stay for the caller to read.
    """

    judgement: DemoAudit
    series: LoadSeries
    sessions: Sequence[Mapping[str, Any]]
    began_at: float
    machine: MachineLoad
    journals: tuple[list[Path], list[Path]]


def run_audited(
    scenario: DemoScenario,
    fleet_resources: Resources,
    folder: Path,
    live: LiveDisplay,
    reports: Sequence[str],
    director: RunDirector | None = None,
) -> AuditedRun:
    """The whole run; `reports`: the files in `folder` that will be the report."""
    director = director or RunDirector()
    state = FleetFolder(folder / "fleet" / fleet_resources.fleet.name)
    empty_report_folder(folder, state, reports)
    fleet = DemoFleet(state, fleet_resources)
    orderly = False
    try:
        fleet.await_ready()
        live.say(f"{len(fleet.brokers)} brokers of {len(fleet_resources.clusters)} clusters are ready")
        director.begin(fleet, state)
        with DemoTraffic(
            scenario, fleet, folder, CLIENTS, live,
            at_look=lambda seconds: director.look(seconds, traffic.series.latest),
        ) as traffic:  # fmt: skip
            faults = traffic.run()
            began_at = time.time() - time.monotonic() + traffic.start
            sessions = fleet.sessions()
        faults += director.unexpected(fleet.deaths())
        orderly = True
    finally:
        faults_at_end = fleet.stop(hurry=not orderly)
        fleet.keep_logs(folder / "logs")
    live.say(f"auditing {traffic.delivered:,} deliveries of {traffic.published:,} publications ...")
    judgement = audit_run(*traffic.journals, traffic.start, [*faults, *faults_at_end], traffic.settled_position)
    return AuditedRun(judgement, traffic.series, sessions, began_at, traffic.machine_load, traffic.journals)


def exit_code(live: LiveDisplay, run: Callable[[], int]) -> int:
    """What a run returns, or the code of what stopped it; that is said."""
    try:
        with interruptible():
            return run()
    except FleetBusyError as error:
        live.say(str(error))
        return CONFLICT
    except KeyboardInterrupt:
        live.say("interrupted: everything was stopped, and there is no report")
        return INTERRUPTED
    except (DemoFleetError, WorkerError) as error:
        sys.stderr.write(printable_lines(f"{error}\n"))
        return FAILED
