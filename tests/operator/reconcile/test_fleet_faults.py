"""Beside any faulty object a healthy fleet is scaled, healed and mediated, also by an operator that has just started.

The faulty object itself says so at once: condition, event, printed column, and a generation that was acted on.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest
from tests.operator.reconcile.test_fleet_alone import Server, Waiting, looker
from tests.operator.world import FLEET, World

from plimsoll.core.spec.schemas.crd import COLUMNS
from plimsoll.mediator import fleet_view
from plimsoll.operator import names
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref
from plimsoll.operator.reconcile.fleet import FleetReconciler
from plimsoll.operator.reconcile.mediator_supervisor import MediatorSupervisor

WEST = """
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: own}
spec: {cpu: 250m, memory: 64Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: west}
spec:
  head: {profile: own}
  neighbors: [{name: east}]
  edges:
  - {name: far, profile: own, replicas: 2}
---
apiVersion: plimsoll.dev/v1alpha1
kind: EdgeBroker
metadata: {name: lone}
spec: {clusterRef: {name: west}, profile: own}
"""
Break = Callable[[World], None]


def new(kind: str, name: str, **spec: Any) -> Break:
    def put(world: World) -> None:
        item = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        world.now += 60  # it is younger than all others
        world.put(item)

    return put


def edit(kind: str, name: str, **spec: Any) -> Break:
    return lambda world: world.spec(kind, name, **spec)


def gone(kind: str, name: str) -> Break:
    return lambda world: world.delete((kind, name))


HEAD = {"profile": "small"}
BAD = ("BrokerCluster", "bad")
WESTERN = ("BrokerCluster", "west")
FAULTS: dict[str, tuple[Break, Ref, str]] = {
    "new: missing profile": (new("BrokerCluster", "bad", head={"profile": "absent"}), BAD, "InvalidSpec"),
    "new: missing neighbour": (new(*BAD, head=HEAD, neighbors=[{"name": "absent"}]), BAD, "InvalidSpec"),
    "new: its own neighbour": (new(*BAD, head=HEAD, neighbors=[{"name": "bad"}]), BAD, "InvalidSpec"),
    "new: circular neighbours": (
        new(*BAD, head=HEAD, neighbors=[{"name": "east"}, {"name": "west"}]), BAD, "InvalidSpec",
    ),
    "new: unknown policy": (new(*BAD, head=HEAD, policy={"type": "Best"}), BAD, "InvalidSpec"),
    "new: a name twice": (new(*BAD, head=HEAD, edges=[{"name": "edge-0", "profile": "small"}]), BAD, "InvalidSpec"),
    "new: no spec": (new(*BAD), BAD, "InvalidSpec"),
    "new: an edge of no cluster": (
        new("EdgeBroker", "e", clusterRef={"name": "absent"}, profile="small"), ("EdgeBroker", "e"), "NoCluster",
    ),
    "new: an edge without profile": (
        new("EdgeBroker", "e", clusterRef={"name": "east"}, profile="absent"), ("EdgeBroker", "e"), "InvalidSpec",
    ),
    "new: an amount that is none": (
        new("HardwareProfile", "p", memory="much"), ("HardwareProfile", "p"), "InvalidSpec",
    ),
    "new: a second fleet": (new("BrokerFleet", "z"), ("BrokerFleet", "z"), "SecondFleet"),
    "changed: missing profile": (edit(*WESTERN, head={"profile": "absent"}), WESTERN, "InvalidSpec"),
    "changed: missing profile of a group": (
        edit(*WESTERN, edges=[{"name": "far", "profile": "absent", "replicas": 2}]), WESTERN, "InvalidSpec",
    ),
    "changed: missing neighbour": (edit(*WESTERN, neighbors=[{"name": "absent"}]), WESTERN, "InvalidSpec"),
    "changed: unknown policy": (edit(*WESTERN, policy={"type": "Best"}), WESTERN, "InvalidSpec"),
    "changed: unreadable window": (
        edit(*WESTERN, maintenanceWindows=[{"name": "w", "schedule": "never", "duration": "1h"}]), WESTERN,
        "InvalidSpec",
    ),
    "changed: wrong group to scale": (edit(*WESTERN, scale={"group": "x", "replicas": 1}), WESTERN, "InvalidSpec"),
    "changed: an edge without its profile": (
        edit("EdgeBroker", "lone", profile="absent"), ("EdgeBroker", "lone"), "InvalidSpec",
    ),
    "changed: amount of a profile": (
        edit("HardwareProfile", "own", memory="much"), ("HardwareProfile", "own"), "InvalidSpec",
    ),
    "changed: too little memory for a log": (
        edit("BrokerFleet", "stocks", defaults={"logSize": "100Gi"}), ("BrokerFleet", "stocks"), "InvalidSpec",
    ),
    "changed: a client of no name": (
        edit("BrokerFleet", "stocks", security={"clients": [{"name": "No Name"}]}), ("BrokerFleet", "stocks"),
        "InvalidSpec",
    ),
    "deleted: the profile of running brokers": (gone("HardwareProfile", "own"), WESTERN, "InvalidSpec"),
    "deleted: the cluster of an edge": (gone(*WESTERN), ("EdgeBroker", "lone"), "NoCluster"),
}  # fmt: skip


class Mediator(Waiting):
    """A mediator that builds its view of what it is shown, as a real one does."""

    epochs_begun = 1

    def update_objects(self, objects: list[Object]) -> None:
        self.view = fleet_view.build_view(objects, fleet_view.FleetReadings(), 0.0)


def operator(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[FleetReconciler, Server, Mediator]:
    """A new operator process, as far as one fleet is concerned."""
    real, mediating = MediatorSupervisor.update, Mediator()
    fleet, server = looker(world, monkeypatch)
    monkeypatch.setattr(MediatorSupervisor, "update", real)
    monkeypatch.setattr("plimsoll.operator.reconcile.fleet.STATUS_WARMUP_SECONDS", -1.0)
    for module in ("reconcile.fleet", "reconcile.mediator_supervisor", "security.key_manager"):
        monkeypatch.setattr(f"plimsoll.operator.{module}.time", lambda: world.now)

    def begin(self: MediatorSupervisor, *_: Any) -> None:
        self._mediator = mediating  # type: ignore[assignment]  # a stand-in
        self._started_at = monotonic()

    monkeypatch.setattr(MediatorSupervisor, "_start", begin)
    return fleet, server, mediating


async def rounds(fleet: FleetReconciler, world: World, count: int = 4) -> None:
    for _ in range(count):
        await fleet._reconcile()
        world.controllers()
        world.now += 10
        for name in world.sessions():
            world.end_session(name)
        await fleet._write_status()


def condition(world: World, key: Ref, type_: str) -> dict[str, Any]:
    found = [each for each in world.objects[key]["status"]["conditions"] if each["type"] == type_]
    return dict(found[0]) if found else {}


async def assert_is_served(fleet: FleetReconciler, world: World, mediating: Mediator, edges: int) -> None:
    """The healthy cluster is scaled and healed, and the mediator knows all of it."""
    world.spec("BrokerCluster", "east", edges=[{"name": "edge", "profile": "small", "replicas": edges}])
    del world.objects["Service", "edge-0"]
    await rounds(fleet, world)
    wanted = [f"edge-{number}" for number in range(edges)]
    assert set(wanted) <= set(world.of("EdgeBroker"))
    assert {"east-head", *wanted} <= set(world.of("StatefulSet"))
    assert ("Service", "edge-0") in world.objects
    assert {name for name, edge in mediating.view.edges.items() if edge.cluster == "east"} == set(wanted)
    assert "east-head" in mediating.view.heads
    east = world.objects["BrokerCluster", "east"]
    assert east["status"]["observedGeneration"] == east["metadata"]["generation"]
    assert condition(world, ("BrokerCluster", "east"), "Accepted")["status"] == "True"
    assert condition(world, ("BrokerCluster", "east"), "Degraded")["status"] == "False"


def columns(item: Object) -> list[str]:
    """The values of the printed columns about conditions, as the API server finds them."""
    found = []
    for column in COLUMNS[item["kind"]]:
        parts = re.fullmatch(r'\.status\.conditions\[\?\(@\.type=="(\w+)"\)\]\.(\w+)', column.path)
        if parts is not None and column.name in ("Accepted", "Fault"):
            found += [each[parts[2]] for each in item["status"]["conditions"] if each["type"] == parts[1]]
    return found


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_concerns_the_object_that_has_it(kind: str, monkeypatch: pytest.MonkeyPatch):
    world = World(FLEET + WEST)
    fleet, server, mediating = operator(world, monkeypatch)
    destroy, key, reason = FAULTS[kind]

    async def story() -> None:
        await rounds(fleet, world, 5)
        running = {name: dict(world.objects["Pod", name]["metadata"]) for name in world.of("Pod")}
        assert {"west-head-0", "far-0-0", "lone-0"} <= running.keys()
        before = world.objects.get(key, {}).get("status", {}).get("observedGeneration")
        destroy(world)
        server.asked.clear()
        await fleet._reconcile()
        await fleet._write_status()
        assert ("event", reason, key[1]) in server.asked
        told = condition(world, key, "Accepted")
        assert (told["status"], told["reason"]) == ("False", reason)
        assert told["observedGeneration"] == world.objects[key]["metadata"]["generation"]
        assert len(told["message"]) < 500
        assert condition(world, key, "Degraded")["reason"] == reason
        assert columns(world.objects[key])[0] == "False"
        if not kind.startswith("deleted"):
            assert world.objects[key]["status"].get("observedGeneration") == before, "nothing has acted on it"
        await assert_is_served(fleet, world, mediating, 4)
        after, _, mediating_after = operator(world, monkeypatch)
        await assert_is_served(after, world, mediating_after, 5)
        assert condition(world, key, "Accepted")["status"] == "False"
        if kind != "deleted: the cluster of an edge":
            same = {name: world.objects["Pod", name]["metadata"]["uid"] for name in running}
            assert same == {name: metadata["uid"] for name, metadata in running.items()}, "no pod was replaced"

    asyncio.run(story())


def test_a_fault_that_is_corrected_is_forgotten(monkeypatch: pytest.MonkeyPatch):
    world = World(FLEET + WEST)
    fleet, server, _ = operator(world, monkeypatch)

    async def story() -> None:
        await rounds(fleet, world, 5)
        for _ in range(2):
            world.spec("BrokerCluster", "west", head={"profile": "absent"})
            await rounds(fleet, world, 2)
            world.spec("BrokerCluster", "west", head={"profile": "own"})
            await rounds(fleet, world, 2)
        assert condition(world, WESTERN, "Accepted")["status"] == "True"
        assert condition(world, WESTERN, "Degraded")["status"] == "False"
        assert world.objects[WESTERN]["status"]["observedGeneration"] == 5
        assert server.asked.count(("event", "InvalidSpec", "west")) == 2, "once each time"

    asyncio.run(story())


def test_what_runs_is_not_deleted_although_nothing_is_known_of_its_last_version(monkeypatch: pytest.MonkeyPatch):
    world = World(FLEET + WEST)
    fleet, _, _ = operator(world, monkeypatch)

    async def story() -> None:
        await rounds(fleet, world, 5)
        names_before = {kind: world.of(kind) for kind in ("Pod", "StatefulSet", "EdgeBroker", "Secret", "Service")}
        del world.objects["ConfigMap", names.ACCEPTED]
        world.spec("BrokerCluster", "west", policy={"type": "Best"})
        world.spec("EdgeBroker", "lone", profile="absent")
        after, _, mediating = operator(world, monkeypatch)
        await rounds(after, world)
        assert {kind: world.of(kind) for kind in names_before} == names_before
        await assert_is_served(after, world, mediating, 4)

    asyncio.run(story())


JUNK = base64.b64encode(b"junk").decode()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["far-0-keys", "plimsoll-client-app", names.MEDIATOR_KEYS])
@pytest.mark.parametrize("data", [{}, {"secret.key": JUNK, "public.key": JUNK}, {"secret.key": "%", "public.key": ""}])
def test_a_secret_without_keys_is_made_again(name: str, data: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    world = World(FLEET + WEST)
    fleet, _, _ = operator(world, monkeypatch)

    async def story() -> None:
        await rounds(fleet, world, 5)
        world.objects["Secret", name]["data"] = dict(data)
        after, server, mediating = operator(world, monkeypatch)
        await rounds(after, world, 2)
        assert ("event", "SecretInvalid", "lone") not in server.asked
        assert any(each[:2] == ("event", "SecretInvalid") for each in server.asked)
        await assert_is_served(after, world, mediating, 4)

    asyncio.run(story())
