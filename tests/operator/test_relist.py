"""Objects deleted while a watch was away leave the indexes, too; objects created meanwhile stay."""

import asyncio
from typing import Any

import pytest
from tests.operator import kube
from tests.operator.faults import cancelled

from plimsoll.operator import relist, watch
from plimsoll.operator.api import Api, ApiError
from plimsoll.operator.metrics import OperatorMetrics
from plimsoll.operator.names import MANAGER
from plimsoll.operator.process import OperatorProcess
from plimsoll.operator.relist import WatchRelist, missed_objects, stale_objects
from plimsoll.operator.settings import OperatorSettings


def item(name: str, uid: str = "", kind: str = "EdgeBroker") -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "namespace": "ns", "uid": uid or name}}


class Server:
    """Lists the present objects; `asked` holds the requested kinds."""

    def __init__(self, *there: dict[str, Any]) -> None:
        self.there = list(there)
        self.asked: list[tuple[str, str, str]] = []
        self.requests: dict[tuple[str, str, int], int] = {}

    async def list(self, kind: str, namespace: str, labels: str = "") -> list[dict[str, Any]]:
        self.asked.append((kind, namespace, labels))
        if not self.there:
            raise ApiError(503, "not now")
        return [each for each in self.there if each["kind"] == kind]


def held(*items: dict[str, Any]) -> tuple[watch.Watches, dict[str, Any]]:
    watches = watch.Watches(lambda *told: None, OperatorMetrics(), nodes=True)
    indices: dict[str, Any] = {kind: {} for kind in watches.kinds}
    for each in items:
        indices[each["kind"]].setdefault("ns", []).append(each)
    asyncio.run(watches._use_indices(**indices))
    return watches, indices


def test_a_ghost_is_known_by_its_life():
    before = [item("a"), item("b", "first"), item("c")]
    assert stale_objects(before, [item("a"), item("b", "second"), item("new")]) == [item("b", "first"), item("c")]


