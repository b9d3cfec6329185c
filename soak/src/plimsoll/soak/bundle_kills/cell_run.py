"""One cell: a fleet with bundles under traffic, a change of a bundle, a process killed at a step of it, and the audit.

A step is held by freezing the process that would end it, or by a plan that waits for approval, so that it does not
depend on timing. What is killed is brought back by the fleet's supervisor.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from plimsoll.core.policies.model.hash_ranges import HashRange
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.spec import Resources, parse
from plimsoll.core.verify import AuditVerdict, LawAudit, Observation
from plimsoll.core.verify import observations as seen
from plimsoll.demo.fleet import DemoFleet
from plimsoll.demo.journal import read_journal
from plimsoll.demo.leftovers import empty_report_folder
from plimsoll.demo.live_display import LiveDisplay
from plimsoll.demo.topic_workload import plan_topics
from plimsoll.demo.traffic import DemoTraffic
from plimsoll.demo.workers.worker_process import WorkerProcess
from plimsoll.demo.workload import DemoScenario
from plimsoll.local import manifests, store_edits
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectMissingError, ObjectStore
from plimsoll.soak.bundle_kills import bundle_watch
from plimsoll.soak.bundle_kills.cells import BundleKillCell, BundleKillResult, Change

CLUSTER, HEAD, FLEET = "topics", "topics-head", "bundle-kills"
SESSION = "change"
INITIAL = 2
SCENARIO = DemoScenario(
    seconds=300.0, publishers=12, subscribers=12, seed=5, join_from=0.0, join_to=0.002, topics=12,
    topic_rate_per_second=120.0,
)  # fmt: skip
STEP_SECONDS = 30.0
END_SECONDS = 90.0
WATCH_SECONDS = 6.0
"""After this time the connections to brokers are made again: one that was killed may report to the supervisor alone."""
LOOK_SECONDS = 0.01
QUIET_LOOKS = 8
"""Ranges and owners count as right once they were right at this number of looks in a row, four a second."""

MANIFEST = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {{name: bundle-kills}}
spec:
  timeScalePercent: 50
  telemetry: {{reportInterval: 1s}}
  defaults:
    timing: {{reattachWithin: 40s, heartbeat: 4s, deadAfter: 20s, progress: 1s}}
    subscribers: {{blockFor: 2m}}
    policy:
      type: Pulsar
      detection: {{interval: 2s, stabilizeFor: 2s}}
      pulsar:
        topicAttribute: topic
        interval: 2s
        bundles: {{initial: {initial}}}
        split: {{auto: false}}
        shedding: {{strategy: None}}
        unload: {unload}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {{name: small}}
spec: {{cpu: "1", memory: 256Mi}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {{name: topics}}
spec:
  head: {{profile: small}}
  edges: [{{name: e, replicas: 3, profile: small}}]
"""


class BundleKillError(RuntimeError):
    """The step was not reached."""


def fleet_of(change: Change) -> Resources:
    """The fleet of a cell: three edges, two bundles, and no change but that of the cell."""
    text = MANIFEST.format(initial=INITIAL, unload="Lookup" if change == "lookup" else "Transfer")
    return parse(manifests.parse_text(text, "<bundle kills>"))


def unit_count(scenario: DemoScenario) -> int:
    """The units of all subscribers."""
    return sum(len({topic_hash(topic) for topic in one.topics}) for one in plan_topics(scenario).subscribers)


