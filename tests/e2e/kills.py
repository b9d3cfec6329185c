"""A session, and a pod that is deleted without notice while the session is in a certain state.

Some states can be held: the queue by another session, negotiation by a cordon, a plan by its approval, draining by
pauses, the end by the time that loads take to settle. The others are over in a moment: a watch deletes the pod as soon
as it delivers one of them, and records the state that it saw. The steps in between are those of docs/kill-matrix.md,
one by one.
"""

from __future__ import annotations

import json
import os
import queue
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kubernetes import client, config, watch
from tests.e2e.cluster import ROOT, Cluster, Crowd, Object, manifest

from plimsoll.core.session.state import FINAL_PHASES, PHASES
from plimsoll.core.spec.kinds import GROUP

VICTIMS = ("operator", "source", "target")
STATES = tuple(phase for phase in PHASES if phase not in FINAL_PHASES)
CELLS = tuple((victim, state) for state in STATES for victim in VICTIMS)
HELD = frozenset({"Requested", "Negotiating", "Planned", "Draining", "Stabilizing"})
DEADLINE_SECONDS, RESUMED_SECONDS = 60, 30
MOVED = 20
"""Subscribers of a session."""
TRIES = 4
"""How many sessions may pass a state before the watch has delivered it."""
Cell = tuple[str, str]


def seed() -> int:
    """The seed of the drawn cells: as given, or else from the commit, or from the day."""
    if given := os.environ.get("PLIMSOLL_KILL_SEED"):
        return int(given)
    with suppress(FileNotFoundError, subprocess.CalledProcessError):  # no git, or no checkout
        command = ["git", "-C", str(ROOT), "rev-parse", "--short=7", "HEAD"]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout, 16)
    return int(datetime.now(UTC).strftime("%Y%m%d"))


def cells() -> tuple[Cell, ...]:
    """All if PLIMSOLL_KILLS is `all`; those that it names, as source-Draining; else one per victim, in drawn states."""
    given = os.environ.get("PLIMSOLL_KILLS", "")
    if given:
        return tuple(cell for cell in CELLS if given == "all" or "-".join(cell) in given.split(","))
    states = random.Random(seed()).sample(STATES, len(VICTIMS))
    return tuple(zip(VICTIMS, states, strict=True))


@dataclass(frozen=True)
class Kill:
    """The result of a cell. `seen`: the state in which the session was when its victim was deleted."""

    seen: str
    phase: str
    reason: str
    moved: int
    ended_after_seconds: float
    whole_after_seconds: float

    def __str__(self) -> str:
        return (
            f"struck in {self.seen}; {self.phase} ({self.reason}), {self.moved} moved, ended after "
            f"{self.ended_after_seconds:.1f} s; all well again after {self.whole_after_seconds:.1f} s"
        )


class Watching:
    """Deletes a pod as soon as a session is in a state, or beyond it; in a `with`."""

    def __init__(self, cluster: Cluster, session: str, state: str, pod: str) -> None:
        self._namespace, self._session, self._state, self._pod = cluster.namespace, session, state, pod
        self._seen: queue.Queue[str | BaseException] = queue.Queue()
        config.load_kube_config()
        self._core, self._watch = client.CoreV1Api(), watch.Watch()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watching:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.stop()

    def struck(self, seconds: float) -> str:
        """The state in which the session was; empty if it was over before anything was seen."""
        found = self._seen.get(timeout=seconds)
        if isinstance(found, BaseException):
            raise found
        return found

    def _run(self) -> None:
        try:
            self._seen.put(self._strike())
        except Exception as error:  # noqa: BLE001  # told to who waits
            self._seen.put(error)

    def _strike(self) -> str:
        events = self._watch.stream(
            client.CustomObjectsApi().list_namespaced_custom_object, GROUP, "v1alpha1", self._namespace,
            "loadbalancingsessions", field_selector=f"metadata.name={self._session}",
            timeout_seconds=2 * DEADLINE_SECONDS,
        )  # fmt: skip
        for event in events:
            phase = event["object"].get("status", {}).get("phase", "")
            if phase in FINAL_PHASES:
                return ""
            if phase and STATES.index(phase) >= STATES.index(self._state):
                self._core.delete_namespaced_pod(self._pod, self._namespace, grace_period_seconds=0)
                return str(phase)
        return ""


