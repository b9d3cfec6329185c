"""The definitions at an API server: defaults, columns, scale, explanations, statuses kept whole."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

import pytest
from tests.core.session.model import World
from tests.crds.corpus import FULL, changed, make
from tests.crds.server import CRDS, Server
from tests.crds.structural import defaulted, definitions, schema_of
from tests.crds.test_schema import LEAST
from tests.crds.test_statuses import NOW, SEEN, item

from plimsoll.core.session import status as session_status
from plimsoll.core.spec import KINDS, SourceDocument
from plimsoll.core.spec.parser import parse_each
from plimsoll.mediator import resource_status

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]
Object = dict[str, Any]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_defaults_are_filled_in_as_the_parser_has_them(server: Server, kind: str):
    reply = server.create(make(kind, "least", **LEAST[kind]), dry=True)
    assert reply.accepted, reply.message
    assert reply.content["spec"] == defaulted(schema_of(kind)["properties"]["spec"], LEAST[kind])
    [ours], _ = parse_each([SourceDocument(make(kind, "least", **LEAST[kind]))])
    [theirs], problems = parse_each([SourceDocument(reply.content)])
    assert problems == []
    assert theirs.spec == ours.spec


def test_a_fleet_needs_no_specification(server: Server):
    for kind in ("BrokerFleet", "HardwareProfile"):
        content = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": "bare"}}
        reply = server.create(content, dry=True)
        assert reply.accepted, reply.message
        assert reply.content["spec"] == defaulted(schema_of(kind)["properties"]["spec"], {})


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_names_and_category(server: Server, kind: str):
    resources = server.ask("GET", "/apis/plimsoll.dev/v1alpha1").content["resources"]
    [found] = [each for each in resources if each["name"] == KINDS[kind].plural]
    assert (found["shortNames"], found["categories"]) == ([KINDS[kind].short], ["plimsoll"])
    assert f"{KINDS[kind].plural}/status" in {each["name"] for each in resources}


def table(server: Server, kind: str, name: str) -> dict[str, Any]:
    """A line of `kubectl get -o wide`."""
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    found = server.ask("GET", server.path(kind, name), accept=accept).content
    titles = [column["name"] for column in found["columnDefinitions"]]
    return dict(zip(titles, found["rows"][0]["cells"], strict=True))


def test_columns_tell_the_story_of_a_cluster_and_its_edge(server: Server):
    for kind, name in (("BrokerCluster", "columns"), ("EdgeBroker", "columns")):
        assert server.create(changed(FULL[kind], ("metadata", "name"), name)).accepted
    cluster = resource_status.cluster_status(item("BrokerCluster"), SEEN, [SEEN, SEEN], 1.0, NOW)
    cluster |= {"imbalancePercent": 31, "lastSession": {"name": "s", "reason": "Moved"}}
    edge = resource_status.edge_status(item("EdgeBroker"), SEEN, 1.0, NOW)
    assert server.patch("BrokerCluster", "columns", {"status": cluster}, sub="status").accepted
    assert server.patch("EdgeBroker", "columns", {"status": edge}, sub="status").accepted
    told = table(server, "BrokerCluster", "columns")
    assert {key: told[key] for key in ("Edges", "Up", "Ready", "Reason", "Imbalance%", "Subs", "LastSession")} == {
        "Edges": 2, "Up": 2, "Ready": "True", "Reason": "AllReady", "Imbalance%": 31, "Subs": 8,
        "LastSession": "Moved",
    }  # fmt: skip
    told = table(server, "EdgeBroker", "columns")
    assert {key: told[key] for key in ("Cluster", "Profile", "Ready", "State", "Cordoned", "Subs", "In%", "Out%")} == {
        "Cluster": "east", "Profile": "p", "Ready": "True", "State": "OK", "Cordoned": False, "Subs": 4, "In%": 50,
        "Out%": 25,
    }  # fmt: skip


def test_columns_tell_the_story_of_a_session(server: Server):
    assert server.create(changed(FULL["LoadBalancingSession"], ("metadata", "name"), "columns")).accepted
    status = {
        "source": "w-0", "target": "w-1", "phase": "Draining", "reason": "", "message": "", "planHash": "3f2a9c",
        "progress": {"planned": 9, "moved": 4, "etaSeconds": 12}, "measured": {"errorPercentMax": 3},
        "audit": {"subscribers": 3, "lost": 0, "duplicated": 0, "reordered": 0, "suppressed": 2},
        "conditions": [
            {"type": "Succeeded", "status": "Unknown", "reason": "Draining", "message": "", "observedGeneration": 1,
             "lastTransitionTime": NOW},
        ],
    }  # fmt: skip
    assert server.patch("LoadBalancingSession", "columns", {"status": status}, sub="status").accepted
    told = table(server, "LoadBalancingSession", "columns")
    del told["Age"]
    assert told == {
        "Name": "columns", "Source": "w-0", "Target": "w-1", "Mode": "DryRun", "Phase": "Draining", "Reason": "",
        "Moved": 4, "Planned": 9, "Lost": 0, "ETA": 12, "Err%": 3, "Audited": 3, "Duplicated": 0, "Reordered": 0,
        "Succeeded": "Unknown", "Delivered": None, "Ended": None, "Action": "Rebalance",
        "Trigger": "w-0", "Plan": "3f2a9c", "Message": "",
    }  # fmt: skip


def test_columns_say_of_a_dry_run_that_it_is_over_and_has_only_planned(server: Server):
    world = World(seed=1)
    world.fill("a", 4)
    uid = world.ask("s", source="a", target="b", select={"count": 2}, mode="DryRun")
    world.until_over(uid)
    assert server.create(changed(FULL["LoadBalancingSession"], ("metadata", "name"), "dry")).accepted
    told = session_status(world.session(uid), world.now)
    assert server.patch("LoadBalancingSession", "dry", {"status": told}, sub="status").accepted
    shown = table(server, "LoadBalancingSession", "dry")
    assert {key: shown[key] for key in ("Mode", "Phase", "Reason", "Succeeded", "Moved", "Planned")} == {
        "Mode": "DryRun", "Phase": "Planned", "Reason": "DryRun", "Succeeded": "True", "Moved": 0, "Planned": 2,
    }  # fmt: skip
    assert shown["Ended"], "a plan that waits for its approval has none"
    assert "carries it out" in shown["Message"]


# ---------------------------------------------------------------- scale


def test_scaling_writes_what_the_cluster_reads(server: Server):
    name = "scaled"
    assert server.create(changed(FULL["BrokerCluster"], ("metadata", "name"), name)).accepted
    status = {"status": {"replicas": 2, "selector": "plimsoll.dev/cluster=scaled"}}
    assert server.patch("BrokerCluster", name, status, sub="status").accepted
    scale = server.ask("GET", server.path("BrokerCluster", name, "scale")).content
    assert scale["spec"]["replicas"] == 3
    assert scale["status"] == {"replicas": 2, "selector": "plimsoll.dev/cluster=scaled"}
    wanted = {**scale, "spec": {"replicas": 5}}
    reply = server.ask("PUT", server.path("BrokerCluster", name, "scale"), wanted)
    assert reply.accepted, reply.message
    assert server.get("BrokerCluster", name)["spec"]["scale"] == {"group": "e", "replicas": 5}
    wanted = {**reply.content, "spec": {"replicas": 1001}}
    reply = server.ask("PUT", server.path("BrokerCluster", name, "scale"), wanted)
    assert (reply.code, "1000" in reply.message) == (422, True)


def test_a_cluster_that_was_never_scaled_is_scaled_by_its_first_group(server: Server):
    """`kubectl scale` reads, changes and writes: the object that it reads may have no replicas."""
    name = "unscaled"
    content = changed(changed(FULL["BrokerCluster"], ("spec", "scale"), None), ("metadata", "name"), name)
    assert server.create(content).accepted
    patch = {"spec": {"replicas": 4}}
    reply = server.patch("BrokerCluster", name, patch, sub="scale")
    assert reply.accepted, reply.message
    assert server.get("BrokerCluster", name)["spec"]["scale"] == {"group": "", "replicas": 4}


# ---------------------------------------------------------------- explanations


def test_what_is_explained_is_what_stands_in_the_definitions(server: Server):
    group = server.ask("GET", "/openapi/v3/apis/plimsoll.dev/v1alpha1").content
    for kind, definition in definitions().items():
        published = group["components"]["schemas"][f"dev.plimsoll.v1alpha1.{kind}"]
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        assert published["description"] == schema["description"]
        assert published["properties"]["spec"] == schema["properties"]["spec"]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize(
    ("path", "words"),
    [
        (
            "brokerclusters.spec.edges",
            ["The brokers that subscribers connect to.", "-required-", "replicas\t<integer>"],
        ),
        ("brokerclusters.spec.edges.replicas", ["Number of edges, called NAME-0, NAME-1", "At least 0, at most 1000."]),
        ("brokerfleets.spec.defaults.subscribers", ["More than 0 bytes. Default: 1Mi.", "DropOldest"]),
        (
            "loadbalancingsessions.spec.approval",
            ["a session waits in `Planned` until planHash names its plan."],
        ),
        ("hardwareprofiles.spec", ["CPU limit. More than 0 cores. Default: 1."]),
        ("loadbalancingsessions.status.progress", ["Time for the rest at this rate. In seconds."]),
    ],
)
def test_kubectl_explains_fields(server: Server, path: str, words: list[str]):
    asked = ["kubectl", "explain", "--api-version=plimsoll.dev/v1alpha1", path]
    found = subprocess.run(asked, capture_output=True, text=True, check=False, env={**os.environ}, timeout=300)
    assert found.returncode == 0, found.stderr
    text = " ".join(found.stdout.split(" "))
    shown = " ".join(text.split())
    for each in words:
        assert " ".join(each.split()) in shown, found.stdout


# ---------------------------------------------------------------- waiting


def wait(server: Server, name: str, what: str, seconds: int) -> subprocess.CompletedProcess[str]:
    asked = ["kubectl", "wait", "-n", server.namespace, f"lbs/{name}", f"--for={what}", f"--timeout={seconds}s"]
    return subprocess.run(asked, capture_output=True, text=True, check=False, timeout=300)


def say(server: Server, name: str, answer: str, generation: int) -> None:
    condition = {
        "type": "Succeeded", "status": answer, "reason": "Moved", "message": "", "lastTransitionTime": NOW,
        "observedGeneration": generation,
    }  # fmt: skip
    status = {"status": {"conditions": [condition], "observedGeneration": generation}}
    assert server.patch("LoadBalancingSession", name, status, sub="status").accepted


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_who_waits_for_the_end_is_not_fooled_by_what_was(server: Server):
    """An end for an older specification does not count: the session may have been edited since."""
    name = "waited"
    assert server.create(changed(FULL["LoadBalancingSession"], ("metadata", "name"), name)).accepted
    say(server, name, "Unknown", 1)
    assert wait(server, name, "condition=Succeeded", 1).returncode != 0
    say(server, name, "True", 1)
    assert wait(server, name, "condition=Succeeded", 20).returncode == 0
    assert server.patch("LoadBalancingSession", name, {"spec": {"retries": 2}}).accepted
    assert server.get("LoadBalancingSession", name)["metadata"]["generation"] == 2
    assert wait(server, name, "condition=Succeeded", 1).returncode != 0
    say(server, name, "True", 2)
    assert wait(server, name, "condition=Succeeded", 20).returncode == 0


BOUNDS = ("maxItems", "maxLength", "maxProperties")
DOUBLED = 2
"""The cost of a rule grows at least as fast as the bounds of what it looks at, for texts in lists with their square."""


def with_bounds(schema: Any, factor: int) -> Any:
    """A schema with all its bounds multiplied."""
    if isinstance(schema, list):
        return [with_bounds(each, factor) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value * factor if key in BOUNDS and isinstance(value, int) else with_bounds(value, factor)
        for key, value in schema.items()
    }


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_rules_cost_less_than_half_of_what_an_api_server_allows(server: Server, kind: str):
    """Versions estimate differently, and one that estimates more would refuse the whole definition."""
    definition = definitions()[kind]
    spec = {**definition["spec"], "group": "bounds.example"}
    made = {**definition, "metadata": {"name": f"{KINDS[kind].plural}.bounds.example"}}
    for factor in (1, DOUBLED):
        wider = {**made, "spec": {**spec, "versions": with_bounds(spec["versions"], factor)}}
        reply = server.ask("POST", CRDS, wider, dryRun="All")
        assert reply.accepted, reply.message


def test_the_estimate_is_made_by_this_api_server(server: Server):
    """With bounds ten times as large it refuses a definition, so the test above can fail."""
    definition = definitions()["BrokerCluster"]
    spec = {
        **definition["spec"],
        "group": "bounds.example",
        "versions": with_bounds(definition["spec"]["versions"], 10),
    }
    made = {**definition, "metadata": {"name": "brokerclusters.bounds.example"}, "spec": spec}
    assert "estimated rule cost exceeds budget" in server.ask("POST", CRDS, made, dryRun="All").message
