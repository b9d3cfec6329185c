"""Objects of Spark operators: written if the API server serves them, a fault if it does not, and deleted."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest
from tests.operator.objects.test_spark_jobs import SETTINGS, metadata, world

from plimsoll.operator.api import ApiNotFoundError
from plimsoll.operator.kinds import api_path, kind_of
from plimsoll.operator.names import Object
from plimsoll.operator.objects import spark_jobs
from plimsoll.operator.objects.spark_application import SparkApplications

KUBEFLOW, APACHE = "SparkApplication.sparkoperator.k8s.io", "SparkApplication.spark.apache.org"
NAME = "stocks-spark-live"


class Server:
    """What an API server keeps of these kinds; `served`: the groups that it knows."""

    def __init__(self, *served: str) -> None:
        self.served = served
        self.objects: dict[tuple[str, str], Object] = {}
        self.asked: list[str] = []

    async def serves(self, version: str) -> bool:
        return version in self.served

    async def get(self, kind: str, namespace: str, name: str) -> Object:
        if (kind, name) not in self.objects:
            raise ApiNotFoundError(name)
        return self.objects[kind, name]

    async def apply(self, item: Object) -> Object:
        self.asked.append("apply")
        key = kind_of(item["apiVersion"], item["kind"]), item["metadata"]["name"]
        self.objects[key] = copy.deepcopy({**item, "metadata": {**item["metadata"], "uid": "u"}})
        return self.objects[key]

    async def delete(self, kind: str, namespace: str, name: str, *, uid: str) -> None:
        self.asked.append("delete")
        del self.objects[kind, name]


def wanted(launcher: str) -> Object:
    found = world(launcher=launcher)
    item = spark_jobs.spark_application(found.desired().resources, SETTINGS, metadata(found))
    assert item is not None
    return item


def look(applications: SparkApplications, item: Object | None) -> Any:
    return asyncio.run(applications.reconcile(item, NAME))


def test_two_operators_call_their_kind_alike_and_are_told_apart():
    assert api_path(KUBEFLOW, "ns", "a") == "/apis/sparkoperator.k8s.io/v1beta2/namespaces/ns/sparkapplications/a"
    assert api_path(APACHE, "ns", "a") == "/apis/spark.apache.org/v1/namespaces/ns/sparkapplications/a"
    assert kind_of("v1", "Pod") == "Pod"


def test_it_is_written_once_mended_and_taken_away():
    server: Any = Server("spark.apache.org/v1", "sparkoperator.k8s.io/v1beta2")
    applications, item = SparkApplications(server, "ns"), wanted("SparkApplication")
    assert look(applications, item) is None
    assert look(applications, item) is None
    assert server.asked == ["apply"]
    server.objects[APACHE, NAME]["spec"]["driverArgs"] = ["sleep"]
    assert look(applications, item) is None
    assert server.asked == ["apply", "apply"]
    other = wanted("SparkOperator")
    assert look(applications, other) is None
    assert set(server.objects) == {(KUBEFLOW, NAME)}, "never two of them on one checkpoint"
    assert look(applications, None) is None
    assert look(applications, None) is None
    assert server.asked == ["apply", "apply", "delete", "apply", "delete"]


@pytest.mark.parametrize("launcher", ["SparkApplication", "SparkOperator"])
def test_an_operator_that_is_not_there_is_named(launcher: str):
    server: Any = Server()
    lack = look(SparkApplications(server, "ns"), wanted(launcher))
    assert lack.reason == "NotServed"
    assert wanted(launcher)["apiVersion"] in lack.message
    assert server.asked == []


def test_another_owners_object_is_left_alone():
    server: Any = Server("spark.apache.org/v1")
    theirs = {"apiVersion": "spark.apache.org/v1", "kind": "SparkApplication", "metadata": {"name": NAME, "uid": "x"}}
    server.objects[APACHE, NAME] = theirs
    assert look(SparkApplications(server, "ns"), wanted("SparkApplication")).reason == "NameTaken"
    assert look(SparkApplications(server, "ns"), None) is None
    assert server.objects[APACHE, NAME] == theirs