def test_ghosts_are_shown_no_more_and_told_of_and_the_rest_stays(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(relist, "SETTLE_SECONDS", 0.0)
    watches, indices = held(item("a"), item("b"), item("p", kind="Pod"), item("n", kind="Node"))
    told: list[tuple[str, str]] = []
    server: Any = Server(item("a"), item("p", kind="Pod"), item("other", kind="Node"))

    async def story() -> None:
        found = WatchRelist(server, watches, (), lambda kind, gone: told.append((kind, gone["metadata"]["name"])))
        for kind in watches.kinds:
            await found.compare(kind)

    asyncio.run(story())
    assert told == [("EdgeBroker", "b"), ("Node", "n")]
    assert [each["metadata"]["name"] for each in watches.objects("ns")] == ["a", "p"]
    assert watches.all_of_kind("EdgeBroker") == [item("a")]
    assert watches.nodes() == {}
    selector = f"app.kubernetes.io/managed-by={MANAGER}"
    assert {("EdgeBroker", "", ""), ("Pod", "", selector), ("Node", "", "")} <= set(server.asked)
    assert {kind for kind, _, _ in server.asked} == set(watches.kinds)
    indices["EdgeBroker"]["ns"] = [item("a"), item("b", "made again")]
    assert [each["metadata"]["uid"] for each in watches.all_of_kind("EdgeBroker")] == ["a", "made again"]


def changed(name: str, generation: int) -> dict[str, Any]:
    found = item(name, kind="LoadBalancingSession")
    found["metadata"]["generation"] = generation
    return found


def test_what_is_listed_and_not_told_of_or_told_of_as_it_was_is_unheard():
    listed = [changed("new", 1), changed("edited", 2), changed("known", 2), item("plain")]
    assert missed_objects(listed, [changed("edited", 1), changed("known", 2), item("plain")]) == listed[:2]


@pytest.mark.parametrize("later", ["heard", "gone", "neither"])
def test_a_watch_is_deaf_if_it_does_not_tell_of_what_stays(later: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(relist, "SETTLE_SECONDS", 0.01)
    watches, indices = held()
    server: Any = Server(changed("s", 1), item("else"))
    found = WatchRelist(server, watches, (), lambda *_: None)

    async def story() -> None:
        checking = asyncio.create_task(found.compare("LoadBalancingSession"))
        async with asyncio.timeout(300):
            while not server.asked:  # noqa: ASYNC110  # until it has asked
                await asyncio.sleep(0)
        if later == "heard":
            indices["LoadBalancingSession"]["ns"] = [changed("s", 1)]
        if later == "gone":
            server.there.pop(0)
        await checking

    asyncio.run(story())
    assert found.stalled == ({"LoadBalancingSession": "LoadBalancingSession ns/s"} if later == "neither" else {})
    indices["LoadBalancingSession"]["ns"] = [changed("s", 1)]
    server.there = [changed("s", 1)]
    asyncio.run(found.compare("LoadBalancingSession"))
    assert found.stalled == {}, "it has told of it after all"


def test_a_watch_that_was_only_late_is_found_to_hear_soon(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(relist, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(relist, "STALLED_RECHECK_SECONDS", 0.001)
    watches, indices = held()
    server: Any = Server(changed("s", 1))
    found = WatchRelist(server, watches, (), lambda *_: None)

    async def story() -> None:
        running = asyncio.create_task(found.run())
        found.request("LoadBalancingSession")
        async with asyncio.timeout(300):
            while not found.stalled:  # noqa: ASYNC110  # until it seems so
                await asyncio.sleep(0.001)
            indices["LoadBalancingSession"]["ns"] = [changed("s", 1)]
            while found.stalled:  # noqa: ASYNC110  # until it does not any more
                await asyncio.sleep(0.001)
        assert {kind for kind, _, _ in server.asked} == {"LoadBalancingSession"}
        await cancelled(running)

    asyncio.run(story())


def test_each_namespace_is_asked_for_where_some_are_served():
    watches, _ = held(item("a"))
    server: Any = Server(item("a"))
    asyncio.run(WatchRelist(server, watches, ("x", "y"), lambda *_: None).compare("EdgeBroker"))
    assert [namespace for _, namespace, _ in server.asked] == ["x", "y"]


def test_a_namespace_that_is_refused_hides_no_other_and_its_objects_stay():
    class Refusing(Server):
        async def list(self, kind: str, namespace: str, *rest: Any) -> list[dict[str, Any]]:
            if namespace == "x":
                raise ApiError(403, "no")
            return await super().list(kind, namespace, *rest)

    watches, _ = held(item("a"))
    lost = {**item("b"), "metadata": {**item("b")["metadata"], "namespace": "x"}}
    watches._indices["EdgeBroker"]["x"] = [lost]
    gone: list[str] = []
    server: Any = Refusing(item("c"))
    told = WatchRelist(server, watches, ("x", "ns"), lambda _, each: gone.append(each["metadata"]["name"]))
    asyncio.run(told.compare("EdgeBroker"))
    assert gone == ["a"]


def test_an_api_server_that_does_not_answer_makes_nothing_a_ghost_and_ends_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(relist, "RELIST_SECONDS", 0.001)
    watches, _ = held(item("a"))
    server: Any = Server()

    async def story() -> None:
        running = asyncio.create_task(WatchRelist(server, watches, (), lambda *_: None).run())
        async with asyncio.timeout(300):
            while len(server.asked) < 3:
                assert not running.done()
                await asyncio.sleep(0.001)
        await cancelled(running)

    asyncio.run(story())
    assert watches.all_of_kind("EdgeBroker") == [item("a")]


def test_a_watch_that_repeats_objects_is_compared_with_a_list(monkeypatch: pytest.MonkeyPatch):
    """As kopf does after `410 Gone`, and for every object at its start."""
    monkeypatch.setattr(relist, "SETTLE_SECONDS", 0.0)

    async def story() -> None:
        server: Any = Server(item("a"))
        service = OperatorProcess(server, OperatorSettings())
        indices: dict[str, Any] = {kind: {} for kind in service._watches.kinds}
        indices["EdgeBroker"]["ns"] = [item("a"), item("ghost")]
        await service._watches._use_indices(**indices)
        running = asyncio.create_task(service.relist.run())
        begun: list[str] = []

        def begin(namespace: str) -> Fleet:
            begun.append(namespace)
            return Fleet()

        monkeypatch.setattr(service, "_start_fleet", begin)
        service._on_watch_event("", "EdgeBroker", item("a"))
        assert not service.relist._requested, "everything is told of at the start"
        service._on_watch_event("", "EdgeBroker", item("a"))
        async with asyncio.timeout(300):
            while len(service._watches.all_of_kind("EdgeBroker")) > 1:  # noqa: ASYNC110  # until it is found out
                await asyncio.sleep(0.001)
        assert server.asked == [("EdgeBroker", "", "")]
        await cancelled(running)

    class Fleet:
        def wake(self) -> None:
            return

    asyncio.run(story())


@pytest.mark.cluster
def test_what_a_real_api_server_has_no_more_is_found():
    async def story() -> None:
        async with await Api.connect(kube.kubeconfig()) as api, kube.namespace(api) as namespace:
            made = []
            for name in ("stays", "goes"):
                metadata = {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/managed-by": MANAGER}}
                made.append(await api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
            watches = watch.Watches(lambda *told: None, OperatorMetrics(), nodes=False)
            await watches._use_indices(**{kind: {} for kind in watches.kinds} | {"ConfigMap": {namespace: made}})
            await api.delete("ConfigMap", namespace, "goes")
            gone: list[str] = []
            found = WatchRelist(api, watches, (namespace,), lambda _, each: gone.append(each["metadata"]["name"]))
            await found.compare("ConfigMap")
            assert gone == ["goes"]
            assert [each["metadata"]["name"] for each in watches.objects(namespace)] == ["stays"]

    asyncio.run(story())
