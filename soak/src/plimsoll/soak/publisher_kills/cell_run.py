"""One cell: three clusters in a chain under traffic, a drain of the first head, and a process hit at a step of it."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from plimsoll.core.spec import Resources, parse
from plimsoll.core.verify import AuditVerdict
from plimsoll.core.verify import observations as seen
from plimsoll.demo.journal import read_journal
from plimsoll.demo.live_display import LiveDisplay
from plimsoll.demo.workers.worker_process import PUBLISHER_MODULE, SUBSCRIBER_MODULE, WorkerProcess, client_task
from plimsoll.demo.workload import DemoScenario
from plimsoll.local import manifests, store_edits
from plimsoll.soak.publisher_kills.cells import FROZEN_SECONDS, PublisherKillCell, PublisherKillResult
from plimsoll.soak.supervised_kill import SESSION, HeldTraffic, SupervisedKill

FLEET = "publisher-kills"
OLD, BETWEEN, NEW = "east-head", "middle-head", "west-head"
HEADS = (OLD, BETWEEN, NEW)
EDGE = "middle-0"
PUBLISHERS = 12
SCENARIO = DemoScenario(
    seconds=300.0, publishers=PUBLISHERS, subscribers=12, seed=5, join_from=0.0, join_to=0.002, topics=PUBLISHERS,
    topic_rate_per_second=240.0,
)  # fmt: skip

MANIFEST = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: publisher-kills}
spec:
  timeScalePercent: 50
  telemetry: {reportInterval: 1s}
  defaults:
    timing: {reattachWithin: 40s, heartbeat: 4s, deadAfter: 20s, progress: 1s}
    subscribers: {blockFor: 2m}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: small}
spec: {cpu: "1", memory: 256Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: small}
  edges: [{name: east, replicas: 1, profile: small}]
  neighbors: [{name: middle}]
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: middle}
spec:
  head: {profile: small}
  edges: [{name: middle, replicas: 2, profile: small}]
  neighbors: [{name: west}]
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: west}
spec:
  head: {profile: small}
  edges: [{name: west, replicas: 1, profile: small}]
"""


def fleet() -> Resources:
    """Three clusters, whose heads are a chain."""
    return parse(manifests.parse_text(MANIFEST, "<publisher kills>"))


class SpreadTraffic(HeldTraffic):
    """Publishers at the old head, and subscribers in all three clusters."""

    def __enter__(self) -> Self:
        journals, logs = self._folder / "journals", self._folder / "logs"
        task = client_task(self._scenario, self._fleet.entry(OLD), journals / "publishing", 0, 1)
        self._publishing.append(WorkerProcess(PUBLISHER_MODULE, task, logs / "publishing.log"))
        for part, head in enumerate(HEADS):
            entry = self._fleet.entry(head)
            task = client_task(self._scenario, entry, journals / f"subscribing-{part}", part, len(HEADS))
            self._subscribing.append(WorkerProcess(SUBSCRIBER_MODULE, task, logs / f"subscribing-{part}.log"))
        return self