class BundleKillRun:
    """One cell, from the start of its fleet to the audit. Its journals stay in `folder`."""

    def __init__(self, cell: BundleKillCell, folder: Path) -> None:
        self._cell, self._folder = cell, folder
        self._state = FleetFolder(folder / "fleet" / FLEET)
        self._frozen: dict[str, int] = {}
        self._ends: list[Observation] = []
        self._hit_at = 0.0
        self._lives: dict[str, int] = {}
        self._bundle = HashRange(0, 1)
        self._owner = self._target = ""

    def run(self) -> BundleKillResult:
        """Run the cell; everything that it started has ended when it returns."""
        empty_report_folder(self._folder, self._state, ())
        self._fleet = DemoFleet(self._state, fleet_of(self._cell.change))
        is_orderly = False
        live = LiveDisplay(lambda text: None, terminal=False, interval_seconds=3600.0)
        try:
            self._fleet.await_ready()
            with _HeldTraffic(SCENARIO, self._fleet, self._folder, 1, live) as self._traffic:
                self._traffic.during = self._play
                notes = [*self._traffic.run(), *self._problems]
            result = self._result(self._audit(), notes)
            is_orderly = True
        finally:
            self._thaw()
            ended = self._fleet.stop(hurry=not is_orderly)
            self._fleet.keep_logs(self._folder / "logs")
        result.broken += ended
        return result

    # -- the course

    def _play(self) -> None:
        self._await(lambda: self._is_served(), "all units are served")
        self._choose()
        self._reach()
        self._hit()
        self._thaw()
        if self._cell.step == "planned":
            store_edits.approve_session(self._state, SESSION)
        self._problems = list(self._settle())

    def _choose(self) -> None:
        edges = self._edge_reports()
        self._bundle = bundle_watch.largest_bundle(edges)
        self._owner = bundle_watch.owners_of(self._head_report)[self._bundle.name]
        self._target = next(name for name in self._edges if name != self._owner)

    def _reach(self) -> None:
        """Bring the change to the step of the cell, and hold it there."""
        change, step = self._cell.change, self._cell.step
        if change == "split":
            self._freeze(["mediator"] if step == "requested" else [])
            self._request("Split", {})
            if step == "stored":
                self._await_stored()
                self._freeze([HEAD])
            self._await(lambda: self._is_split_at(step), f"the split is {step}")
            return
        self._request("Unload", {"target": {"name": self._target}, "approval": {"policy": "Manual"}})
        self._await(lambda: self._session().get("phase") == "Planned", "the session has a plan")
        if step == "planned":
            return
        self._freeze({"assigned": [self._target], "released": [self._owner]}.get(step, []))
        store_edits.approve_session(self._state, SESSION)
        self._await(lambda: self._is_unloaded_at(step), f"the bundle is {step}")

    def _is_split_at(self, step: str) -> bool:
        stored = bundle_watch.stored_ranges(self._object("BrokerCluster", CLUSTER), INITIAL)
        match step:
            case "requested":
                return True
            case "stored":
                return len(stored) > INITIAL
            case "told":
                return int(self._head_report.get("bundles", 0)) > INITIAL
            case _:
                return self._session().get("phase") == "Succeeded"

    def _is_unloaded_at(self, step: str) -> bool:
        owner = bundle_watch.owners_of(self._head_report).get(self._bundle.name, "")
        match step:
            case "assigned":
                return owner == self._target
            case "released":
                return owner != self._owner
            case _:
                return self._session().get("phase") in ("Stabilizing", "Succeeded")

    def _request(self, action: str, more: dict[str, Any]) -> None:
        spec = {
            "scope": "Local", "source": {"name": CLUSTER}, "action": action, "mode": "Execute",
            "select": {"bundles": [self._bundle.name]}, "limits": {"moveInterval": "0s"}, "deadline": "40s", **more,
        }  # fmt: skip
        store_edits.create_session(self._state, SESSION, spec)

    def _hit(self) -> None:
        """Kill the victim, if there is one."""
        self._hit_at = time.monotonic()
        names = {"mediator": "mediator", "head": HEAD, "owner": self._owner, "target": self._target}
        victim = self._cell.victim
        if victim is None:
            return
        if victim == "head":
            self._ends.append(seen.HeadEndObserved(HEAD, int(self._head_report["epoch"]), time.monotonic()))
        if victim != "mediator":
            report = self._traffic.series.latest[names[victim]]
            self._lives = {names[victim]: int(report["epoch"])}
        os.kill(self._pid(names[victim]), signal.SIGKILL)
        self._frozen.pop(names[victim], None)

    def _settle(self) -> Iterator[str]:
        """Wait until ranges and owners are right, and stay so; what is wrong when time is up."""
        quiet, deadline, found = 0, time.monotonic() + END_SECONDS, ["not looked at"]
        watch_at = time.monotonic() + WATCH_SECONDS
        while quiet < QUIET_LOOKS and time.monotonic() < deadline:
            self._traffic.look()
            found = list(self._faults())
            if found and time.monotonic() > watch_at:
                watch_at += WATCH_SECONDS
                self._fleet.watch()
            quiet = 0 if found else quiet + 1
        self._settled_at = time.monotonic()
        yield from found

    def _faults(self) -> Iterator[str]:
        for name, epoch in self._lives.items():
            if int(self._traffic.series.latest[name]["epoch"]) <= epoch:
                yield f"{name} has not reported again"
        stored = bundle_watch.stored_ranges(self._object("BrokerCluster", CLUSTER), INITIAL)
        sessions = [one.get("status", {}) for one in self._fleet.sessions()]
        waiting = sum("endedAt" not in status for status in sessions)
        units = unit_count(SCENARIO)
        yield from bundle_watch.faults(self._head_report, self._edge_reports(), stored, units, waiting)

    # -- what is known

    @property
    def _edges(self) -> list[str]:
        return sorted(name for name, broker in self._fleet.brokers.items() if broker.role == "edge")

    @property
    def _head_report(self) -> bundle_watch.Report:
        return self._traffic.series.latest.get(HEAD, {})

    def _edge_reports(self) -> list[bundle_watch.Report]:
        latest = self._traffic.series.latest
        return [latest[name] for name in self._edges if name in latest]

    def _is_served(self) -> bool:
        stored = bundle_watch.stored_ranges(self._object("BrokerCluster", CLUSTER), INITIAL)
        found = bundle_watch.faults(self._head_report, self._edge_reports(), stored, unit_count(SCENARIO), 0)
        return not any(True for _ in found)

    def _object(self, kind: str, name: str) -> dict[str, Any]:
        with ObjectStore(self._state.store) as store:
            try:
                return store.get(kind, name)
            except ObjectMissingError:
                return {}

    def _session(self) -> dict[str, Any]:
        found: dict[str, Any] = self._object("LoadBalancingSession", SESSION).get("status", {})
        return found

    def _pid(self, name: str) -> int:
        if name == "mediator":
            return int(self._object("BrokerFleet", FLEET)["status"]["mediator"]["pid"])
        pid = self._fleet.pid(name)
        if pid is None:
            raise BundleKillError(f"{self._cell}: {name} has no process")
        return pid

    def _freeze(self, names: list[str]) -> None:
        for name in names:
            self._frozen[name] = self._pid(name)
            os.kill(self._frozen[name], signal.SIGSTOP)

    def _thaw(self) -> None:
        while self._frozen:
            with contextlib.suppress(ProcessLookupError):  # it was killed
                os.kill(self._frozen.popitem()[1], signal.SIGCONT)

    def _await_stored(self) -> None:
        """Look often: the head is told within a second of this."""
        deadline = time.monotonic() + STEP_SECONDS
        while not self._is_split_at("stored") and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)

    def _await(self, what: Callable[[], bool], meaning: str) -> None:
        deadline = time.monotonic() + STEP_SECONDS
        while not what():
            if time.monotonic() > deadline:
                raise BundleKillError(f"{self._cell}: not within {STEP_SECONDS:g} s: {meaning}; {self._session()}")
            self._traffic.look()

    # -- the result

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

    def _result(self, verdict: AuditVerdict, notes: list[str]) -> BundleKillResult:
        status, head = self._session(), self._head_report
        owner = bundle_watch.owners_of(head)
        first = next((name for name in owner if HashRange.of_name(name).low == self._bundle.low), "")
        at = {self._owner: "owner", self._target: "target"}.get(owner.get(first, ""), "another edge")
        bundles = int(head.get("bundles", 0))
        broken = [*notes, *map(str, verdict.violations[:10]), *self._contradictions(status, at, bundles)]
        if verdict.gaps and self._cell.victim != "head":
            broken.append(f"{verdict.gaps} gaps were reported")
        if not verdict.expected:
            broken.append("no delivery was expected, so nothing was tested")
        return BundleKillResult(
            cell=self._cell, phase=str(status.get("phase", "")), reason=str(status.get("reason", "")),
            moved=int(status.get("progress", {}).get("moved", 0)), bundles=bundles, at=at,
            settled_seconds=self._settled_at - self._hit_at, delivered=verdict.delivered, lost=verdict.lost,
            duplicated=verdict.duplicated, reordered=verdict.reordered, gaps=verdict.gaps, excused=verdict.excused,
            broken=broken,
        )  # fmt: skip

    def _contradictions(self, status: dict[str, Any], at: str, bundles: int) -> Iterator[str]:
        """What a session says that is not so."""
        is_done, cell = status.get("phase") == "Succeeded", self._cell
        if cell.change == "split" and is_done != (bundles > INITIAL):
            yield f"the split is {status.get('phase')}, and there are {bundles} bundles"
        if cell.change == "transfer" and is_done and cell.victim != "target" and at != "target":
            yield f"the session has succeeded, and the bundle is at the {at}"


class _HeldTraffic(DemoTraffic):
    """Traffic that lasts as long as its middle, `during`, which a cell plays."""

    during: Callable[[], None]
    _is_publishing = True

    def look(self) -> None:
        """A quarter of a second."""
        self._look()

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
