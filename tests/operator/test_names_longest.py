"""What is made from the longest accepted names can exist: every name and label of every object, and of its pods."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.operator.dataset_world import OBJECTS, settled
from tests.operator.world import FLEET, World

from plimsoll.core.spec import InvalidResourcesError, SourceDocument, parse
from plimsoll.core.spec.field_info import BROKER_NAME_LENGTH
from plimsoll.operator.names import Object, pod_of
from plimsoll.operator.objects import collectors, recorders, spark_jobs
from plimsoll.operator.objects.channel_launch import driver_name
from plimsoll.operator.objects.manifest import owner
from plimsoll.operator.settings import OperatorSettings
from plimsoll.sparkjobs.launch.spec import live_name

FLEET_NAME, CLUSTER, GROUP, SINGLE, EDGE = "1" + "f" * 62, "c" * 47, "g" * 50, "s" * 52, "e" * 52
SETTINGS = OperatorSettings(spark=True, spark_image="plimsoll/spark:1")
LONGEST = f"""
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {{name: {"p" * 63}}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {{name: {FLEET_NAME}}}
spec:
  security: {{clients: [{{name: {"a" * 63}}}]}}
  datasets: {{volumeClaim: records}}
  telemetry: {{collectors: {{replicas: 2, volumeClaim: data}}}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {{name: {CLUSTER}}}
spec:
  head: {{profile: {"p" * 63}, standby: 1, log: {{disk: {{size: 1Gi}}}}}}
  edges:
  - {{name: {GROUP}, profile: {"p" * 63}, replicas: 3}}
  - {{name: {SINGLE}, profile: {"p" * 63}}}
  listeners: {{brokers: [{{name: {SINGLE}, advertisedHost: edge.example.com, advertisedPort: 30001}}]}}
---
apiVersion: plimsoll.dev/v1alpha1
kind: EdgeBroker
metadata: {{name: {EDGE}}}
spec: {{clusterRef: {{name: {CLUSTER}}}, profile: {"p" * 63}}}
---
{OBJECTS.replace("name: reports", f"name: {'r' * 63}").replace("feed: reports", f"feed: {'r' * 63}")}
"""
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
SERVICE = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
MOST = {"StatefulSet": 52, "CronJob": 52, "SparkApplication": 52, "Service": 63, "Pod": 63}
"""The names of others may have 253 characters."""


def labels_of(value: object) -> Iterator[tuple[str, str]]:
    """All labels, and those that selectors ask for, at any depth."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("labels", "matchLabels") and isinstance(inner, dict):
                yield from inner.items()
            yield from labels_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from labels_of(inner)


def faults(item: Object) -> list[str]:
    """What an API server, or the controller of the object, would refuse of it."""
    kind, name = item["kind"], item["metadata"]["name"]
    found = [f"{kind}: {name}"] if len(name) > MOST.get(kind, 253) else []
    if kind in ("Service", "StatefulSet") and not SERVICE.fullmatch(name):
        found.append(f"{kind}: {name} is no label of DNS")
    for key, text in labels_of(item):
        if len(text) > 63 or not LABEL.fullmatch(text):
            found.append(f"{kind} {name}: label {key}={text}")
    return found


@pytest.mark.parametrize("launcher", ["Kubernetes", "SparkOperator", "SparkApplication"])
def test_all_objects_of_the_longest_names_can_exist(launcher: str):
    world = World(LONGEST, SETTINGS)
    spec = world.objects["BrokerFleet", FLEET_NAME]["spec"]
    telemetry = {**spec["telemetry"], "spark": {"launcher": launcher}}
    datasets = {**spec["datasets"], "spark": {"launcher": launcher}}
    world.spec("BrokerFleet", FLEET_NAME, telemetry=telemetry, datasets=datasets)
    settled(world)
    metadata = {"namespace": "ns", "ownerReferences": [owner(world.objects["BrokerFleet", FLEET_NAME])]}
    resources = world.desired().resources
    made = [*world.objects.values(), *world.desired().applications]
    made += [each for each in [spark_jobs.spark_application(resources, world.settings, metadata)] if each is not None]
    assert {f"{CLUSTER}-head", f"{GROUP}-2", SINGLE, EDGE} <= set(world.of("StatefulSet"))
    assert len({item["kind"] for item in made}) > 12
    assert [fault for item in made for fault in faults(item)] == []


def test_a_pods_label_has_room_for_the_hash_of_its_revision():
    assert len("x" * BROKER_NAME_LENGTH + "-" + str(2**32 - 1)) <= 63
    assert len(pod_of("x" * BROKER_NAME_LENGTH, 1)) <= 63


def document(kind: str, **changes: Any) -> Iterator[SourceDocument]:
    for item in yaml.safe_load_all(FLEET):
        item = copy.deepcopy(item)
        if item["kind"] == kind:
            item["metadata"]["name"] = changes.get("name", item["metadata"]["name"])
            item["spec"] |= changes.get("spec", {})
        yield SourceDocument(item, "fleet.yaml")


GROUPS: dict[str, list[Object]] = {
    "longer": [{"name": "g" * 53, "profile": "small"}],
    "numbered": [{"name": "g" * 50, "profile": "small", "replicas": 11}],
    "digit": [{"name": "0g", "profile": "small"}],
}


@pytest.mark.parametrize(
    ("changes", "path", "found"),
    [
        ({"name": "c" * 48}, ("metadata", "name"), "53 characters"),
        ({"name": "0c"}, ("metadata", "name"), "does not begin with a letter"),
        ({"spec": {"edges": GROUPS["longer"]}}, ("spec", "edges", 0, "name"), ""),
        ({"spec": {"edges": GROUPS["numbered"]}}, ("spec", "edges", 0, "name"), "53 characters"),
        ({"spec": {"edges": [{**GROUPS["numbered"][0], "replicas": 1}], "scale": {"replicas": 11}}},
         ("spec", "edges", 0, "name"), "53 characters"),
        ({"spec": {"edges": GROUPS["digit"]}}, ("spec", "edges", 0, "name"), ""),
    ],
)  # fmt: skip
def test_longer_names_are_refused_where_they_are_written(changes: Object, path: tuple[object, ...], found: str):
    with pytest.raises(InvalidResourcesError) as raised:
        parse(document("BrokerCluster", **changes))
    assert raised.value.problems[0].path == path
    assert found in raised.value.problems[0].found


def test_names_that_fit_are_as_they_were():
    assert collectors.collector_name("stocks") == "stocks-telemetry"
    assert collectors.collector_name("f" * 42) == "f" * 42 + "-telemetry"
    assert driver_name("stocks") == "stocks-channels"
    assert recorders.recorder_name("stocks", "reports") == "stocks-recorder-reports"
    assert live_name("f" * 41) == "f" * 41 + "-spark-live"
