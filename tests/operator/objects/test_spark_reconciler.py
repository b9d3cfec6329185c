"""One fleet's Spark job between reconciliations."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.operator.dataset_world import dataset_world
from tests.operator.objects.test_spark_application import APACHE, NAME, Server
from tests.operator.objects.test_spark_jobs import SETTINGS, driver, known, world

from plimsoll.operator.objects import spark_reconciler
from plimsoll.operator.objects.spark_reconciler import SparkReconciler
from plimsoll.operator.settings import OperatorSettings
from plimsoll.telemetry.client.snapshot_poller import PollResult
from plimsoll.telemetry.schema import SetAsideFile, SetAsideList


def test_an_operator_that_may_not_run_spark_sends_no_requests():
    server: Any = Server("spark.apache.org/v1")
    found = world(launcher="SparkApplication")
    one = SparkReconciler(server, "ns", OperatorSettings())
    assert asyncio.run(one.reconcile(found.desired().resources, found.observed(), None)) is None
    said = one.status(found.desired().resources, found.observed(), None)
    assert said is not None
    assert said.condition.reason == "NotAllowed"
    assert server.objects == {}


def test_what_keeps_another_operator_from_it_is_said():
    server: Any = Server()
    found = world(launcher="SparkApplication")
    one = SparkReconciler(server, "ns", SETTINGS)
    asyncio.run(one.reconcile(found.desired().resources, found.observed(), None))
    said = one.status(found.desired().resources, found.observed(), None)
    assert said is not None
    assert said.condition.reason == "NotServed"
    again: Any = Server("spark.apache.org/v1")
    one = SparkReconciler(again, "ns", SETTINGS)
    asyncio.run(one.reconcile(found.desired().resources, found.observed(), None))
    assert (APACHE, NAME) in again.objects


def test_the_driver_of_channels_is_kept_beside_the_live_job():
    server: Any = Server("spark.apache.org/v1")
    datasets = {"volumeClaim": "records", "spark": {"launcher": "SparkApplication"}}
    found = dataset_world(SETTINGS, datasets=datasets)
    desired, one = found.desired(), SparkReconciler(server, "ns", SETTINGS)
    (wanted,) = desired.applications
    asyncio.run(one.reconcile(desired.resources, found.observed(), None, wanted))
    assert set(server.objects) == {(APACHE, "stocks-channels")}
    assert one.channel_obstacle(desired.resources) is None
    asyncio.run(one.reconcile(desired.resources, found.observed(), None))
    assert server.objects == {}
    nowhere: Any = Server()
    one = SparkReconciler(nowhere, "ns", SETTINGS)
    asyncio.run(one.reconcile(desired.resources, found.observed(), None, wanted))
    assert one.channel_obstacle(desired.resources) is not None
    forbidden = SparkReconciler(nowhere, "ns", OperatorSettings()).channel_obstacle(desired.resources)
    assert forbidden is not None
    assert forbidden.reason == "NotAllowed"


def test_a_driver_that_says_nothing_is_to_go(monkeypatch: pytest.MonkeyPatch):
    found = world()
    driver(found)
    monkeypatch.setattr(spark_reconciler, "time", lambda: found.now)
    server: Any = Server()
    one = SparkReconciler(server, "ns", SETTINGS)
    step = asyncio.run(one.reconcile(found.desired().resources, found.observed(), known(found, 500.0)))
    assert step is not None
    assert step.item["kind"] == "Pod"


def test_files_set_aside_are_said_once():
    found = world()
    one = SparkReconciler(Server(), "ns", SETTINGS)  # type: ignore[arg-type]  # a stand-in for the API server
    about = SetAsideFile(file="a.parquet", folder="raw", reason="half written", size_bytes=1, at_us=1, by="live")
    bad = replace(known(found, 5.0), set_aside=SetAsideList(2, [about]))
    assert one.files_set_aside(None) == ""
    assert one.files_set_aside(known(found, 5.0)) == ""
    assert one.files_set_aside(bad) == "files set aside: 2; the newest is a.parquet: half written"
    assert one.files_set_aside(bad) == ""
    assert one.files_set_aside(PollResult(0, None, 1)) == ""
    assert one.files_set_aside(bad) == ""