class PublisherKillRun(SupervisedKill):
    """One cell, from the start of its fleet to the audit. Its journals stay in `folder`."""

    def __init__(self, cell: PublisherKillCell, folder: Path) -> None:
        super().__init__(cell, folder, FLEET, SCENARIO, len(HEADS))
        self._cell = cell

    def run(self) -> PublisherKillResult:
        """Run the cell; everything that it started has ended when it returns."""
        self._ends.append(seen.HeadTreeObserved([(OLD, BETWEEN), (BETWEEN, NEW)]))
        return self.run_fleet(fleet(), self._result)

    def traffic(self, live: LiveDisplay) -> HeldTraffic:
        """Publishers at the old head, and subscribers everywhere."""
        return SpreadTraffic(self._scenario, self._fleet, self._folder, len(HEADS), live)

    # -- the course

    def play(self) -> None:
        """Bring the move to its step, hit, and wait until each publisher is at one head."""
        self._await(lambda: self._counts() == {OLD: PUBLISHERS}, "all publishers are at the old head")
        self._reach()
        self._hit_at = time.monotonic()
        self._hit()
        self._thaw()
        if self._cell.step == "planned":
            store_edits.approve_session(self._state, SESSION)
        if self._cell.victim == "publishers":
            self._wake_publishers()
        self._settle()
        self._at = self._counts()

    def _reach(self) -> None:
        store_edits.create_session(self._state, SESSION, {
            "scope": "Global", "source": {"name": "east"}, "target": {"name": "west"}, "action": "MovePublishers",
            "mode": "Execute", "select": {"sharePercent": 100}, "approval": {"policy": "Manual"}, "deadline": "60s",
        })  # fmt: skip
        self._await(lambda: self._session().get("phase") == "Planned", "the session has a plan")
        step = self._cell.step
        if step == "planned":
            return
        self._freeze({"asked": [NEW], "cut": [BETWEEN]}.get(step, []))
        store_edits.approve_session(self._state, SESSION)
        self._await(lambda: self._is_at(step), f"the move is {step}")

    def _is_at(self, step: str) -> bool:
        status = self._session()
        if step == "asked":
            return bool(status.get("batch", {}).get("state") == "preparing")
        if step == "cut":
            return bool(status.get("batch", {}).get("state") == "preparing" and not self._rates(OLD))
        return status.get("phase") in ("Stabilizing", "Succeeded")

    def _hit(self) -> None:
        """Kill the victim, or freeze it, if there is one."""
        names = {"mediator": "mediator", "old head": OLD, "new head": NEW, "head between": BETWEEN, "edge": EDGE}
        if self._cell.victim == "publishers":
            for pid in self._traffic.publishing_pids:
                os.kill(pid, signal.SIGSTOP)
        elif self._cell.victim is not None:
            self._kill(names[self._cell.victim])

    def _wake_publishers(self) -> None:
        until = self._hit_at + FROZEN_SECONDS
        while time.monotonic() < until:
            self._traffic.look()
        for pid in self._traffic.publishing_pids:
            os.kill(pid, signal.SIGCONT)

    def faults(self) -> Iterator[str]:
        """Publishers that are at no head or at several, and a session that goes on."""
        if "endedAt" not in self._session():
            yield "the session has not ended"
        at = Counter(name for head in HEADS for name in self._rates(head))
        if len(at) < PUBLISHERS:
            yield f"{PUBLISHERS - len(at)} publishers publish at no head"
        yield from (f"{name} publishes at {count} heads" for name, count in sorted(at.items()) if count > 1)

    # -- what is known

    def _rates(self, head: str) -> dict[str, float]:
        """What the head has accepted in its last report interval, by publisher."""
        report: Any = self._traffic.series.latest.get(head, {})
        return {name: rate for name, rate in report.get("publisher_rates", {}).items() if rate > 0}

    def _counts(self) -> dict[str, int]:
        return {head: len(names) for head in HEADS if (names := self._rates(head))}

    def _unknown(self) -> int:
        """Publications whose answer is not known."""
        publishers, _ = self._traffic.journals
        noted = (one for path in publishers for one in read_journal(path))
        return sum(isinstance(one, seen.AnswerObserved) and one.answer == "unknown" for one in noted)

    # -- the result

    def _result(self, verdict: AuditVerdict, notes: list[str]) -> PublisherKillResult:
        status, unknown = self._session(), self._unknown()
        moved = int(status.get("progress", {}).get("moved", 0))
        broken = [*notes, *map(str, verdict.violations[:10]), *self._contradictions(status, moved)]
        if not self._cell.may_gap and (verdict.gaps or unknown):
            broken.append(f"{verdict.gaps} gaps were reported, and {unknown} answers are unknown")
        if not verdict.expected:
            broken.append("no delivery was expected, so nothing was tested")
        roles = {OLD: "old head", BETWEEN: "head between", NEW: "new head"}
        at = {roles[head]: count for head, count in self._at.items()}
        return PublisherKillResult(
            cell=self._cell, phase=str(status.get("phase", "")), reason=str(status.get("reason", "")), moved=moved,
            at=at, settled_seconds=self._settled_at - self._hit_at,
            delivered=verdict.delivered, lost=verdict.lost, duplicated=verdict.duplicated, reordered=verdict.reordered,
            gaps=verdict.gaps, excused=verdict.excused, unknown=unknown, broken=broken,
        )  # fmt: skip

    def _contradictions(self, status: dict[str, Any], moved: int) -> Iterator[str]:
        """What the session says that is not so.

        Publishers of a new head that was killed may have gone home since; an old head that was killed has forgotten
        whom it had cut, so that nothing is known of those.
        """
        if self._cell.victim in ("old head", "new head"):
            return
        at = self._at.get(NEW, 0)
        if at != moved:
            yield f"the session says that {moved} have moved, and {at} are at the new head"
        if status.get("phase") == "Succeeded" and moved < PUBLISHERS:
            yield f"the session has succeeded, and has moved {moved} of {PUBLISHERS}"
