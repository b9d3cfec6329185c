"""Reconciliations of a fleet one after the other, and its reported state, with and without answers of the API server.

`test_fleet.py` tests the operator at a real API server; here are the cases that cannot be brought about there.
"""

import asyncio
import copy
from collections.abc import Mapping
from time import monotonic
from typing import Any

import pytest
from tests.operator.faults import cancelled
from tests.operator.world import FLEET, World

from plimsoll.operator import names
from plimsoll.operator.api import ApiConflictError, ApiError, ApiNotFoundError
from plimsoll.operator.cache import Cache
from plimsoll.operator.health import OperatorHealth
from plimsoll.operator.mediator.broker_poller import BrokerReading
from plimsoll.operator.metrics import OperatorMetrics
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import ref
from plimsoll.operator.process import OperatorProcess
from plimsoll.operator.reconcile.fleet import STATUS_WARMUP_SECONDS, FleetReconciler
from plimsoll.operator.reconcile.mediator_supervisor import STABLE_SECONDS, MediatorSupervisor, _as_cordoned
from plimsoll.operator.reconcile.retries import RETRY_SECONDS
from plimsoll.operator.security import keys
from plimsoll.operator.settings import OperatorSettings

PARTS = dict(zip(("fleet", "small", "large", "cluster"), FLEET.split("---"), strict=True))


class Server:
    """What is stored; requests for `absent` names find nothing, and none is answered while it is `away`."""

    def __init__(self, world: World) -> None:
        self.world, self.away = world, False
        self.absent: set[str] = set()
        self.wrong: dict[str, Exception] = {}
        """The answer to a write of an object of this name."""
        self.asked: list[tuple[str, str, str]] = []
        self.requests: dict[tuple[str, str, int], int] = {}

    def _take(self, verb: str, kind: str, name: str) -> None:
        self.asked.append((verb, kind, name))
        if self.away:
            raise ApiError(0, "no answer")
        if name in self.absent:
            raise ApiNotFoundError(name)
        if verb not in ("get", "update") and name in self.wrong:
            raise self.wrong[name]

    async def create(self, item: Object) -> Object:
        self._take("create", *ref(item))
        return copy.deepcopy(self.world.put(item))

    apply = create

    async def get(self, kind: str, namespace: str, name: str) -> Object:
        self._take("get", kind, name)
        if (kind, name) not in self.world.objects:
            raise ApiNotFoundError(name)
        return copy.deepcopy(self.world.objects[kind, name])

    async def patch(self, kind: str, namespace: str, name: str, patch: Mapping[str, Any]) -> Object:
        self._take("patch", kind, name)
        if "data" in patch:
            stored = self.world.put(self.world.objects[kind, name])
            merged = {**stored["data"], **patch["data"]}
            stored["data"] = {key: value for key, value in merged.items() if value is not None}
        before = copy.deepcopy(self.world.objects[kind, name])
        if "metadata" in patch:
            self.world._patch((kind, name), patch)
        if (kind, name) not in self.world.objects:  # its last finalizer was removed
            return before
        return await self.get(kind, namespace, name)

    async def delete(self, kind: str, namespace: str, name: str, **_: Any) -> None:
        self._take("delete", kind, name)
        self.world.delete((kind, name))

    async def replace_status(self, item: Object) -> Object:
        self._take("update", *ref(item))
        self.world.objects[ref(item)]["status"] = copy.deepcopy(item["status"])
        return copy.deepcopy(self.world.objects[ref(item)])

    async def event(self, about: Object, type_: str, reason: str, message: str) -> None:
        self.asked.append(("event", reason, about["metadata"]["name"]))


