"""The applications of a soak: an open-loop publishing process, and subscribing processes, which may be killed.

They are workers of the demo with its real quotes.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from plimsoll.demo.fleet import DemoAccess
from plimsoll.demo.workers.worker_process import PUBLISHER_MODULE, WorkerError, WorkerProcess
from plimsoll.demo.workload import DemoScenario
from plimsoll.soak.harness.subscriber_worker import COUNTS, HOMES, SoakSubscriberTask

SUBSCRIBER_MODULE: Final = "plimsoll.soak.harness.subscriber_worker"
JOIN_SECONDS: Final = 60.0
END_SECONDS: Final = 60.0
SETTLE_SECONDS: Final = 30.0
QUIET_SECONDS: Final = 0.5
LEAD_SECONDS: Final = 0.25


class SoakClients:
    """The worker processes; a `with` ends all of them. `wide`: every subscriber subscribes to everything."""

    def __init__(
        self, scenario: DemoScenario, entry: DemoAccess, folder: Path, processes: int, *, wide: bool = False
    ) -> None:
        self._scenario, self._entry, self._folder = scenario, entry, folder
        self._processes, self._wide = processes, wide
        self._lives: list[list[Path]] = [[] for _ in range(processes)]
        self._subscribing: list[WorkerProcess | None] = [None] * processes
        self._publishing: WorkerProcess | None = None
        self._frozen: set[int] = set()
        self.counters: Counter[str] = Counter()
        for name in ("journals", "logs"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> SoakClients:
        for part in range(self._processes):
            self.start(part)
        job = self._task(self._folder / "journals" / "publishing", 0, 1)
        self._publishing = WorkerProcess(PUBLISHER_MODULE, job, self._folder / "logs" / "publishing.log")
        return self

    def __exit__(self, *ended: object) -> None:
        for worker in self._workers():
            worker.kill()

    @property
    def journals(self) -> tuple[list[Path], list[Path]]:
        """Journals of publishers, and of subscribers; those of one process in the order of its lives."""
        lives = [path for lives in self._lives for path in lives if _is_written(path)]
        return [self._folder / "journals" / "publishing"], lives

    # -- subscribing processes

    def start(self, part: int) -> None:
        """Start a process; it resumes from the journals of its earlier lives."""
        lives = self._lives[part]
        before = tuple(str(life) for life in lives if _is_written(life))
        path = self._folder / "journals" / f"subscribing-{part}.{len(lives)}"
        job = self._task(path, part, self._processes, before=before)
        lives.append(path)
        log = self._folder / "logs" / f"subscribing-{part}.{len(lives)}.log"
        self._subscribing[part] = WorkerProcess(SUBSCRIBER_MODULE, job, log)

    def kill(self, part: int) -> None:
        """SIGKILL."""
        if (worker := self._subscribing[part]) is not None:
            worker.kill()
            self._subscribing[part] = None
            self._frozen.discard(part)

    def freeze(self, part: int) -> None:
        """SIGSTOP."""
        if (worker := self._subscribing[part]) is not None:
            os.kill(worker.pid, signal.SIGSTOP)
            self._frozen.add(part)

    def thaw(self, part: int) -> None:
        """SIGCONT, if it is frozen."""
        if part in self._frozen and (worker := self._subscribing[part]) is not None:
            os.kill(worker.pid, signal.SIGCONT)
        self._frozen.discard(part)

    # -- phases, as generators: the caller does its own work between two steps

    def joining(self) -> Iterator[None]:
        """Wait until every subscription is acknowledged and the publishers are connected."""
        deadline = time.monotonic() + JOIN_SECONDS
        while not (self._is_served() and self._publishing is not None and self._publishing.read_report().get("ready")):
            if time.monotonic() > deadline:
                raise WorkerError(
                    f"only {self.total('subscribers')} of {self._scenario.subscribers} subscribers are served after "
                    f"{JOIN_SECONDS:g} s; see {self._folder / 'logs'}"
                )
            yield

    def begin(self) -> float:
        """Start the publishers; returns the time of the first publication."""
        start = time.monotonic() + LEAD_SECONDS
        assert self._publishing is not None  # noqa: S101  # `__enter__` starts it
        self._publishing.begin(start)
        return start

    def ending(self) -> Iterator[None]:
        """End the publishers, and wait until deliveries have stopped; raises `WorkerError` if that takes too long."""
        assert self._publishing is not None  # noqa: S101  # `__enter__` starts it
        self._publishing.finish()
        self._publishing.await_end(END_SECONDS)
        quiet_since, seen = time.monotonic(), -1
        deadline = time.monotonic() + SETTLE_SECONDS
        while (now := time.monotonic()) - quiet_since < QUIET_SECONDS:
            self.poll()
            if (delivered := self.total("delivered")) != seen or not self._is_served():
                seen, quiet_since = delivered, now
            if now > deadline:
                raise WorkerError(f"deliveries had not stopped {SETTLE_SECONDS:g} s after the last publication")
            yield

    def finish(self) -> None:
        """Close and end the subscribers."""
        workers = [worker for worker in self._subscribing if worker is not None]
        for worker in workers:
            worker.finish()
        for worker in workers:
            worker.await_end(END_SECONDS)
        for each in self._workers():
            self.counters.update(each.latest.get("counters", {}))

    # -- reports of the processes

    def poll(self) -> None:
        """Read the reports of all processes; raises `WorkerError` if one has ended without being killed."""
        for worker in self._workers():
            if worker is self._publishing and "counters" in worker.latest:
                continue
            worker.read_report()

    def report_homes(self, wanted: bool) -> None:
        """Turn reports of each subscriber's edge on or off."""
        for worker in self._subscribing:
            if worker is not None:
                worker.order(HOMES if wanted else COUNTS)

    def homes(self) -> dict[str, str]:
        """By subscriber the edge that its application knows; empty for a subscriber that is not served."""
        self.poll()
        found: dict[str, str] = {}
        for worker in self._subscribing:
            if worker is not None:
                found |= worker.latest.get("homes", {"a process without a report of its subscribers": ""})
        return found

    def total(self, key: str) -> int:
        return sum(int(worker.latest.get(key, 0)) for worker in self._workers())

    def _workers(self) -> list[WorkerProcess]:
        return [worker for worker in [*self._subscribing, self._publishing] if worker is not None]

    def _is_served(self) -> bool:
        self.poll()
        served = sum(int(w.latest.get("subscribers", 0)) for w in self._subscribing if w is not None)
        unsettled = sum(int(w.latest.get("unsettled", 1)) for w in self._subscribing if w is not None)
        return served == self._scenario.subscribers and not unsettled

    def _task(self, journal: Path, part: int, of: int, before: tuple[str, ...] = ()) -> SoakSubscriberTask:
        entry = self._entry
        return SoakSubscriberTask(
            scenario=self._scenario, endpoint=entry.endpoint, head_key=entry.head_key,
            own_secret_key=entry.own_secret_key, journal=str(journal), part=part, of=of, wide=self._wide, before=before,
        )  # fmt: skip


def _is_written(journal: Path) -> bool:
    """False for a process that was killed before it wrote anything."""
    return journal.exists() and journal.stat().st_size > 0
