"""A fleet on a real cluster: it starts, grows and shrinks under load, rolls, is deleted; at rest nothing is written."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from urllib.request import urlopen

import pytest
from kubernetes import client, config
from tests.operator import kube
from tests.operator.running import FLEET, Running, running

from plimsoll.mediator import evacuation, session_objects
from plimsoll.operator import names
from plimsoll.operator.api import ApiNotFoundError
from plimsoll.operator.objects.manifest import owner
from plimsoll.operator.reconcile import observed

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.images("broker"),
    pytest.mark.timeout(1800),
]


def on_a_cluster(folder: Path, story: Callable[[Running], Awaitable[None]], text: str = FLEET) -> None:
    async def run() -> None:
        async with running(folder, text) as fleet:
            await story(fleet)

    asyncio.run(run())


def requests(fleet: Running) -> dict[str, float]:
    with urlopen(f"http://127.0.0.1:{fleet.port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return {
        line.split(" ")[0]: float(line.split(" ")[1])
        for line in lines if line.startswith(("plimsoll_changes_total", "plimsoll_reconcile_total"))
    }  # fmt: skip


@pytest.mark.sweep
def test_a_fleet_lives_under_load(tmp_path: Path):
    async def story(fleet: Running) -> None:
        took = await fleet.ready(3)
        print(f"from apply to Ready: {took:.1f} s")
        await fleet.traffic()
        await fleet.scale(5)
        print(f"scaled to 5 in {await fleet.ready(5):.1f} s")
        await fleet.scale(2)
        print(f"scaled to 2 in {await fleet.ready(2):.1f} s")
        before = {name: (await fleet.get("Pod", f"{name}-0"))["metadata"]["uid"] for name in ("edge-0", "edge-1")}
        head = (await fleet.get("Pod", "east-head-0"))["metadata"]["uid"]
        await fleet.scale(2, profile="large")

        async def replaced() -> bool:
            pods = [
                item for item in await fleet.api.list("Pod", fleet.namespace) if item["metadata"]["name"] != "traffic"
            ]
            new = {item["metadata"]["name"] for item in pods if item["metadata"]["uid"] not in before.values()}
            return {"edge-0-0", "edge-1-0"} <= new and await fleet.is_ready(2)

        print(f"rolled in {await fleet.until('both edges have been replaced', replaced, 600):.1f} s")
        assert (await fleet.get("Pod", "east-head-0"))["metadata"]["uid"] == head
        verdict = await fleet.verdict()
        print(verdict)
        assert verdict["sent"] > 500
        assert (verdict["lost"], verdict["repeated"], verdict["reordered"], verdict["gaps"]) == (0, 0, 0, [])

    on_a_cluster(tmp_path, story)


@pytest.mark.sweep
def test_at_rest_nothing_is_written(tmp_path: Path):
    async def story(fleet: Running) -> None:
        await fleet.ready(2)

        async def at_rest() -> bool:
            before = requests(fleet)
            looks = before['plimsoll_reconcile_total{controller="fleet",result="success"}']

            async def looked() -> bool:
                return requests(fleet)['plimsoll_reconcile_total{controller="fleet",result="success"}'] >= looks + 3

            await fleet.until("the fleet has been looked at again", looked)
            after = requests(fleet)
            changed = {key: value for key, value in after.items() if key.startswith("plimsoll_changes_total")}
            return changed == {key: value for key, value in before.items() if key in changed}

        await fleet.until("pods have taken up the keys", at_rest, 300)
        assert await at_rest()

    on_a_cluster(tmp_path, story, FLEET.replace("replicas: 3", "replicas: 2"))


@pytest.mark.sweep
def test_what_is_deleted_goes_and_leaves_nothing(tmp_path: Path):
    async def story(fleet: Running) -> None:
        await fleet.ready(1)
        for kind, name in (("BrokerCluster", "east"), ("BrokerFleet", "stocks")):
            await fleet.api.delete(kind, fleet.namespace, name)

        async def gone() -> bool:
            kinds = ("EdgeBroker", "StatefulSet", "Pod", "Service", "Secret", "PodDisruptionBudget", "NetworkPolicy",
                     "Lease")  # fmt: skip
            return not any([await fleet.named(kind) for kind in kinds])

        await fleet.until("everything has gone", gone)
        assert [name for name in await fleet.named("ConfigMap") if names.AUTHORIZED_KEYS in name] == []

    on_a_cluster(tmp_path, story, FLEET.replace("replicas: 3", "replicas: 1"))


@pytest.mark.sweep
def test_an_operator_that_was_killed_goes_on_where_it_was(tmp_path: Path):
    """In the middle of a roll, twice; nothing is lost, and no step is repeated."""

    async def story(fleet: Running) -> None:
        await fleet.ready(2)
        await fleet.traffic()
        before = {(await fleet.get("Pod", f"{name}-0"))["metadata"]["uid"] for name in ("edge-0", "edge-1")}
        await fleet.scale(2, profile="large")

        async def begun() -> bool:
            return bool(await fleet.named("LoadBalancingSession"))

        await fleet.until("an edge is emptied", begun)
        fleet.stop(kill=True)
        fleet.start()

        async def one_replaced() -> bool:
            pods = await fleet.api.list("Pod", fleet.namespace, names.BROKER)
            return len(before & {item["metadata"]["uid"] for item in pods}) < 2

        await fleet.until("one edge has been replaced", one_replaced)
        fleet.stop(kill=True)
        fleet.start()

        async def replaced() -> bool:
            pods = await fleet.api.list("Pod", fleet.namespace, names.BROKER)
            return not before & {item["metadata"]["uid"] for item in pods} and await fleet.is_ready(2)

        print(f"rolled after two deaths in {await fleet.until('both are replaced', replaced, 600):.1f} s")
        verdict = await fleet.verdict()
        assert (verdict["lost"], verdict["repeated"], verdict["reordered"], verdict["gaps"]) == (0, 0, 0, [])
        sessions = await fleet.api.list("LoadBalancingSession", fleet.namespace, session_objects.EVACUATION_LABEL)
        for item in sessions:
            print(item["metadata"]["name"], item.get("status"))
        assert len(sessions) == 2  # one for each edge, for any reason

    on_a_cluster(tmp_path, story, FLEET.replace("replicas: 3", "replicas: 2"))


@pytest.mark.sweep
def test_keys_are_replaced_one_edge_after_the_other(tmp_path: Path):
    async def story(fleet: Running) -> None:
        await fleet.ready(2)
        await fleet.traffic()

        async def keys() -> dict[str, str]:
            pods = await fleet.api.list("Pod", fleet.namespace, names.BROKER)
            return {item["metadata"]["name"]: item["metadata"]["annotations"][names.KEY] for item in pods}

        before = await keys()
        asked = {"metadata": {"annotations": {names.ROTATE: "1"}}}
        await fleet.api.patch("EdgeBroker", fleet.namespace, "edge-0", asked)

        async def replaced() -> bool:
            secret = await fleet.get("Secret", "edge-0-keys")
            done = set(secret["data"]) == {names.SECRET_FILE, names.PUBLIC_FILE}
            return done and (await keys()).get("edge-0-0") != before["edge-0-0"] and await fleet.is_ready(2)

        print(f"a new key in {await fleet.until('edge-0 has a new key', replaced, 600):.1f} s")
        after = await keys()
        assert {name for name in after if after[name] != before[name]} == {"edge-0-0"}
        verdict = await fleet.verdict()
        assert (verdict["lost"], verdict["repeated"], verdict["reordered"], verdict["gaps"]) == (0, 0, 0, [])

    on_a_cluster(tmp_path, story, FLEET.replace("replicas: 3", "replicas: 2"))


def test_what_is_wrong_is_said_and_mended_goes_on(tmp_path: Path):
    async def story(fleet: Running) -> None:
        async def says(kind: str, name: str, type_: str, reason: str) -> None:
            async def said() -> bool:
                try:
                    item = await fleet.get(kind, name)
                except ApiNotFoundError:
                    return False
                found = [each for each in item.get("status", {}).get("conditions", []) if each["type"] == type_]
                return [each["reason"] for each in found] == [reason]

            await fleet.until(f"{kind}/{name} says {type_} {reason}", said, 300)

        parts = dict(zip(("fleet", "small", "large", "cluster"), FLEET.split("---"), strict=True))
        cluster = parts["cluster"].replace("replicas: 3", "replicas: 2")
        await fleet.apply("---".join([parts["small"], cluster]))
        await says("BrokerCluster", "east", "Ready", "NoFleet")
        wrong = cluster.replace("head: {profile: small}", "head: {profile: absent}")
        await fleet.apply("---".join([wrong, parts["fleet"]]))
        await says("BrokerCluster", "east", "Ready", "InvalidSpec")
        await says("BrokerFleet", "stocks", "Degraded", "InvalidSpec")
        theirs = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "edge-1", "namespace": fleet.namespace},
                  "spec": {"ports": [{"port": 80}]}}  # fmt: skip
        await fleet.api.create(theirs)
        await fleet.apply(cluster)
        await says("EdgeBroker", "edge-1", "Degraded", "NameTaken")
        assert [each["port"] for each in (await fleet.get("Service", "edge-1"))["spec"]["ports"]] == [80]
        await fleet.api.delete("Service", fleet.namespace, "edge-1")
        await fleet.ready(2)
        await says("BrokerCluster", "east", "Degraded", "AsExpected")
        noted = {item["reason"] for item in await fleet.api.list("Event", fleet.namespace)}
        assert {"NoFleet", "InvalidSpec", "NameTaken"} <= noted

    on_a_cluster(tmp_path, story, "")


@pytest.mark.sweep
def test_a_namespace_is_deleted_without_an_operator(tmp_path: Path):
    async def story(fleet: Running) -> None:
        await fleet.ready(2)
        fleet.stop()
        await fleet.api.delete("Namespace", "", fleet.namespace)

        async def gone() -> bool:
            try:
                await fleet.api.get("Namespace", "", fleet.namespace)
            except ApiNotFoundError:
                return True
            return False

        print(f"gone after {await fleet.until('the namespace has gone', gone):.1f} s")

    on_a_cluster(tmp_path, story, FLEET.replace("replicas: 3", "replicas: 2"))


@pytest.mark.sweep
def test_a_head_that_dies_comes_back_and_no_subscriber_misses_anything_after(tmp_path: Path):
    async def story(fleet: Running) -> None:
        await fleet.ready(2)
        pod = await fleet.get("Pod", "east-head-0")
        edges = [(await fleet.get("Pod", f"{name}-0"))["metadata"]["uid"] for name in ("edge-0", "edge-1")]
        await fleet.api.delete("Pod", fleet.namespace, "east-head-0", grace_seconds=0)

        async def back() -> bool:
            try:
                found = await fleet.get("Pod", "east-head-0")
            except ApiNotFoundError:
                return False
            return found["metadata"]["uid"] != pod["metadata"]["uid"] and observed.is_ready(found)

        print(f"a head is back after {await fleet.until('the head is back', back):.1f} s")
        await fleet.ready(2)
        await fleet.traffic(5)
        verdict = await fleet.verdict()
        assert (verdict["lost"], verdict["repeated"], verdict["reordered"], verdict["gaps"]) == (0, 0, 0, [])
        assert edges == [(await fleet.get("Pod", f"{name}-0"))["metadata"]["uid"] for name in ("edge-0", "edge-1")]

    on_a_cluster(tmp_path, story, FLEET.replace("replicas: 3", "replicas: 2"))


@pytest.mark.sweep
def test_an_edge_that_is_evicted_lets_its_subscribers_go(tmp_path: Path):
    """As by a drain of its node, where the operator has no rights on nodes."""

    async def story(fleet: Running) -> None:
        await fleet.ready(2)
        await fleet.traffic()
        before = await fleet.get("Pod", "edge-0-0")
        assert await fleet.evict("edge-0-0") == HTTPStatus.CREATED
        assert await fleet.evict("edge-1-0") == HTTPStatus.TOO_MANY_REQUESTS  # one at a time

        async def replaced() -> bool:
            try:
                found = await fleet.get("Pod", "edge-0-0")
            except ApiNotFoundError:
                return False
            return found["metadata"]["uid"] != before["metadata"]["uid"] and observed.is_ready(found)

        print(f"an evicted edge is back after {await fleet.until('edge-0 is back', replaced):.1f} s")
        verdict = await fleet.verdict()
        assert (verdict["lost"], verdict["repeated"], verdict["reordered"], verdict["gaps"]) == (0, 0, 0, [])

    on_a_cluster(tmp_path, story, FLEET.replace("replicas: 3", "replicas: 2"))


@pytest.mark.sweep
def test_all_keys_of_a_fleet_are_replaced_under_load_and_nothing_is_lost(tmp_path: Path):
    """Mediator's and clients', edges' one after the other, and the head's while it serves."""

    async def story(fleet: Running) -> None:
        await fleet.ready(2)
        secrets = ("plimsoll-mediator-keys", "east-head-keys", "edge-0-keys", "edge-1-keys")

        async def keys() -> dict[str, str]:
            return {name: (await fleet.get("Secret", name))["data"][names.PUBLIC_FILE] for name in secrets}

        before = await keys()
        await fleet.traffic()
        head = (await fleet.get("Pod", "east-head-0"))["metadata"]["uid"]
        asked = {"metadata": {"annotations": {names.ROTATE: "1"}}}
        await fleet.api.patch("BrokerFleet", fleet.namespace, "stocks", asked)

        async def replaced() -> bool:
            held = [set((await fleet.get("Secret", name))["data"]) for name in secrets]
            return all(each == {names.SECRET_FILE, names.PUBLIC_FILE} for each in held) and not (
                set(before.values()) & set((await keys()).values())
            )

        print(f"all keys are new after {await fleet.until('all keys are new', replaced, 400):.1f} s")
        await fleet.ready(2)
        assert (await fleet.get("Pod", "east-head-0"))["metadata"]["uid"] == head, "it takes its key while it runs"
        verdict = await fleet.verdict()
        assert (verdict["lost"], verdict["repeated"], verdict["reordered"], verdict["gaps"]) == (0, 0, 0, [])

    on_a_cluster(tmp_path, story, FLEET.replace("replicas: 3", "replicas: 2"))


@pytest.mark.sweep
def test_a_cluster_that_is_recreated_at_once_is_not_disturbed_by_the_old_one(tmp_path: Path):
    async def story(fleet: Running) -> None:
        await fleet.ready(1)
        before = (await fleet.get("Pod", "edge-0-0"))["metadata"]["uid"]
        await fleet.api.delete("BrokerCluster", fleet.namespace, "east")
        await fleet.apply(FLEET.split("---")[3].replace("replicas: 3", "replicas: 1"))

        async def recreated() -> bool:
            try:
                found = await fleet.get("Pod", "edge-0-0")
            except ApiNotFoundError:
                return False
            return found["metadata"]["uid"] != before and await fleet.is_ready(1)

        print(f"recreated in {await fleet.until('the cluster is recreated', recreated, 600):.1f} s")
        assert await fleet.condition("BrokerCluster", "east", "Degraded") == "False"

    on_a_cluster(tmp_path, story, FLEET.replace("replicas: 3", "replicas: 1"))


async def quota(fleet: Running, secrets: int | None) -> None:
    """Limit the number of Secrets in the namespace, or remove the limit."""

    def ask() -> None:
        config.load_kube_config(kube.kubeconfig())
        core = client.CoreV1Api()
        if secrets is None:
            core.delete_namespaced_resource_quota("few", fleet.namespace)
            return
        spec = client.V1ResourceQuotaSpec(hard={"count/secrets": str(secrets)})
        body = client.V1ResourceQuota(metadata=client.V1ObjectMeta(name="few"), spec=spec)
        core.create_namespaced_resource_quota(fleet.namespace, body)

    def is_in_force() -> bool:
        config.load_kube_config(kube.kubeconfig())
        status = client.CoreV1Api().read_namespaced_resource_quota("few", fleet.namespace).status
        return bool(status and status.hard)

    await asyncio.to_thread(ask)
    if secrets is not None:
        await fleet.until("the quota is in force", lambda: asyncio.to_thread(is_in_force))


@pytest.mark.sweep
def test_a_secret_that_the_api_server_refuses_stops_no_other(tmp_path: Path):
    """Mediator, two clients, the head and two edges have their keys; the third edge may get some later."""

    async def story(fleet: Running) -> None:
        await quota(fleet, 6)
        await fleet.apply(FLEET)

        async def degraded(kind: str, name: str) -> tuple[str, str]:
            try:
                found = (await fleet.get(kind, name)).get("status", {}).get("conditions", [])
            except ApiNotFoundError:
                return "", ""
            return next(((c["reason"], c["message"]) for c in found if c["type"] == "Degraded"), ("", ""))

        async def others_serve() -> bool:
            edges = [await fleet.condition("EdgeBroker", name) for name in ("edge-0", "edge-1")]
            reason, message = await degraded("EdgeBroker", "edge-2")
            return edges == ["True", "True"] and reason == "Refused" and "edge-2-keys" in message

        print(f"two of three edges serve in {await fleet.until('the others to serve', others_serve):.1f} s")
        for kind, name in (("BrokerCluster", "east"), ("BrokerFleet", "stocks")):
            reason, message = await degraded(kind, name)
            assert reason == "Refused"
            assert "edge-2-keys" in message
        told = [item for item in await fleet.api.list("Event", fleet.namespace) if item["reason"] == "Refused"]
        assert {(item["regarding"]["kind"], item["regarding"]["name"]) for item in told} == {("EdgeBroker", "edge-2")}
        await quota(fleet, None)
        print(f"the third one serves {await fleet.ready(3, 180):.1f} s after it may")
        assert (await degraded("EdgeBroker", "edge-2"))[0] == "AsExpected"

    on_a_cluster(tmp_path, story, "")


@pytest.mark.sweep
def test_an_evacuation_is_not_over_because_no_operator_ran_for_long(tmp_path: Path):
    """It was requested, and no operator ran for longer than it may take: its subscribers are moved all the same."""
    factor = 0.2

    async def story(fleet: Running) -> None:
        await fleet.ready(2)
        await fleet.traffic()

        async def served() -> int:
            return int((await fleet.get("EdgeBroker", "edge-1")).get("status", {}).get("subscribers", 0))

        await fleet.until("edge-1 serves some", served)
        fleet.stop()
        edge, cluster = await fleet.get("EdgeBroker", "edge-1"), await fleet.get("BrokerCluster", "east")
        count = await served()
        session = evacuation.evacuation_session(edge)
        owners = [owner(cluster)]
        metadata = {**session["metadata"], "namespace": fleet.namespace, "ownerReferences": owners}
        made = await fleet.api.create({**session, "metadata": metadata})
        await fleet.scale(1)
        await fleet.api.delete("EdgeBroker", fleet.namespace, "edge-1")
        begun = observed.unix_seconds(made["metadata"]["creationTimestamp"])
        longest = evacuation.LONGEST_SECONDS * factor

        async def late() -> bool:
            return time.time() > begun + longest + 2

        await fleet.until("too much time to pass", late, longest + 30)
        fleet.start()
        print(f"edge-1 has left {await fleet.ready(1):.1f} s after the operator was there again")
        found = (await fleet.get("LoadBalancingSession", made["metadata"]["name"]))["status"]
        assert (found["phase"], found["progress"]["moved"]) == ("Succeeded", count), found
        verdict = await fleet.verdict()
        assert (verdict["lost"], verdict["repeated"], verdict["reordered"], verdict["gaps"]) == (0, 0, 0, [])

    text = FLEET.replace("replicas: 3", "replicas: 2").replace(
        "spec:\n  security", "spec:\n  timeScalePercent: 20\n  security"
    )
    on_a_cluster(tmp_path, story, text)


@pytest.mark.sweep
def test_a_drain_evicts_one_edge_after_the_other(tmp_path: Path):
    """As `kubectl drain` does: all pods are asked for, and asked for again while the disruption budget forbids it."""

    async def story(fleet: Running) -> None:
        await fleet.ready(3)
        await fleet.traffic()
        names = ("edge-0-0", "edge-1-0", "edge-2-0")
        before = {name: (await fleet.get("Pod", name))["metadata"]["uid"] for name in names}
        codes: list[int] = []

        async def evicted() -> bool:
            for name in names:
                with contextlib.suppress(ApiNotFoundError):  # between its end and the next one
                    if (await fleet.get("Pod", name))["metadata"]["uid"] == before[name]:
                        codes.append(await fleet.evict(name))
            pods = {item["metadata"]["uid"] for item in await fleet.api.list("Pod", fleet.namespace, names_of_edges)}
            return not pods & set(before.values())

        names_of_edges = "app.kubernetes.io/component=edge"
        print(f"all evicted in {await fleet.until('all edges are evicted', evicted, 300):.1f} s")
        assert HTTPStatus.TOO_MANY_REQUESTS in codes
        await fleet.ready(3)
        verdict = await fleet.verdict()
        print(verdict)
        assert (verdict["lost"], verdict["repeated"], verdict["reordered"], verdict["gaps"]) == (0, 0, 0, [])

    on_a_cluster(tmp_path, story)


@pytest.mark.sweep
def test_where_nodes_are_read_no_edge_is_evicted_before_it_is_emptied(tmp_path: Path):
    async def story(fleet: Running) -> None:
        fleet.stop()
        fleet.start(PLIMSOLL_READ_NODES="true")
        await fleet.ready(2)

        async def none_at_all() -> bool:
            budget = await fleet.get("PodDisruptionBudget", "east-edges")
            allowed = budget.get("status", {}).get("disruptionsAllowed")
            seen = budget.get("status", {}).get("observedGeneration") == budget["metadata"]["generation"]
            pod = await fleet.get("Pod", "edge-0-0")  # a pod that is not ready may always be evicted
            is_ready = {"type": "Ready", "status": "True"}.items()
            ready = any(is_ready <= each.items() for each in pod["status"].get("conditions", []))
            return seen and ready and budget["spec"]["maxUnavailable"] == 0 and allowed == 0

        await fleet.until("the budget allows no eviction", none_at_all)
        assert await fleet.evict("edge-0-0") == HTTPStatus.TOO_MANY_REQUESTS

    on_a_cluster(tmp_path, story, FLEET.replace("replicas: 3", "replicas: 2"))
