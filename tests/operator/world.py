"""A namespace in memory for pure functions: changes are carried out, and controllers behave as those of Kubernetes.

It is no substitute for an API server: what one refuses or adds is tested against a real one.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import yaml

from plimsoll.core.spec.usable import Content, usable_fleet
from plimsoll.mediator import fleet_resources as asked
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref, is_leaving, owner, ref
from plimsoll.operator.reconcile.desired import DesiredFleet, DesiredInputs, desired_fleet, key_identities, key_owner
from plimsoll.operator.reconcile.drain import ReconcileContext, ReportedSubscribers
from plimsoll.operator.reconcile.observed import ObservedObjects, with_departed_edges
from plimsoll.operator.reconcile.plan import plan_steps
from plimsoll.operator.reconcile.steps import Apply, Delete, Evacuate, Patch, ReconcileStep, Restart
from plimsoll.operator.security import keys
from plimsoll.operator.settings import OperatorSettings

FLEET = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: stocks}
spec:
  security:
    clients:
    - {name: app}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: small}
spec: {cpu: 250m, memory: 64Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: large}
spec: {cpu: "1", memory: 128Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: small}
  edges:
  - {name: edge, profile: small, replicas: 3}
"""
SETTINGS = OperatorSettings()
_uids = itertools.count(1)


