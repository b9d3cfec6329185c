"""One cell: a fleet with bundles under traffic, a change of a bundle, a process killed at a step of it, and the audit.

A step is held by freezing the process that would end it, or by a plan that waits for approval, so that it does not
depend on timing. What is killed is brought back by the fleet's supervisor.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plimsoll.core.policies.model.hash_ranges import HashRange
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.spec import Resources, parse
from plimsoll.core.verify import AuditVerdict
from plimsoll.demo.topic_workload import plan_topics
from plimsoll.demo.workload import DemoScenario
from plimsoll.local import manifests, store_edits
from plimsoll.soak.bundle_kills import bundle_watch
from plimsoll.soak.bundle_kills.cells import BundleKillCell, BundleKillResult, Change
from plimsoll.soak.supervised_kill import SESSION, STEP_SECONDS, SupervisedKill

CLUSTER, HEAD, FLEET = "topics", "topics-head", "bundle-kills"
INITIAL = 2
SCENARIO = DemoScenario(
    seconds=300.0, publishers=12, subscribers=12, seed=5, join_from=0.0, join_to=0.002, topics=12,
    topic_rate_per_second=120.0,
)  # fmt: skip
LOOK_SECONDS = 0.01

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


def fleet_of(change: Change) -> Resources:
    """The fleet of a cell: three edges, two bundles, and no change but that of the cell."""
    text = MANIFEST.format(initial=INITIAL, unload="Lookup" if change == "lookup" else "Transfer")
    return parse(manifests.parse_text(text, "<bundle kills>"))


def unit_count(scenario: DemoScenario) -> int:
    """The units of all subscribers."""
    return sum(len({topic_hash(topic) for topic in one.topics}) for one in plan_topics(scenario).subscribers)


class BundleKillRun(SupervisedKill):
    """One cell, from the start of its fleet to the audit. Its journals stay in `folder`."""

    def __init__(self, cell: BundleKillCell, folder: Path) -> None:
        super().__init__(cell, folder, FLEET, SCENARIO)
        self._cell = cell
        self._bundle = HashRange(0, 1)
        self._owner = self._target = ""

    def run(self) -> BundleKillResult:
        """Run the cell; everything that it started has ended when it returns."""
        return self.run_fleet(fleet_of(self._cell.change), self._result)

    # -- the course

    def play(self) -> None:
        """Bring the change to its step, kill, and wait until ranges and owners are right."""
        self._await(lambda: self._is_served(), "all units are served")
        self._choose()
        self._reach()
        self._hit()
        self._thaw()
        if self._cell.step == "planned":
            store_edits.approve_session(self._state, SESSION)
        self._settle()

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
        self._kill(names[victim])

    def faults(self) -> Iterator[str]:
        """What head, store and edges do not agree in."""
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

    def _await_stored(self) -> None:
        """Look often: the head is told within a second of this."""
        deadline = time.monotonic() + STEP_SECONDS
        while not self._is_split_at("stored") and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)

    # -- the result

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