def looker(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[FleetReconciler, Server]:
    """A fleet's task without a mediator, which these tests do not need."""
    server: Any = Server(world)
    cache = Cache(lambda namespace: copy.deepcopy([*world.objects.values()]))

    async def no_mediator(self: MediatorSupervisor, *_: object) -> None:
        return

    monkeypatch.setattr(MediatorSupervisor, "update", no_mediator)
    settings = OperatorSettings()
    fleet = FleetReconciler(
        "ns",
        server,
        cache,
        settings,
        OperatorMetrics(),
        OperatorHealth(settings.silent_seconds),
        lambda: None,
    )
    return fleet, server


async def looked(fleet: FleetReconciler, world: World) -> None:
    await fleet._reconcile()
    world.controllers()
    await fleet._write_status()


def reasons(world: World, kind: str, name: str) -> set[str]:
    conditions = world.objects[kind, name].get("status", {}).get("conditions", [])
    return {str(each["reason"]) for each in conditions}


def test_a_cluster_that_had_no_fleet_is_told_of_when_it_has_one(monkeypatch: pytest.MonkeyPatch):
    world = World("---".join([PARTS["small"], PARTS["cluster"]]))
    world.objects["BrokerCluster", "east"]["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z"
    fleet, _ = looker(world, monkeypatch)
    monkeypatch.setattr("plimsoll.operator.reconcile.fleet.STATUS_WARMUP_SECONDS", 0.0)

    async def story() -> None:
        await looked(fleet, world)
        assert "NoFleet" in reasons(world, "BrokerCluster", "east")
        world.put(next(iter(World(PARTS["fleet"]).objects.values())))
        for _ in range(3):
            await looked(fleet, world)
        assert "NoFleet" not in reasons(world, "BrokerCluster", "east")
        assert world.objects["BrokerFleet", "stocks"]["status"]["clusters"] == 1

    asyncio.run(story())


def test_statuses_are_not_waited_for_one_by_one_while_the_api_server_is_away(monkeypatch: pytest.MonkeyPatch):
    world = World()
    fleet, server = looker(world, monkeypatch)
    monkeypatch.setattr("plimsoll.operator.reconcile.fleet.STATUS_WARMUP_SECONDS", 0.0)

    async def story() -> None:
        for _ in range(3):
            await fleet._reconcile()
            world.controllers()
        server.away, server.asked = True, []
        await fleet._write_status()
        assert [verb for verb, _, _ in server.asked] == ["update"]
        server.away = False
        await fleet._write_status()
        assert {kind for verb, kind, _ in server.asked if verb == "update"} >= {"BrokerFleet", "BrokerCluster"}

    asyncio.run(story())


def degraded_of(world: World) -> dict[str, Any]:
    conditions = world.objects["BrokerFleet", "stocks"]["status"]["conditions"]
    return next(dict(each) for each in conditions if each["type"] == "Degraded")


def test_a_restarted_mediator_keeps_the_readings_of_brokers(monkeypatch: pytest.MonkeyPatch):
    world = World()
    fleet, server = looker(world, monkeypatch)

    async def refused() -> None:
        raise ApiError(422, "no")

    async def story() -> None:
        for _ in range(3):
            await fleet._reconcile()
            world.controllers()
        fleet._mediator._started_at -= STATUS_WARMUP_SECONDS + 1
        fleet._mediator._task = asyncio.create_task(refused())
        await asyncio.wait([fleet._mediator._task])
        await fleet._mediator.check()
        server.asked.clear()
        await fleet._write_status()
        assert server.asked == [("update", "BrokerFleet", "stocks")], "the fault is said, and all else stays"
        degraded = degraded_of(world)
        assert (degraded["type"], degraded["reason"]) == ("Degraded", "Refused")

    asyncio.run(story())


def test_a_pod_that_a_watch_shows_after_its_end_is_forgotten(monkeypatch: pytest.MonkeyPatch):
    world = World()
    fleet, server = looker(world, monkeypatch)

    async def story() -> None:
        for _ in range(3):
            await fleet._reconcile()
            world.controllers()
        pod = world.objects["Pod", "edge-0-0"]
        pod["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z"
        server.absent, server.asked = {"edge-0-0"}, []
        for _ in range(3):
            await fleet._reconcile()
        assert server.asked.count(("delete", "Pod", "edge-0-0")) == 1

    asyncio.run(story())


def test_a_deletion_from_a_watch_ends_the_wait_for_an_earlier_write():
    async def story() -> None:
        world = World()
        server: Any = Server(world)
        service = OperatorProcess(server, OperatorSettings())
        fleet = FleetReconciler(
            "ns",
            server,
            service.cache,
            OperatorSettings(),
            service.metrics,
            service.health,
            lambda: None,
        )
        service._fleets["ns"] = fleet
        cluster = world.objects["BrokerCluster", "east"]
        service.cache.note_write(cluster, 0.0)
        service._on_watch_event("DELETED", "BrokerCluster", cluster)
        assert service.health.pending_write(100.0) == ("", 0.0)

    asyncio.run(story())


def test_sessions_are_counted_by_the_operator_that_mediates_them(monkeypatch: pytest.MonkeyPatch):
    async def story() -> None:
        world = World()
        fleet, _ = looker(world, monkeypatch)
        server: Any = Server(world)
        service = OperatorProcess(server, OperatorSettings())
        service._fleets["ns"] = fleet
        sessions = [{"kind": "LoadBalancingSession", "metadata": {"namespace": name}} for name in ("ns", "other")]
        monkeypatch.setattr(service._watches, "all_of_kind", lambda kind: sessions)

        def counted() -> float | None:
            return service.metrics.registry.get_sample_value("plimsoll_sessions", {"phase": "Requested"})

        assert counted() == 2
        fleet._mediator._mediator = Waiting()  # type: ignore[assignment]  # a stand-in
        assert counted() == 1

    asyncio.run(story())


class Readings:
    """The brokers of a mediator, as far as a fleet's task needs them."""

    draining: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.readings: dict[str, BrokerReading] = {}

    def update_peers(self, *_: Any) -> None:
        return


class Waiting:
    """A mediator whose lease another operator holds."""

    epochs_begun = 0
    may_be_deposed = False

    def __init__(self) -> None:
        self.brokers = Readings()


def test_who_only_waits_to_mediate_says_nothing_of_brokers(monkeypatch: pytest.MonkeyPatch):
    world = World()
    fleet, server = looker(world, monkeypatch)
    monkeypatch.setattr("plimsoll.operator.reconcile.fleet.STATUS_WARMUP_SECONDS", 0.0)

    async def story() -> None:
        for _ in range(3):
            await fleet._reconcile()
            world.controllers()
        fleet._mediator._mediator = waiting = Waiting()  # type: ignore[assignment]  # a stand-in
        server.asked.clear()
        await fleet._write_status()
        assert server.asked == []
        waiting.epochs_begun = 1
        waiting.may_be_deposed = True
        await fleet._write_status()
        assert await fleet._reconcile_safely() == RETRY_SECONDS
        assert server.asked == [], "it may have been deposed while it was cut off"
        waiting.may_be_deposed = False
        await fleet._write_status()
        assert "update" in {verb for verb, _, _ in server.asked}

    asyncio.run(story())


def test_an_edge_that_is_about_to_be_replaced_is_shown_to_the_mediator_as_closed():
    edge, cluster = {"kind": "EdgeBroker", "metadata": {"name": "e"}, "spec": {"profile": "p"}}, {"kind": "x"}
    assert _as_cordoned(edge, {"f"}) is edge
    assert _as_cordoned(cluster, {"e"}) is cluster
    assert _as_cordoned(edge, {"e"})["spec"] == {"profile": "p", "cordoned": True}
    assert edge["spec"] == {"profile": "p"}, "what watches tell stays as it is"


def test_what_the_operator_cannot_do_counts_as_refused_until_it_can(monkeypatch: pytest.MonkeyPatch):
    fleet, server = looker(World(), monkeypatch)

    def looks(result: str) -> float:
        labels = {"controller": "fleet", "result": result}
        return fleet._metrics.registry.get_sample_value("plimsoll_reconcile_total", labels) or 0.0

    async def story() -> None:
        await fleet._reconcile_safely()  # edges alone
        server.wrong["east-edges"] = ApiError(403, "no")
        await fleet._reconcile_safely()
        assert (looks("refused"), looks("success")) == (1.0, 1.0)
        server.wrong.clear()
        fleet._retries.keep(())
        await fleet._reconcile_safely()
        assert (looks("refused"), looks("success")) == (1.0, 2.0)

    asyncio.run(story())


def test_pods_of_lost_nodes_are_deleted_while_the_spec_is_invalid(monkeypatch: pytest.MonkeyPatch):
    world = World()
    world.settle()
    fleet, server = looker(world, monkeypatch)

    async def story() -> None:
        await fleet._reconcile()
        world.spec("BrokerCluster", "east", head={"profile": "missing"}, edges=[])
        pod = world.objects["Pod", "edge-0-0"]
        pod["metadata"]["deletionTimestamp"] = world.time
        pod["status"]["conditions"].append(
            {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
        )
        server.asked.clear()
        await fleet._reconcile()
        assert fleet._found.faults["BrokerCluster", "east"].reason == "InvalidSpec"
        assert ("delete", "Pod", "edge-0-0") in server.asked

    asyncio.run(story())


class Shown(Waiting):
    """A mediator that records what it is shown."""

    epochs_begun = 1

    def update_objects(self, objects: list[Object]) -> None:
        self.closed = {item["metadata"]["name"] for item in objects if item["spec"].get("cordoned")}


def test_edges_that_leave_are_no_targets_for_the_mediator(monkeypatch: pytest.MonkeyPatch):
    world = World()
    world.settle()
    world.delete(("EdgeBroker", "edge-1"))
    fleet, _ = looker(world, monkeypatch)
    mediating = Shown()

    def begin(self: MediatorSupervisor, *_: Any) -> None:
        self._mediator = mediating  # type: ignore[assignment]  # a stand-in

    monkeypatch.undo()
    monkeypatch.setattr(MediatorSupervisor, "_start", begin)
    own = keys.read_keys(world.objects["Secret", names.MEDIATOR_KEYS])
    assert own is not None
    asyncio.run(fleet._mediator.update(world.desired(), {names.MEDIATOR_KEYS: own}))
    assert mediating.closed == {"edge-1"}


@pytest.mark.parametrize(("served", "written"), [((), "own"), (("own", "x"), "own"), (("x", "y"), "x")])
def test_the_canary_is_written_where_something_is_watched(served: tuple[str, ...], written: str):
    async def story() -> None:
        server: Any = Server(World())
        service = OperatorProcess(server, OperatorSettings(namespaces=served, canary="own/canary"))
        writing = asyncio.create_task(service._canary())
        async with asyncio.timeout(300):
            while service.health.canary_written is None:  # noqa: ASYNC110  # until it has been written
                await asyncio.sleep(0)
        await cancelled(writing)
        assert server.world.objects["ConfigMap", "canary"]["metadata"]["namespace"] == written

    asyncio.run(story())


@pytest.mark.parametrize(("release", "owned"), [("own/operator", True), ("x/operator", False), ("own/absent", False)])
def test_the_canary_goes_with_the_operators_deployment(release: str, owned: bool):
    async def story() -> None:
        server: Any = Server(World())
        server.world.put({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "operator"}})
        service = OperatorProcess(server, OperatorSettings(canary="own/canary", release=release))
        writing = asyncio.create_task(service._canary())
        async with asyncio.timeout(10):
            while service.health.canary_written is None:  # noqa: ASYNC110  # until it has been written
                await asyncio.sleep(0)
        await cancelled(writing)
        owners = server.world.objects["ConfigMap", "canary"]["metadata"]["ownerReferences"]
        uid = server.world.objects["Deployment", "operator"]["metadata"]["uid"]
        assert [(each["kind"], each["uid"], each["controller"]) for each in owners] == (
            [("Deployment", uid, False)] if owned else []
        )

    asyncio.run(story())


def test_a_mediator_that_fails_is_restarted_less_and_less_often(monkeypatch: pytest.MonkeyPatch):
    fleet, _ = looker(World(), monkeypatch)

    async def refused() -> None:
        raise ApiError(422, "no")

    async def story() -> None:
        pauses = []
        for lasted in (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, STABLE_SECONDS + 1):
            fleet._mediator._started_at = monotonic() - lasted
            fleet._mediator._task = asyncio.create_task(refused())
            await asyncio.wait([fleet._mediator._task])
            await fleet._mediator.check()
            pauses.append(fleet._mediator._pause)
            assert fleet._mediator._due_at > monotonic()
        assert pauses == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 1.0]

    asyncio.run(story())


def test_a_mediator_that_is_refused_is_a_fault_of_the_fleet_until_one_has_lasted(monkeypatch: pytest.MonkeyPatch):
    world = World()
    fleet, server = looker(world, monkeypatch)

    async def refused() -> None:
        raise ApiError(403, "no more ConfigMaps here")

    async def lasts() -> None:
        await asyncio.Event().wait()

    async def story() -> None:
        fleet._mediator._task = asyncio.create_task(refused())
        await asyncio.wait([fleet._mediator._task])
        await fleet._mediator.check()
        assert any("MediatorExited" in str(one) for one in server.asked)
        await fleet._reconcile()
        assert fleet._executor.faults["BrokerFleet", "stocks"] == (
            "Refused", "the mediator cannot go on: no more ConfigMaps here",
        )  # fmt: skip
        fleet._mediator._task = asyncio.create_task(lasts())
        fleet._mediator._started_at = monotonic() - STABLE_SECONDS
        await fleet._mediator.check()
        await fleet._reconcile()
        assert ("BrokerFleet", "stocks") not in fleet._executor.faults
        fleet._mediator._task.cancel()

    asyncio.run(story())


def test_reported_subscribers_of_an_edge_count_while_the_mediator_lives(monkeypatch: pytest.MonkeyPatch):
    fleet, _ = looker(World(), monkeypatch)
    assert (fleet._mediator.context(1.0).mediating_seconds, fleet._mediator.context(1.0).subscribers) == (0.0, {})
    waiting = Waiting()
    fleet._mediator._mediator = waiting  # type: ignore[assignment]  # a stand-in
    fleet._mediator._started_at -= 100.0
    waiting.brokers.readings = {
        "edge-0": BrokerReading(report={"subscribers": 7}, report_age=2.0),
        "edge-1": BrokerReading(),
        "odd": BrokerReading({}, 0.1),
    }
    assert (fleet._mediator.context(1.0).mediating_seconds, fleet._mediator.context(1.0).subscribers) == (0.0, {}), (
        "another one mediates"
    )
    waiting.epochs_begun = 1
    moment = fleet._mediator.context(1.0)
    assert moment.subscribers is not None
    assert moment.mediating_seconds >= 100.0
    assert {name: each.subscribers for name, each in moment.subscribers.items()} == {"edge-0": 7}
    assert moment.subscribers["edge-0"].at == pytest.approx(moment.now - 2.0, abs=0.5)


def test_a_head_has_the_key_that_it_says_it_has(monkeypatch: pytest.MonkeyPatch):
    fleet, _ = looker(World(), monkeypatch)
    assert fleet._mediator.key_in_use_by("east-head") == ""
    fleet._mediator._mediator = waiting = Waiting()  # type: ignore[assignment]  # a stand-in
    waiting.brokers.readings = {
        "east-head": BrokerReading({"process": {"public_key": "k"}}, 0.1),
        "odd": BrokerReading({"process": "x"}, 0.1),
    }
    fleet._mediator._public_key = "m"
    assert [fleet._mediator.key_in_use_by(name) for name in ("east-head", "odd", "other", names.MEDIATOR)] == [
        "k",
        "",
        "",
        "m",
    ]


def tries(server: Server, name: str) -> int:
    return sum(1 for verb, _, about in server.asked if about == name and verb not in ("get", "event", "update"))


class Clock:
    """The clock of a fleet's task, which a test advances."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        for module in ("fleet", "fleet_client", "executor", "status_writer", "mediator_supervisor"):
            monkeypatch.setattr(f"plimsoll.operator.reconcile.{module}.monotonic", lambda: self.now)
        monkeypatch.setattr("plimsoll.operator.security.key_manager.monotonic", lambda: self.now)


@pytest.mark.parametrize("code", [403, 422, 500])
def test_one_refused_secret_stops_no_other(monkeypatch: pytest.MonkeyPatch, code: int):
    world = World()
    fleet, server = looker(world, monkeypatch)
    monkeypatch.setattr("plimsoll.operator.reconcile.fleet.STATUS_WARMUP_SECONDS", -1.0)
    server.wrong = {"edge-1-keys": ApiError(code, "create Secret ns/edge-1-keys: denied by policy")}

    async def story() -> None:
        for _ in range(4):
            await looked(fleet, world)
        assert world.of("StatefulSet") == ["east-head", "edge-0", "edge-2"]
        assert ("event", "Refused", "edge-1") in server.asked
        for kind, name in (("EdgeBroker", "edge-1"), ("BrokerCluster", "east"), ("BrokerFleet", "stocks")):
            (found,) = [c for c in world.objects[kind, name]["status"]["conditions"] if c["type"] == "Degraded"]
            assert (found["status"], found["reason"]) == ("True", "Refused")
            assert "Secret ns/edge-1-keys" in found["message"]
        assert world.objects["BrokerCluster", "east"]["status"]["edges"]["desired"] == 3
        assert "Refused" not in reasons(world, "EdgeBroker", "edge-0")
        server.wrong = {}
        fleet._retries.keep([])  # its pause is over
        for _ in range(3):
            await looked(fleet, world)
        assert ("Secret", "edge-1-keys") in world.objects
        assert fleet._executor.blocked["EdgeBroker", "edge-1"] == "waiting for east-head to read its key"
        assert "Refused" not in reasons(world, "EdgeBroker", "edge-1")

    asyncio.run(story())


def test_the_first_object_that_is_refused_is_tried_again_less_and_less_often(monkeypatch: pytest.MonkeyPatch):
    world, clock = World(), Clock(monkeypatch)
    fleet, server = looker(world, monkeypatch)
    refused = {"edge-1-keys", "edge-2-config"}
    server.wrong = {name: ApiError(422, f"{name} is refused") for name in refused}

    async def story() -> None:
        for _ in range(120):  # a minute of reconciliations
            clock.now += 0.5
            await fleet._reconcile()
            world.controllers()
        for name in refused:
            assert 5 <= tries(server, name) <= 10, (name, tries(server, name))
        assert world.of("StatefulSet") == ["east-head", "edge-0", "edge-2"]

    asyncio.run(story())


def test_a_conflict_is_tried_again_after_pauses_that_grow(monkeypatch: pytest.MonkeyPatch):
    world, clock = World(), Clock(monkeypatch)
    fleet, server = looker(world, monkeypatch)
    server.wrong = {"edge-2": ApiConflictError("another writer was quicker")}

    async def story() -> None:
        looks = 0
        until = clock.now + 30.0
        while clock.now < until:
            looks += 1
            clock.now += await fleet._reconcile_safely()
            world.controllers()
            assert not fleet.is_woken, "it does not wake itself"
        assert 4 <= tries(server, "edge-2") <= 12, tries(server, "edge-2")
        assert looks < 30

    asyncio.run(story())


def test_a_status_that_conflicts_is_tried_again_after_pauses_that_grow(monkeypatch: pytest.MonkeyPatch):
    world, clock = World(), Clock(monkeypatch)
    fleet, server = looker(world, monkeypatch)
    monkeypatch.setattr("plimsoll.operator.reconcile.fleet.STATUS_WARMUP_SECONDS", -1.0)

    async def conflicts(item: Object) -> Object:
        server.asked.append(("update", *ref(item)))
        raise ApiConflictError("another writer was quicker")

    async def story() -> None:
        for _ in range(3):
            await fleet._reconcile()
            world.controllers()
        monkeypatch.setattr(server, "replace_status", conflicts)
        for _ in range(120):
            clock.now += 0.25
            await fleet._write_status()
        assert 4 <= server.asked.count(("update", "BrokerFleet", "stocks")) <= 14

    asyncio.run(story())
