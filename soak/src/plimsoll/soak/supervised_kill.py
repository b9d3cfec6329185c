"""One cell of a kill matrix in a fleet with its supervisor: traffic, a session, a process killed at a step of it.

A step is held by freezing the process that would end it, or by a plan that waits for approval, so that it does not
depend on timing. What is killed is brought back by the fleet's supervisor.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

from plimsoll.core.spec import Resources
from plimsoll.core.verify import AuditVerdict, LawAudit, Observation
from plimsoll.core.verify import observations as seen
from plimsoll.demo.fleet import DemoFleet
from plimsoll.demo.journal import read_journal
from plimsoll.demo.leftovers import empty_report_folder
from plimsoll.demo.live_display import LiveDisplay
from plimsoll.demo.traffic import DemoTraffic
from plimsoll.demo.workers.worker_process import WorkerProcess
from plimsoll.demo.workload import DemoScenario
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectMissingError, ObjectStore

SESSION = "change"
STEP_SECONDS = 30.0
END_SECONDS = 90.0
WATCH_SECONDS = 6.0
"""After this time the connections to brokers are made again: one that was killed may report to the supervisor alone."""
QUIET_LOOKS = 8
"""A state counts as right once it was right at this number of looks in a row, four a second."""


class KillError(RuntimeError):
    """The step was not reached."""


class NamedCell(Protocol):
    """A cell, by which errors name it."""

    def __str__(self) -> str: ...


class KillResult(Protocol):
    """`broken`: why the cell failed."""

    broken: list[str]


R = TypeVar("R", bound=KillResult)


class HeldTraffic(DemoTraffic):
    """Traffic that lasts as long as its middle, `during`, which a cell plays."""

    during: Callable[[], None]
    _is_publishing = True

    def look(self) -> None:
        """A quarter of a second."""
        self._look()

    @property
    def publishing_pids(self) -> list[int]:
        """The processes of publishers."""
        return [worker.pid for worker in self._publishing]

    @property
    def _workers(self) -> list[WorkerProcess]:
        return [*(self._publishing if self._is_publishing else ()), *self._subscribing]

    def _watch(self, seconds: float) -> None:
        self.during()
        for worker in self._publishing:
            worker.finish()
        for worker in self._publishing:
            worker.await_end(END_SECONDS)
        self._is_publishing = False


class SupervisedKill(ABC):
    """One cell, from the start of its fleet to the audit. Its journals stay in `folder`.

    `fleet`: the name of its fleet. `clients`: how many processes subscribe.
    """

    def __init__(self, cell: NamedCell, folder: Path, fleet: str, scenario: DemoScenario, clients: int = 1) -> None:
        self._what, self._folder, self._scenario, self._clients = cell, folder, scenario, clients
        self._fleet_name = fleet
        self._state = FleetFolder(folder / "fleet" / fleet)
        self._frozen: dict[str, int] = {}
        self._ends: list[Observation] = []
        self._lives: dict[str, int] = {}
        self._hit_at = self._settled_at = 0.0
        self._problems: list[str] = []

    def run_fleet(self, resources: Resources, result_of: Callable[[AuditVerdict, list[str]], R]) -> R:
        """Run the cell; everything that it started has ended when it returns.

        `result_of`: makes the result of what the audit says and of what went wrong, while the fleet still runs.
        """
        empty_report_folder(self._folder, self._state, ())
        self._fleet = DemoFleet(self._state, resources)
        is_orderly = False
        live = LiveDisplay(lambda text: None, terminal=False, interval_seconds=3600.0)
        try:
            self._fleet.await_ready()
            traffic = self.traffic(live)
            with traffic as self._traffic:
                self._traffic.during = self.play
                notes = [*self._traffic.run(), *self._problems]
            result = result_of(self._audit(), notes)
            is_orderly = True
        finally:
            self._thaw()
            ended = self._fleet.stop(hurry=not is_orderly)
            self._fleet.keep_logs(self._folder / "logs")
        result.broken += ended
        return result

    def traffic(self, live: LiveDisplay) -> HeldTraffic:
        """The traffic, before it has begun."""
        return HeldTraffic(self._scenario, self._fleet, self._folder, self._clients, live)

    @abstractmethod
    def play(self) -> None:
        """What happens under the traffic."""

    @abstractmethod
    def faults(self) -> Iterator[str]:
        """What is not yet as it should be at the end."""

    # -- signals

    def _kill(self, name: str) -> None:
        """Kill a broker or the mediator; it counts as back once it has reported again under a later epoch."""
        if name != "mediator":
            report = self._traffic.series.latest[name]
            self._lives[name] = int(report["epoch"])
            if self._fleet.brokers[name].role == "head":
                self._ends.append(seen.HeadEndObserved(name, self._lives[name], time.monotonic()))
        os.kill(self._pid(name), signal.SIGKILL)
        self._frozen.pop(name, None)

    def _pid(self, name: str) -> int:
        if name == "mediator":
            return int(self._object("BrokerFleet", self._fleet_name)["status"]["mediator"]["pid"])
        pid = self._fleet.pid(name)
        if pid is None:
            raise KillError(f"{self._what}: {name} has no process")
        return pid

    def _freeze(self, names: list[str]) -> None:
        for name in names:
            self._frozen[name] = self._pid(name)
            os.kill(self._frozen[name], signal.SIGSTOP)

    def _thaw(self) -> None:
        while self._frozen:
            with contextlib.suppress(ProcessLookupError):  # it was killed
                os.kill(self._frozen.popitem()[1], signal.SIGCONT)

    # -- time

    def _await(self, what: Callable[[], bool], meaning: str) -> None:
        deadline = time.monotonic() + STEP_SECONDS
        while not what():
            if time.monotonic() > deadline:
                raise KillError(f"{self._what}: not within {STEP_SECONDS:g} s: {meaning}; {self._session()}")
            self._traffic.look()

    def _settle(self) -> None:
        """Wait until nothing is wrong, and stays so; what is wrong when time is up is a problem of the cell."""
        quiet, deadline, found = 0, time.monotonic() + END_SECONDS, ["not looked at"]
        watch_at = time.monotonic() + WATCH_SECONDS
        while quiet < QUIET_LOOKS and time.monotonic() < deadline:
            self._traffic.look()
            found = [*self._not_back(), *self.faults()]
            if found and time.monotonic() > watch_at:
                watch_at += WATCH_SECONDS
                self._fleet.watch()
            quiet = 0 if found else quiet + 1
        self._settled_at = time.monotonic()
        self._problems += found

    def _not_back(self) -> Iterator[str]:
        for name, epoch in self._lives.items():
            if int(self._traffic.series.latest[name]["epoch"]) <= epoch:
                yield f"{name} has not reported again"

    # -- what is known

    def _object(self, kind: str, name: str) -> dict[str, Any]:
        with ObjectStore(self._state.store) as store:
            try:
                return store.get(kind, name)
            except ObjectMissingError:
                return {}

    def _session(self) -> dict[str, Any]:
        found: dict[str, Any] = self._object("LoadBalancingSession", SESSION).get("status", {})
        return found

    def _audit(self) -> AuditVerdict:
        audit = LawAudit()
        for one in self._ends:
            audit.take(one)
        publishers, subscribers = self._traffic.journals
        for path in [*publishers, *subscribers]:
            for noted in read_journal(path):
                if isinstance(noted, Observation):
                    audit.take(noted)
        return audit.verdict()
