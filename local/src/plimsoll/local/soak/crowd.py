"""The applications of a soak: a process that publishes, open-loop, and some that subscribe, and may be killed.

They are the demo's, with its real quotes. Use it in a `with`: no worker is left when that ends.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from plimsoll.local.demo.fleet import Entry
from plimsoll.local.demo.workers import Worker, WorkerError
from plimsoll.local.demo.workload import Scenario
from plimsoll.local.soak.subscribing import COUNTS, HOMES, Job

PACKAGE: Final = "plimsoll.local.soak"
JOIN_SECONDS: Final = 60.0
END_SECONDS: Final = 60.0
SETTLE_SECONDS: Final = 30.0
QUIET_SECONDS: Final = 0.5
LEAD_SECONDS: Final = 0.25


class Crowd:
    """`wide`: everybody subscribes to everything."""

    def __init__(self, scenario: Scenario, entry: Entry, folder: Path, processes: int, *, wide: bool = False) -> None:
        self._scenario, self._entry, self._folder = scenario, entry, folder
        self._processes, self._wide = processes, wide
        self._lives: list[list[Path]] = [[] for _ in range(processes)]
        self._subscribing: list[Worker | None] = [None] * processes
        self._publishing: Worker | None = None
        self._frozen: set[int] = set()
        self.counters: Counter[str] = Counter()
        self.killed = 0
        for name in ("journals", "logs"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Crowd:
        for part in range(self._processes):
            self.start(part)
        job = self._job(self._folder / "journals" / "publishing", 0, 1)
        self._publishing = Worker("publishing", job, self._folder / "logs" / "publishing.log")
        return self

    def __exit__(self, *ended: object) -> None:
        for worker in self._workers():
            worker.kill()

    @property
    def journals(self) -> tuple[list[Path], list[Path]]:
        """Of publishers, and of subscribers, the lives of each process in their order."""
        lives = [path for lives in self._lives for path in lives if _says_something(path)]
        return [self._folder / "journals" / "publishing"], lives

    # -- processes that subscribe

    def start(self, part: int) -> None:
        """Run one, behind what its earlier lives have had."""
        lives = self._lives[part]
        before = tuple(str(life) for life in lives if _says_something(life))
        path = self._folder / "journals" / f"subscribing-{part}.{len(lives)}"
        job = self._job(path, part, self._processes, before=before)
        lives.append(path)
        log = self._folder / "logs" / f"subscribing-{part}.{len(lives)}.log"
        self._subscribing[part] = Worker("subscribing", job, log, PACKAGE)

    def kill(self, part: int) -> None:
        """SIGKILL."""
        if (worker := self._subscribing[part]) is not None:
            worker.kill()
            self._subscribing[part] = None
            self._frozen.discard(part)
            self.killed += 1

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

    # -- phases, as generators: the caller does what it has to do between two looks

    def joining(self) -> Iterator[None]:
        """Until everybody is served and acknowledged, and the publishers are connected."""
        deadline = time.monotonic() + JOIN_SECONDS
        while not (self._is_served() and self._publishing is not None and self._publishing.hear().get("ready")):
            if time.monotonic() > deadline:
                raise WorkerError(f"after {JOIN_SECONDS:g} s {self.sum('subscribers')} are served: {self._folder}")
            yield

    def begin(self) -> float:
        """Let the publishers begin; returns when they do."""
        start = time.monotonic() + LEAD_SECONDS
        assert self._publishing is not None  # noqa: S101
        self._publishing.begin(start)
        return start

    def ending(self) -> Iterator[None]:
        """Let publishers end, and wait until everybody has everything; raises `WorkerError` if that takes too long."""
        assert self._publishing is not None  # noqa: S101
        self._publishing.finish()
        self._publishing.await_end(END_SECONDS)
        quiet_since, seen = time.monotonic(), -1
        deadline = time.monotonic() + SETTLE_SECONDS
        while (now := time.monotonic()) - quiet_since < QUIET_SECONDS:
            self.hear()
            if (delivered := self.sum("delivered")) != seen or not self._is_served():
                seen, quiet_since = delivered, now
            if now > deadline:
                raise WorkerError(f"{SETTLE_SECONDS:g} s after the last publication some were still under way")
            yield

    def finish(self) -> None:
        """Let those who subscribe close and end."""
        workers = [worker for worker in self._subscribing if worker is not None]
        for worker in workers:
            worker.finish()
        for worker in workers:
            worker.await_end(END_SECONDS)
        for each in self._workers():
            self.counters.update(each.latest.get("counters", {}))

    # -- what they say

    def hear(self) -> None:
        """Take what they have said; raises `WorkerError` if one has ended that was not killed."""
        for worker in self._workers():
            if worker is self._publishing and "counters" in worker.latest:
                continue
            worker.hear()

    def ask_homes(self, wanted: bool) -> None:
        """Let them say where everybody is, or no more."""
        for worker in self._subscribing:
            if worker is not None:
                worker.order(HOMES if wanted else COUNTS)

    def homes(self) -> dict[str, str]:
        """By subscriber the edge that it has been told of; empty for those that are not served."""
        self.hear()
        found: dict[str, str] = {}
        for worker in self._subscribing:
            if worker is not None:
                found |= worker.latest.get("homes", {"a process that has not said where its subscribers are": ""})
        return found

    def sum(self, key: str) -> int:
        return sum(int(worker.latest.get(key, 0)) for worker in self._workers())

    def _workers(self) -> list[Worker]:
        return [worker for worker in [*self._subscribing, self._publishing] if worker is not None]

    def _is_served(self) -> bool:
        self.hear()
        served = sum(int(w.latest.get("subscribers", 0)) for w in self._subscribing if w is not None)
        unsettled = sum(int(w.latest.get("unsettled", 1)) for w in self._subscribing if w is not None)
        return served == self._scenario.subscribers and not unsettled

    def _job(self, journal: Path, part: int, of: int, before: tuple[str, ...] = ()) -> Job:
        entry = self._entry
        return Job(
            scenario=self._scenario, endpoint=entry.endpoint, head_key=entry.head_key,
            own_secret_key=entry.own_secret_key, journal=str(journal), part=part, of=of, wide=self._wide, before=before,
        )  # fmt: skip


def _says_something(journal: Path) -> bool:
    """A process may have been killed before it had written anything."""
    return journal.exists() and journal.stat().st_size > 0
