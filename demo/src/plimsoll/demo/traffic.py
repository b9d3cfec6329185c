"""The traffic of a run: its workers from start to end, the reports meanwhile, and the wait until all has arrived."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from plimsoll.demo.analysis import overhead
from plimsoll.demo.analysis.load_series import LoadSeries
from plimsoll.demo.analysis.machine_load import MachineLoad, MachineLoadMeter
from plimsoll.demo.analysis.session_outcomes import ReportedSession, reported_sessions
from plimsoll.demo.fleet import DemoFleet
from plimsoll.demo.live_display import LiveDisplay, RunTotals
from plimsoll.demo.processor_times import processor_times
from plimsoll.demo.workers.worker_process import (
    PUBLISHER_MODULE,
    SUBSCRIBER_MODULE,
    WorkerError,
    WorkerProcess,
    client_task,
)
from plimsoll.demo.workload import DemoScenario

POLL_SECONDS: Final = 0.25
MACHINE_LOOK_SECONDS: Final = 2.0
CONNECT_SECONDS: Final = 120.0
STALLED_SECONDS: Final = 30.0
"""The wait for publications under way ends after this long without an arrival."""
DRAIN_SECONDS: Final = 300.0
"""And after this long in any case: a busy machine takes its time, but a run must end."""
UNRELIEVED_SECONDS: Final = 30.0
"""The same where an overloaded broker gets no relief, so that the wait cannot succeed."""
QUIET_SECONDS: Final = 3.0
"""Everything has arrived when all subscribers are at one position, or no broker has work left, for this long."""
FINISH_SECONDS: Final = 120.0


class DemoTraffic:
    """Use it in a `with`: no worker is left when that ends.

    `must_settle`: whether it is a fault if something has not arrived at the end, which is unavoidable where an
    overloaded broker gets no relief. `at_look` is called every quarter of a second of the traffic with its time.
    """

    def __init__(
        self,
        scenario: DemoScenario,
        fleet: DemoFleet,
        folder: Path,
        clients: int,
        live: LiveDisplay,
        must_settle: bool = True,
        at_look: Callable[[float], object] = lambda _: None,
    ) -> None:
        self._scenario, self._fleet, self._live = scenario, fleet, live
        self._at_look = at_look
        self._folder, self._clients, self._must_settle = folder, clients, must_settle
        self._publishing: list[WorkerProcess] = []
        self._subscribing: list[WorkerProcess] = []
        self.series = LoadSeries()
        self.sessions: list[ReportedSession] = []
        self.settled_position: int | None = None
        """The position of the slowest subscriber; None if everything has arrived."""
        self.durations: dict[str, float] = {}
        self._machine = MachineLoadMeter(os.cpu_count() or 1)
        self._next_machine_look = 0.0

    def __enter__(self) -> Self:
        entry, journals, logs = self._fleet.entry(), self._folder / "journals", self._folder / "logs"
        one = client_task(self._scenario, entry, journals / "publishing", 0, 1)
        self._publishing.append(WorkerProcess(PUBLISHER_MODULE, one, logs / "publishing.log"))
        for part in range(self._clients):
            one = client_task(self._scenario, entry, journals / f"subscribing-{part}", part, self._clients)
            self._subscribing.append(WorkerProcess(SUBSCRIBER_MODULE, one, logs / f"subscribing-{part}.log"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.kill()

    @property
    def _workers(self) -> list[WorkerProcess]:
        return [*self._publishing, *self._subscribing]

    @property
    def journals(self) -> tuple[list[Path], list[Path]]:
        """Numbers of publishers and of subscribers."""
        return [worker.journal for worker in self._publishing], [worker.journal for worker in self._subscribing]

    @property
    def start(self) -> float:
        """When the traffic began, by `time.monotonic()`."""
        return self.series.start

    @property
    def published(self) -> int:
        return self._sum("published")

    @property
    def delivered(self) -> int:
        return self._sum("delivered")

    @property
    def counters(self) -> dict[str, int]:
        """What the client library counted, over all workers."""
        total: Counter[str] = Counter()
        for worker in self._workers:
            total.update(worker.latest.get("counters", {}))
        return dict(total)

    def run(self) -> list[str]:
        """From connecting to the end of every worker; returns what went wrong, if the run could go on.

        Raises:
            WorkerError: a worker has ended, or does not connect.

        """
        self._connect()
        self._watch(self._scenario.seconds)
        self.durations["traffic_seconds"] = self._scenario.seconds
        self.sessions = reported_sessions(self._fleet.sessions(), time.time() - time.monotonic() + self.start)
        faults = self._drain()
        for worker in self._workers:
            worker.finish()
        for worker in self._workers:
            worker.await_end(FINISH_SECONDS)
        self._live.keep()
        return faults

    def _connect(self) -> None:
        deadline = time.monotonic() + CONNECT_SECONDS
        while not all(worker.read_report().get("ready") for worker in self._workers):
            if time.monotonic() > deadline:
                raise WorkerError(
                    f"publishers did not connect within {CONNECT_SECONDS:g} s; see {self._folder / 'logs'}"
                )
            self._look()
        self.series = LoadSeries(time.monotonic() + POLL_SECONDS)
        for worker in self._workers:
            worker.begin(self.start)

    def _watch(self, seconds: float) -> None:
        while (left := self.start + seconds - time.monotonic()) > 0:
            self._look(left)
            self._at_look(seconds - left)

    def _drain(self) -> list[str]:
        """Wait until every publication is answered and every subscriber has all of its own."""
        began = quiet_since = arrived_at = time.monotonic()
        longest = DRAIN_SECONDS if self._must_settle else UNRELIEVED_SECONDS
        seen = -1
        while (now := time.monotonic()) - began < longest and now - arrived_at < STALLED_SECONDS:
            self._look(phase="waiting for what is under way")
            if self.delivered != seen:
                arrived_at = now
            if self.delivered != seen or not self._settled():
                seen, quiet_since = self.delivered, now
            elif now - quiet_since > QUIET_SECONDS:
                self.durations["drain_seconds"] = quiet_since - began
                return []
        self.durations["drain_seconds"] = now - began
        behind = min(self._subscribing, key=lambda worker: worker.latest.get("lowest_position", 0))
        self.settled_position = behind.latest.get("lowest_position", 0)
        if not self._must_settle:
            return []
        return [
            f"{now - began:.0f} s after the last publication some were still under way; the furthest behind is "
            f"{behind.latest.get('furthest_behind')} at position {self.settled_position}, and what came later is not "
            "judged"
        ]

    def _settled(self) -> bool:
        lowest = min((worker.latest.get("lowest_position", 0) for worker in self._subscribing), default=0)
        highest = max((worker.latest.get("highest_position", 0) for worker in self._subscribing), default=0)
        return not self._sum("unanswered") and not self._sum("unsettled") and (lowest == highest or self._is_empty())

    def _is_empty(self) -> bool:
        """Whether no broker has work left: a subscriber moved after the last publication learns no later position."""
        waiting = ("input_queue_messages", "output_queue_messages")
        return all(not report.get(name) for report in self.series.latest.values() for name in waiting)

    def _look(self, left: float = 0.0, phase: str = "connecting") -> None:
        """A quarter of a second of the run: take reports, read from the workers, update the display."""
        for report in self._fleet.reports(min(POLL_SECONDS, left) if left else POLL_SECONDS):
            self.series.take(report, time.monotonic())
        for worker in self._workers:
            worker.read_report()
        self._note_clients()
        self._note_machine()
        latest = self.series.latest
        shown = [latest[name] for name in self._fleet.brokers if name in latest]
        self._live.show(shown, self._totals(left, phase), time.monotonic())

    def _note_machine(self) -> None:
        """Sample the load of the machine now and then: a sample itself takes a few milliseconds."""
        if time.monotonic() >= self._next_machine_look:
            self._next_machine_look = time.monotonic() + MACHINE_LOOK_SECONDS
            if (times := processor_times()) is not None:
                self._machine.take(times)

    @property
    def machine_load(self) -> MachineLoad:
        """The average use of the machine by this run and by all other processes."""
        return self._machine.load()

    def _note_clients(self) -> None:
        """Messages that clients have sent so far, and the number of subscribers that have joined."""
        seconds = time.monotonic() - self.start
        self.series.ledger.watch(self._fleet.received, seconds)
        for place, worker in enumerate(self._subscribing):
            counts = overhead.sent_counts(worker.latest.get("said", {}))
            counts["Newcomer"] = worker.latest.get("started", 0)
            self.series.ledger.take(f"subscribing-{place}", counts, seconds)

    def _totals(self, left: float, phase: str) -> RunTotals:
        delays = [
            worker.latest["delay_p99"] for worker in self._subscribing if worker.latest.get("delay_p99") is not None
        ]
        return RunTotals(
            seconds_left=left,
            published=self.published,
            delivered=self.delivered,
            subscribers=self._sum("subscribers"),
            wanted_subscribers=self._scenario.subscribers,
            gaps=self._sum("gaps"),
            delay_seconds=max(delays, default=None),
            phase=phase,
        )

    def _sum(self, key: str) -> int:
        values: list[Any] = [worker.latest.get(key, 0) for worker in self._workers]
        return int(sum(values))
