"""What is the operator's is healed although no watch shows it; what is not is never used."""

from __future__ import annotations

import asyncio
import copy

import pytest
from tests.operator.reconcile.test_fleet_alone import Server, looker, reasons
from tests.operator.world import World

from plimsoll.operator import names
from plimsoll.operator.api import ApiConflictError
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref, owner, ref
from plimsoll.operator.reconcile.fleet import FleetReconciler
from plimsoll.operator.reconcile.steps import Apply, Restart
from plimsoll.operator.watch import watch_selector


def shown(world: World) -> list[Object]:
    """What watches show: of kinds with a selector only what has the operator's label."""
    return [
        copy.deepcopy(item) for (kind, _), item in world.objects.items()
        if not watch_selector(kind) or "app.kubernetes.io/managed-by" in (item["metadata"].get("labels") or {})
    ]  # fmt: skip


def watching(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[FleetReconciler, Server]:
    fleet, server = looker(world, monkeypatch)
    monkeypatch.setattr(fleet._cache, "_watched", lambda namespace: shown(world))
    monkeypatch.setattr("plimsoll.operator.reconcile.fleet.STATUS_WARMUP_SECONDS", -1.0)

    async def created(item: Object) -> Object:
        if ref(item) in world.objects:
            raise ApiConflictError("it exists")
        return copy.deepcopy(world.put(item))

    monkeypatch.setattr(server, "create", created)
    return fleet, server


def keys_are_read(world: World) -> None:
    """The head has long read the keys of all edges."""
    world.objects["Pod", "east-head-0"]["metadata"]["annotations"][names.KEYS_AT] = "2020-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "key", [("StatefulSet", "edge-1"), ("Service", "edge-1"), ("Secret", "edge-1-keys"), ("ConfigMap", "edge-1-config")]
)
def test_labels_that_were_taken_off_come_back(key: Ref, monkeypatch: pytest.MonkeyPatch):
    world = World()
    world.settle()
    fleet, _ = watching(world, monkeypatch)
    uid, labels = world.objects[key]["metadata"]["uid"], world.objects[key]["metadata"]["labels"]

    async def story() -> None:
        await fleet._reconcile()
        keys_are_read(world)
        world.objects[key]["metadata"]["labels"] = {}
        held = world.objects.get(("Secret", "edge-1-keys"), {}).get("data")
        for _ in range(3):
            await fleet._reconcile()
            world.controllers()
        assert world.objects[key]["metadata"]["labels"] == labels
        assert world.objects[key]["metadata"]["uid"] == uid
        assert world.objects["Secret", "edge-1-keys"]["data"] == held, "its keys stay"
        assert "NameTaken" not in {fault.reason for fault in fleet._executor.faults.values()}

    asyncio.run(story())


@pytest.mark.parametrize(
    ("key", "has_owner"), [(("ConfigMap", "edge-9-config"), False), (("Service", "edge-9"), False),
                           (("ConfigMap", "edge-9-config"), True)]
)  # fmt: skip
def test_no_pod_starts_on_what_is_not_the_operators(key: Ref, has_owner: bool, monkeypatch: pytest.MonkeyPatch):
    world = World()
    world.settle()
    theirs: Object = {"apiVersion": "v1", "kind": key[0], "metadata": {"name": key[1]}, "data": {"mine": "1"}}
    if has_owner:
        another = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "uid": "another"}}
        theirs["metadata"]["ownerReferences"] = [owner(another)]
    world.put(theirs)
    fleet, _ = watching(world, monkeypatch)
    profile = {"clusterRef": {"name": "east"}, "profile": "small"}
    world.put({"apiVersion": "plimsoll.dev/v1alpha1", "kind": "EdgeBroker", "metadata": {"name": "edge-9"},
               "spec": profile})  # fmt: skip

    async def story() -> None:
        for _ in range(12):
            await fleet._reconcile()
            world.controllers()
            world.now += 2
            keys_are_read(world)
            await fleet._write_status()
        assert ("StatefulSet", "edge-9") not in world.objects
        assert world.objects[key]["data"] == {"mine": "1"}
        assert fleet._executor.faults[key].reason == "NameTaken"
        assert "/".join(key) in fleet._executor.blocked["StatefulSet", "edge-9"]
        assert "NameTaken" in reasons(world, "EdgeBroker", "edge-9")
        world.delete(key)
        for _ in range(3):
            await fleet._reconcile()
        assert ("StatefulSet", "edge-9") in world.objects
        assert fleet._executor.faults == {}

    asyncio.run(story())


def test_a_broker_that_runs_is_not_restarted_onto_it(monkeypatch: pytest.MonkeyPatch):
    world = World()
    world.settle()
    fleet, server = watching(world, monkeypatch)

    async def story() -> None:
        await fleet._reconcile()
        config = world.objects["ConfigMap", "edge-1-config"]
        wanted = copy.deepcopy(config)
        config["metadata"] |= {"labels": {}, "ownerReferences": []}
        restarts = [Restart(name, world.objects["Pod", f"{name}-0"], "a test") for name in ("edge-1", "edge-2")]
        await fleet._executor.execute([Apply(wanted, "a test"), *restarts], {}, ())
        deleted = [name for verb, kind, name in server.asked if (verb, kind) == ("delete", "Pod")]
        assert deleted == ["edge-2-0"]
        assert "ConfigMap/edge-1-config" in fleet._executor.blocked["Pod", "edge-1"]

    asyncio.run(story())