class World:
    """The objects of one namespace. `now` is in seconds since 1970, and is advanced by tests."""

    def __init__(self, text: str = FLEET, settings: OperatorSettings = SETTINGS) -> None:
        self.objects: dict[Ref, Object] = {}
        self.settings, self.now = settings, 1_800_000_000.0
        self.nodes: dict[str, Object] | None = None
        self.ready = True
        self.mediating_seconds = float("inf")
        self.before: list[Content] = []
        self.serves: dict[str, ReportedSubscribers] | None = None
        for item in yaml.safe_load_all(text):
            self.put(item)

    # -- objects

    @property
    def time(self) -> str:
        return datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def put(self, item: Object) -> Object:
        """Make or replace an object, as an API server would keep it."""
        item = copy.deepcopy(item)
        old = self.objects.get(ref(item))
        metadata = item["metadata"]
        metadata.setdefault("namespace", "ns")
        if old is None:
            metadata |= {"uid": f"{next(_uids):08x}-1111", "creationTimestamp": self.time, "generation": 1}
        else:
            kept = {key: old["metadata"][key] for key in ("uid", "creationTimestamp") if key in old["metadata"]}
            changed = old.get("spec") != item.get("spec")
            metadata |= {**kept, "generation": old["metadata"]["generation"] + changed}
            if "data" in old and old["kind"] == "Secret":
                item["data"] = {**old["data"], **item["data"]}
            item.setdefault("status", old.get("status", {}))
        metadata["resourceVersion"] = str(next(_uids))
        self.objects[ref(item)] = item
        return item

    def spec(self, kind: str, name: str, **changed: Any) -> None:
        """Change fields of a specification, as a user does."""
        item = copy.deepcopy(self.objects[kind, name])
        item["spec"] = {**item["spec"], **changed}
        self.put(item)

    def annotate(self, kind: str, name: str, **annotations: str) -> None:
        item = copy.deepcopy(self.objects[kind, name])
        item["metadata"]["annotations"] = {**item["metadata"].get("annotations", {}), **annotations}
        self.put(item)

    def delete(self, key: Ref) -> None:
        """Request a deletion: finalizers delay it, pods take a moment, and owned objects are deleted with it."""
        item = self.objects.get(key)
        if item is None:
            return
        item["metadata"].setdefault("deletionTimestamp", self.time)
        if not item["metadata"].get("finalizers") and item["kind"] != "Pod":
            self._gone(key)

    def _gone(self, key: Ref) -> None:
        gone = self.objects.pop(key)
        for other, item in list(self.objects.items()):
            owners = [each["uid"] for each in item["metadata"].get("ownerReferences", [])]
            if gone["metadata"]["uid"] in owners:
                self.delete(other)

    def of(self, kind: str) -> list[str]:
        return sorted(name for known, name in self.objects if known == kind)

    # -- what controllers do

    def controllers(self) -> None:
        """StatefulSets get their pods, pods become ready, and pods that were deleted end."""
        for key in [key for key, item in self.objects.items() if key[0] == "Pod" and is_leaving(item)]:
            self._gone(key)
        for key, item in list(self.objects.items()):
            if key[0] != "StatefulSet" or is_leaving(item):
                continue
            item["status"] = {"observedGeneration": item["metadata"]["generation"]}
            replicas = item["spec"]["replicas"]
            if replicas == 1 and ("Pod", f"{key[1]}-1") in self.objects:
                self.delete(("Pod", f"{key[1]}-1"))
            for name in (f"{key[1]}-{number}" for number in range(replicas)):
                if ("Pod", name) in self.objects:
                    continue
                template = copy.deepcopy(item["spec"]["template"])
                self.put({
                    "apiVersion": "v1", "kind": "Pod", "spec": {**template["spec"], "nodeName": "n1"},
                    "metadata": {**template["metadata"], "name": name, "ownerReferences": [owner(item)]},
                    "status": self.pod_status(ready=self.ready),
                })  # fmt: skip

    def pod_status(self, *, ready: bool, waiting: str = "") -> Object:
        state = {"waiting": {"reason": waiting, "message": "it does not run"}} if waiting else {"running": {}}
        ended = {"type": "Ready", "status": str(ready), "lastTransitionTime": self.time}
        return {"conditions": [ended], "containerStatuses": [{"name": names.CONTAINER, "state": state}]}

    def set_pod(self, broker: str, *, ready: bool, waiting: str = "") -> None:
        self.objects["Pod", f"{broker}-0"]["status"] = self.pod_status(ready=ready, waiting=waiting)

    def sessions(self) -> list[str]:
        return [
            name for name in self.of("LoadBalancingSession")
            if "endedAt" not in self.objects["LoadBalancingSession", name].get("status", {})
        ]  # fmt: skip

    def end_session(self, name: str, phase: str = "Succeeded") -> None:
        self.objects["LoadBalancingSession", name]["status"] = {"phase": phase, "endedAt": self.time}

    # -- what the operator does

    def observed(self) -> ObservedObjects:
        return ObservedObjects(with_departed_edges(copy.deepcopy(self.objects)), self.nodes)

    def desired(self) -> DesiredFleet:
        custom = [item for item in self.objects.values() if item["kind"] in asked.FLEET_KINDS]
        taken = usable_fleet((item for item in custom if not is_leaving(item)), self.before)
        resources = taken.resources or asked.fleet_resources(custom)
        held: dict[str, keys.StoredKeys] = {}
        for name, owned_by, labels in key_identities(resources, self.objects):
            if ("Secret", name) not in self.objects:
                self.put(keys.new_secret(name, labels, owner(key_owner(owned_by, self.objects)), "ns"))
            found = keys.read_keys(self.objects["Secret", name])
            assert found is not None
            held[name] = found
        held = {**keys.broker_keys(self.observed()), **held}
        known = DesiredInputs(
            namespace="ns", stored=self.observed().objects, keys=held, lingering=self.observed().brokers(), usable=taken
        )
        return desired_fleet(resources, known, self.settings)

    def look(self) -> list[ReconcileStep]:
        desired = self.desired()
        return plan_steps(desired, self.observed(), self.moment())

    def moment(self) -> ReconcileContext:
        return ReconcileContext(self.now, 1.0, self.mediating_seconds, self.serves)

    def carry_out(self, steps: Iterable[ReconcileStep]) -> None:
        for step in steps:
            match step:
                case Apply(item):
                    self.put(item)
                case Evacuate(_, session):
                    self.put(session)
                case Patch(item, patch):
                    self._patch(ref(item), patch)
                case Delete(item, _, grace):
                    self.delete(ref(item))
                    if grace == 0:
                        self._gone(ref(item))
                case Restart(_, pod):
                    self.delete(ref(pod))

    def _patch(self, key: Ref, patch: Mapping[str, Any]) -> None:
        item = copy.deepcopy(self.objects[key])
        for part, value in patch["metadata"].items():
            if part in ("annotations", "labels"):
                both = {**item["metadata"].get(part, {}), **value}
                item["metadata"][part] = {name: text for name, text in both.items() if text is not None}
            elif part in ("finalizers", "ownerReferences"):
                item["metadata"][part] = value
        self.put(item)
        if is_leaving(item) and not item["metadata"].get("finalizers"):
            self.objects[key]["metadata"]["deletionTimestamp"] = self.time
            self._gone(key)

    def round(self) -> list[ReconcileStep]:
        """One reconciliation, its steps, and the controllers' reaction."""
        steps = self.look()
        self.carry_out(steps)
        self.controllers()
        self.now += 1
        return steps

    def settle(self, rounds: int = 60) -> None:
        """Until there is nothing to do; sessions end as soon as they are created."""
        for _ in range(rounds):
            for name in self.sessions():
                self.end_session(name)
            if not self.round():
                return
        raise AssertionError(f"not settled after {rounds} rounds: {self.look()}")
