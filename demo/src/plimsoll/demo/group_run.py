"""A fleet with a consumer group under traffic: consumers join, burn processor time, leave and are killed.

Everything started here has ended when it returns, even after an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from plimsoll.core.policies.consumer_groups.reported import reported_groups
from plimsoll.core.spec import Resources
from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.slice_laws import GivenItem, judge_slices
from plimsoll.demo.analysis.group_claims import FAST, LATE, SLOW, GroupFigures, GroupLook, GroupSteps
from plimsoll.demo.fleet import DemoFleet
from plimsoll.demo.leftovers import empty_report_folder
from plimsoll.demo.live_display import LiveDisplay
from plimsoll.demo.workers.consumer_worker import BURN, ConsumerTask
from plimsoll.demo.workers.reading_worker import PUBLISHER, ReadingTask
from plimsoll.demo.workers.worker_process import WorkerError, WorkerProcess
from plimsoll.local.storage.fleet_folder import FleetFolder

CONSUMER_MODULE: Final = "plimsoll.demo.workers.consumer_worker"
PUBLISHER_MODULE: Final = "plimsoll.demo.workers.reading_worker"
RATE_PER_SECOND: Final = 200.0
WORK_SECONDS: Final = {FAST: 0.002, SLOW: 0.003, LATE: 0.002}
READY_SECONDS: Final = 60.0
DRAIN_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.25


@dataclass(frozen=True)
class GroupRun:
    """A run that has ended. `published`: how many readings were accepted; `faults`: what should not have happened."""

    figures: GroupFigures
    published: int
    faults: list[str]


@dataclass
class _RunningGroup:
    """What runs: the fleet, the publisher, and consumers by name."""

    fleet: DemoFleet
    folder: Path
    group: str
    count: int
    live: LiveDisplay
    consumers: dict[str, WorkerProcess] = field(default_factory=dict)
    publisher: WorkerProcess | None = None
    looks: list[GroupLook] = field(default_factory=list)
    start: float = 0.0
    left_at: float | None = None
    ending: set[str] = field(default_factory=set)
    reported: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.start

    # -- processes

    def consume(self, name: str) -> None:
        entry = self.fleet.entry()
        task = ConsumerTask(
            journal=str(self.folder / "journals" / f"{name}.jsonl"), endpoint=entry.endpoint, head_key=entry.head_key,
            own_secret_key=entry.own_secret_key, group=self.group, name=name, work_seconds=WORK_SECONDS[name],
        )  # fmt: skip
        self.consumers[name] = WorkerProcess(CONSUMER_MODULE, task, self.folder / "logs" / f"{name}.log")

    def publish(self) -> None:
        entry = self.fleet.entry()
        task = ReadingTask(
            journal="", endpoint=entry.endpoint, head_key=entry.head_key, own_secret_key=entry.own_secret_key,
            rate_per_second=RATE_PER_SECOND, sensors=10 * self.count,
        )  # fmt: skip
        self.publisher = WorkerProcess(PUBLISHER_MODULE, task, self.folder / "logs" / "publisher.log")

    def await_ready(self, names: set[str]) -> None:
        """Wait until these consumers are members and together have all slices, and the publisher is connected."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            self.look()
            having = [int(each.latest.get("slices", 0)) for name, each in self.consumers.items() if name in names]
            is_publishing = self.publisher is not None and bool(self.publisher.latest)
            if is_publishing and len(having) == len(names) and all(having) and sum(having) == self.count:
                return
            if time.monotonic() > deadline:
                raise WorkerError(f"the consumers were not ready after {READY_SECONDS:g} s; they have {having} slices")

    # -- looks

    def look(self) -> None:
        """Read what all say, for a quarter of a second."""
        for report in self.fleet.reports(LOOK_SECONDS):
            self.reported = reported_groups(report).get(self.group, self.reported)
        if self.publisher is not None:
            self.publisher.read_report()
        for name, each in list(self.consumers.items()):
            if name in self.ending:
                self._await_left(name, each)
            else:
                each.read_report()
        consumers = self.reported.get("consumers", {})
        self.looks.append(
            GroupLook(
                round(self.seconds, 3),
                {name: int(each.latest.get("slices", 0)) for name, each in self.consumers.items()},
                {name: float(consumers.get(name, {}).get("items_per_second", 0.0)) for name in self.consumers},
                int(self.reported.get("backlog", 0)),
                int(self.reported.get("counts", {}).get("moved", 0)),
            )
        )

    def _await_left(self, name: str, worker: WorkerProcess) -> None:
        """Note when one that leaves has ended."""
        try:
            worker.await_end(0.0)
        except WorkerError:
            return  # it still gives up slices, and `end` waits for it
        self.left_at = self.seconds
        del self.consumers[name]
        self.live.say(f"{self.left_at:5.1f} s: {name} has left")

    def leave(self, name: str) -> None:
        self.ending.add(name)
        self.consumers[name].finish()

    def kill(self, name: str) -> None:
        self.consumers.pop(name).kill()

    # -- the end

    def drain(self) -> int:
        """Let the publisher finish, and consumers process the rest; returns how many were accepted."""
        publisher, self.publisher = self.publisher, None
        if publisher is None:
            raise AssertionError("a run has a publisher")
        publisher.finish()
        publisher.await_end(DRAIN_SECONDS)
        accepted = int(publisher.latest["accepted"])
        deadline = time.monotonic() + DRAIN_SECONDS
        while len(self.finished()) < accepted and time.monotonic() < deadline:
            self.look()
        for each in self.consumers.values():
            each.finish()
        for each in self.consumers.values():
            each.await_end(DRAIN_SECONDS)
        self.consumers.clear()
        return accepted

    def finished(self) -> set[int]:
        return {each.item for each in self.given() if each.until is not None}

    def given(self) -> list[GivenItem]:
        """All that consumers have written down."""
        found = []
        for path in sorted((self.folder / "journals").glob("*.jsonl")):
            for line in path.read_bytes().splitlines(keepends=True):
                if line.endswith(b"\n") and isinstance(one := seen.decode_line(line), seen.SliceItemObserved):
                    found.append(
                        GivenItem(
                            one.slice, one.publication[0], one.publication[2], one.consumer, one.at, one.until,
                            one.is_redelivered,
                        )
                    )  # fmt: skip
        return found

    def end(self) -> None:
        for each in [*self.consumers.values(), *([self.publisher] if self.publisher is not None else [])]:
            each.kill()