class Matrix:
    """One fleet under one set of applications, cell after cell."""

    def __init__(self, cluster: Cluster, crowd: Crowd) -> None:
        self.cluster, self.crowd = cluster, crowd
        self._number = self._gaps = 0

    def kill(self, victim: str, state: str) -> Kill:
        """Delete the pod, and wait for recovery: session over, pods ready, all served, and another session works."""
        for _ in range(TRIES):
            self._number += 1
            found = self._try(f"kill-{self._number}", victim, state)
            if found is not None:
                # A client may not have noticed yet that the edge behind an address is another one.
                self._session(f"next-{self._number}", *self._ends(), 3, retries=3)
                after = self.ended(f"next-{self._number}")
                reached = after["status"]["phase"], after["status"]["reason"]
                assert reached == ("Succeeded", "Moved"), self._told(after)
                return found
        raise AssertionError(f"{TRIES} sessions were over before the watch told of {state}")

    def _try(self, name: str, victim: str, state: str) -> Kill | None:
        source, target = self._ends()
        before = {item["metadata"]["name"]: item["metadata"]["uid"] for item in self._pods()}
        pod = self._operator() if victim == "operator" else f"{source if victim == 'source' else target}-0"
        with Watching(self.cluster, name, state, pod) as watching:
            with self._held(name, state, source, target):
                begun = time.monotonic()
                seen = watching.struck(30)
            item = self.ended(name)
            ended_after = time.monotonic() - begun
            if not seen:
                return None
            self.cluster.wait(lambda: self.is_whole(len(before), before[pod]), 120, "all to be well again")
        status = item["status"]
        late = _seconds(status["endedAt"]) - _seconds(status["deadlineAt"])
        assert late <= 2, f"ended {late:g} s after its deadline: {status}"
        return Kill(
            seen, status["phase"], status["reason"], status["progress"]["moved"], ended_after, time.monotonic() - begun
        )

    # -- holding

    @contextmanager
    def _held(self, name: str, state: str, source: str, target: str) -> Iterator[None]:
        """Create the session so that, if possible, it stays in its state until the end of the block."""
        if state == "Requested":
            limits = {"maxInFlight": 1, "maxMovesPerMinute": 10, "moveInterval": "0s"}
            self._session(f"{name}-before", source, target, 2, limits=limits)
            self.cluster.wait(lambda: self.phase(f"{name}-before") in STATES[4:], 30, "a session to run before it")
            self._session(name, source, target, MOVED)
            yield
            self.ended(f"{name}-before")
        elif state == "Negotiating":
            self._cordon(target, cordoned=True)
            self._session(name, source, target, MOVED)
            yield
            self._cordon(target, cordoned=False)
        elif state == "Planned":
            # If the source dies the plan is stale, and no other one is approved.
            self._session(name, source, target, MOVED, approval={"policy": "Manual", "within": "30s"})
            yield
            self._approve(name)
        elif state == "Draining":  # in batches, with pauses: some have moved, and others have not
            limits = {"maxInFlight": 5, "maxMovesPerMinute": 120, "moveInterval": "0s"}
            self._session(name, source, target, MOVED, limits=limits)
            yield
        else:
            self._session(name, source, target, MOVED)
            yield

    def _cordon(self, edge: str, *, cordoned: bool) -> None:
        self._patch("edgebroker", edge, f'{{"spec":{{"cordoned":{str(cordoned).lower()}}}}}')

        def known() -> bool:
            item = self.cluster.get("edgebroker", edge)
            return bool(item["status"]["observedGeneration"] == item["metadata"]["generation"])

        if cordoned:
            self.cluster.wait(known, 30, f"{edge} to be known as cordoned")

    def _approve(self, name: str) -> None:
        plan = self.cluster.get("loadbalancingsession", name)["status"]["planHash"]
        self._patch("loadbalancingsession", name, f'{{"spec":{{"approval":{{"planHash":"{plan}"}}}}}}')

    def _patch(self, kind: str, name: str, patch: str) -> None:
        self.cluster.kubectl("patch", kind, name, "--type=merge", "-p", patch)

    def _session(self, name: str, source: str, target: str, count: int, **spec: Any) -> None:
        limits = spec.pop("limits", {"moveInterval": "0s"})
        self.cluster.apply(manifest(
            "LoadBalancingSession", name, scope="Local", source={"name": source}, target={"name": target},
            mode="Execute", select={"count": count}, limits=limits, deadline=f"{DEADLINE_SECONDS}s", **spec,
        ))  # fmt: skip

    # -- observing

    def _ends(self) -> tuple[str, str]:
        """The edge that serves most, and the one that serves least."""
        at = {item["metadata"]["name"]: 0 for item in self.cluster.get("edgebrokers")} | self.crowd.at()
        edges = sorted(at, key=lambda edge: (at[edge], edge))
        return edges[-1], edges[0]

    def _told(self, session: Object) -> str:
        """Why a session has not ended as it should: its status, what the applications see, and the cluster."""
        seen = {"now": time.time(), "progress": self.crowd.progress(), "links": self.crowd.links()}
        return f"{session['status']}\n{json.dumps(seen, indent=1)}\n{self.cluster.told()}"

    def _operator(self) -> str:
        [pod] = self.cluster.get("pods", selector="app.kubernetes.io/name=plimsoll-operator")
        return str(pod["metadata"]["name"])

    def _pods(self) -> list[Object]:
        return [item for item in self.cluster.get("pods") if item["metadata"]["name"] != self.crowd.name]

    def phase(self, session: str) -> str:
        return str(self.cluster.get("loadbalancingsession", session).get("status", {}).get("phase", ""))

    def ended(self, session: str) -> Object:
        """A session once it is over."""

        def over() -> Object | None:
            item: Object = self.cluster.get("loadbalancingsession", session)
            return item if "endedAt" in item.get("status", {}) else None

        return self.cluster.wait(over, DEADLINE_SECONDS + RESUMED_SECONDS + 30, f"{session} to end") or {}

    def is_whole(self, pods: int, struck: str) -> bool:
        """Whether this number of pods is ready without the deleted one, and all are served without delay."""
        there, progress = self._pods(), self.crowd.progress()
        gaps, self._gaps = progress["gaps"] - self._gaps, progress["gaps"]
        assert gaps == 0, f"{gaps} gaps were told: {progress['told']}\n{self.cluster.told()}"
        ready = [pod for pod in there if _is_ready(pod) and pod["metadata"]["uid"] != struck]
        served = sum(progress["at"].values()) == self.crowd.subscribers and progress["behind"] < MOVED
        return len(ready) == len(there) == pods and served and self.cluster.is_true("brokercluster", "east", "Ready")


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    there = "deletionTimestamp" not in pod["metadata"]
    return there and any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def _seconds(time_: str) -> float:
    return datetime.fromisoformat(time_).timestamp()
