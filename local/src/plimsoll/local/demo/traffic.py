"""The traffic of a run: its workers from start to end, the reports meanwhile, and the wait until all has arrived."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from plimsoll.local.demo import overhead
from plimsoll.local.demo.fleet import Fleet
from plimsoll.local.demo.live import Live, Totals
from plimsoll.local.demo.series import Series
from plimsoll.local.demo.sessions import Row, rows
from plimsoll.local.demo.workers import Worker, WorkerError, task
from plimsoll.local.demo.workload import Scenario

LOOK_SECONDS: Final = 0.25
CONNECT_SECONDS: Final = 30.0
DRAIN_SECONDS: Final = 30.0
QUIET_SECONDS: Final = 3.0
"""Everything has arrived when all subscribers stand at one position, or no broker has anything left, for so long."""
FINISH_SECONDS: Final = 30.0


class Traffic:
    """Use it in a `with`: no worker is left when that ends.

    `must_settle`: whether it is a fault if not everything has arrived in the end; where nothing relieves a broker that
    is overloaded, it cannot.
    """

    def __init__(
        self, scenario: Scenario, fleet: Fleet, folder: Path, clients: int, live: Live, must_settle: bool = True
    ) -> None:
        self._scenario, self._fleet, self._live = scenario, fleet, live
        self._folder, self._clients, self._must_settle = folder, clients, must_settle
        self._publishing: list[Worker] = []
        self._subscribing: list[Worker] = []
        self.series = Series()
        self.sessions: list[Row] = []
        self.settled_position: int | None = None
        """Where the subscriber stands that is the furthest behind; None if all has arrived."""
        self.durations: dict[str, float] = {}

    def __enter__(self) -> Self:
        entry, journals, logs = self._fleet.entry(), self._folder / "journals", self._folder / "logs"
        one = task(self._scenario, entry, journals / "publishing", 0, 1)
        self._publishing.append(Worker("publishing", one, logs / "publishing.log"))
        for part in range(self._clients):
            one = task(self._scenario, entry, journals / f"subscribing-{part}", part, self._clients)
            self._subscribing.append(Worker("subscribing", one, logs / f"subscribing-{part}.log"))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.kill()

    @property
    def _workers(self) -> list[Worker]:
        return [*self._publishing, *self._subscribing]

    @property
    def journals(self) -> tuple[list[Path], list[Path]]:
        """Of publishers and of subscribers."""
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
        """From connecting to the end of every worker; says what went wrong, if the run could go on.

        Raises:
            WorkerError: a worker has ended, or does not connect.

        """
        self._connect()
        self._watch(self._scenario.seconds)
        self.durations["traffic_seconds"] = self._scenario.seconds
        self.sessions = rows(self._fleet.sessions(), time.time() - time.monotonic() + self.start)
        faults = self._drain()
        for worker in self._workers:
            worker.finish()
        for worker in self._workers:
            worker.await_end(FINISH_SECONDS)
        self._live.keep()
        return faults

    def _connect(self) -> None:
        deadline = time.monotonic() + CONNECT_SECONDS
        while not all(worker.hear().get("ready") for worker in self._workers):
            if time.monotonic() > deadline:
                raise WorkerError(
                    f"publishers did not connect within {CONNECT_SECONDS:g} s; see {self._folder / 'logs'}"
                )
            self._look()
        self.series = Series(time.monotonic() + LOOK_SECONDS)
        for worker in self._workers:
            worker.begin(self.start)

    def _watch(self, seconds: float) -> None:
        while (left := self.start + seconds - time.monotonic()) > 0:
            self._look(left)

    def _drain(self) -> list[str]:
        """Wait until every publication is answered and every subscriber has all of its own."""
        began = quiet_since = time.monotonic()
        seen = -1
        while (now := time.monotonic()) - began < DRAIN_SECONDS:
            self._look(phase="waiting for what is under way")
            if self.delivered != seen or not self._settled():
                seen, quiet_since = self.delivered, now
            elif now - quiet_since > QUIET_SECONDS:
                self.durations["drain_seconds"] = quiet_since - began
                return []
        self.durations["drain_seconds"] = DRAIN_SECONDS
        behind = min(self._subscribing, key=lambda worker: worker.latest.get("lowest_position", 0))
        self.settled_position = behind.latest.get("lowest_position", 0)
        if not self._must_settle:
            return []
        return [
            f"{DRAIN_SECONDS:g} s after the last publication some were still under way; the furthest behind is "
            f"{behind.latest.get('furthest_behind')} at position {self.settled_position}, and what came later is not "
            "judged"
        ]

    def _settled(self) -> bool:
        lowest = min((worker.latest.get("lowest_position", 0) for worker in self._subscribing), default=0)
        highest = max((worker.latest.get("highest_position", 0) for worker in self._subscribing), default=0)
        return not self._sum("unanswered") and not self._sum("unsettled") and (lowest == highest or self._is_empty())

    def _is_empty(self) -> bool:
        """Whether nothing waits in any broker: who was moved after the last publication learns no later position."""
        waiting = ("input_queue_messages", "output_queue_messages")
        return all(not report.get(name) for report in self.series.latest.values() for name in waiting)

    def _look(self, left: float = 0.0, phase: str = "connecting") -> None:
        """A quarter of a second of the fleet's life: take reports, hear workers, show all."""
        for report in self._fleet.reports(min(LOOK_SECONDS, left) if left else LOOK_SECONDS):
            self.series.take(report, time.monotonic())
        for worker in self._workers:
            worker.hear()
        self._note_clients()
        latest = self.series.latest
        shown = [latest[name] for name in self._fleet.brokers if name in latest]
        self._live.show(shown, self._totals(left, phase), time.monotonic())

    def _note_clients(self) -> None:
        """What clients have said until now, and how many subscribers have come."""
        seconds = time.monotonic() - self.start
        self.series.ledger.watch(self._fleet.heard, seconds)
        for place, worker in enumerate(self._subscribing):
            counts = overhead.said(worker.latest.get("said", {}))
            counts["Newcomer"] = worker.latest.get("started", 0)
            self.series.ledger.take(f"subscribing-{place}", counts, seconds)

    def _totals(self, left: float, phase: str) -> Totals:
        delays = [
            worker.latest["delay_p99"] for worker in self._subscribing if worker.latest.get("delay_p99") is not None
        ]
        return Totals(
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