def run_group(seconds: float, resources: Resources, folder: Path, live: LiveDisplay, reports: list[str]) -> GroupRun:
    """The whole run."""
    (cluster,) = resources.clusters.values()
    (group,) = cluster.spec.consumer_groups
    state = FleetFolder(folder / "fleet" / resources.fleet.name)
    empty_report_folder(folder, state, reports)
    fleet = DemoFleet(state, resources)
    orderly = False
    stage = _RunningGroup(fleet, folder, group.name, group.slices.count, live)
    times = GroupSteps.of(seconds)
    try:
        fleet.await_ready()
        live.say(f"{len(fleet.brokers)} brokers are ready")
        accepted = _play(stage, times)
        faults = fleet.deaths()
        orderly = True
    finally:
        stage.end()
        faults_at_end = fleet.stop(hurry=not orderly)
        fleet.keep_logs(folder / "logs")
    given = [_since(each, stage.start) for each in stage.given()]
    verdict = judge_slices(given, {PUBLISHER: range(1, accepted + 1)})
    figures = GroupFigures(verdict, given, stage.looks, times, stage.count, stage.left_at)
    return GroupRun(figures, accepted, [*faults, *faults_at_end])


def _play(stage: _RunningGroup, times: GroupSteps) -> int:
    """All steps in their order; returns how many readings were accepted."""
    stage.consume(FAST)
    stage.consume(SLOW)
    stage.publish()
    stage.await_ready({FAST, SLOW})
    stage.looks.clear()
    stage.start = time.monotonic()
    if stage.publisher is not None:
        stage.publisher.begin(stage.start)
    steps: list[tuple[float, str, Callable[[], None]]] = [
        (times.burn, f"{SLOW} takes four times as long for each item", lambda: stage.consumers[SLOW].order(BURN)),
        (times.join, f"{LATE} joins", lambda: stage.consume(LATE)),
        (times.leave, f"{SLOW} is to leave", lambda: stage.leave(SLOW)),
        (times.kill, f"{LATE} is killed", lambda: stage.kill(LATE)),
        (times.end, "no more readings", lambda: None),
    ]
    for at, text, step in steps:
        while stage.seconds < at:
            stage.look()
        stage.live.say(f"{stage.seconds:5.1f} s: {text}; slices: {dict(stage.looks[-1].slices)}")
        step()
    return stage.drain()


def _since(each: GivenItem, start: float) -> GivenItem:
    """The same by seconds of the traffic."""
    until = None if each.until is None else each.until - start
    return GivenItem(
        each.slice, each.publisher, each.item, each.consumer, each.at - start, until, each.is_redelivered
    )  # fmt: skip
