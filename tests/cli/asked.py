"""A fleet that seems to run, without a process: its lock is held here, and a test plays the mediator in its store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

from plimsoll.cli import local_backend
from plimsoll.core.spec import SourceDocument, edge_brokers, parse
from plimsoll.local.runtime import prepare_store
from plimsoll.local.storage.fleet_folder import FleetFolder, FleetLock
from plimsoll.local.storage.object_store import ObjectStore
from plimsoll.local.timestamps import rfc3339_now

KIND = "LoadBalancingSession"
TEXT = """
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: small}
spec: {memory: 64Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec: {head: {profile: small}, edges: [{name: e, profile: small, replicas: 2}], neighbors: [{name: west}]}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: west}
spec: {head: {profile: small}, edges: [{name: w, profile: small}]}
"""


def fleet(text: str = TEXT) -> Iterator[FleetFolder]:
    """A fleet `default` with edges e-0, e-1 and w, whose lock this process holds."""
    folder = FleetFolder.of("default")
    folder.make()
    resources = parse([SourceDocument(item) for item in yaml.safe_load_all(text)])
    prepare_store(folder, resources)
    with ObjectStore(folder.store) as store:
        for edge in edge_brokers(resources):
            store.apply(edge.mapping(), rfc3339_now())
    with FleetLock(folder):
        yield folder


def item(folder: FleetFolder, name: str, kind: str = KIND) -> dict[str, Any]:
    with ObjectStore(folder.store) as store:
        return store.get(kind, name)


def sessions(folder: FleetFolder) -> dict[str, dict[str, Any]]:
    """Specifications of all sessions, by name."""
    with ObjectStore(folder.store) as store:
        return {one["metadata"]["name"]: one["spec"] for one in store.objects(KIND)[1]}


def becomes(folder: FleetFolder, name: str, **status: Any) -> None:
    """What the mediator writes; it has seen the object as it is now."""
    with ObjectStore(folder.store) as store:
        generation = store.get(KIND, name)["metadata"]["generation"]
        store.set_status(KIND, name, lambda old: {"observedGeneration": generation, **status})


def ended(phase: str, succeeded: bool, **more: Any) -> Mapping[str, Any]:
    """The status of a session that has ended."""
    condition = {"type": "Succeeded", "status": "True" if succeeded else "False"}
    return {"phase": phase, "reason": phase, "message": "so it is", "conditions": [condition], "endedAt": "now", **more}


class Clock:
    """Time for a waiting command: each sleep takes the next step of a script; a sleep without a step fails."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps = list(steps)
        self._now = 100.0

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        assert seconds == local_backend.SESSION_POLL_SECONDS
        self._now += seconds
        assert self._steps, "it waits for more than there is"
        self._steps.pop(0)()
