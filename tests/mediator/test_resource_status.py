"""Status from observations: which brokers are ready, why not, and how old load data may be."""

import dataclasses

import pytest

from plimsoll.mediator.resource_status import (
    ObservedBroker,
    cluster_status,
    edge_status,
    fleet_status,
    freshness_condition,
    load_summary,
)

READY = ObservedBroker(
    "e", "edge", "c", "small", "tcp://d", "tcp://c", "key", pid=7, answer_age=0.5, serving=True, report_age=0.5
)
HEAD = dataclasses.replace(READY, name="c-head", role="head")
OBJECT = {"metadata": {"name": "e", "generation": 3}}


def conditions(status):
    return {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"pid": None}, "Stopped"),
        ({"pid": None, "waiting_seconds": 2.0}, "Starting"),
        ({"pid": None, "waiting_seconds": 2.0, "last_end": "exited with code 3"}, "BackOff"),
        ({"answer_age": None}, "Starting"),
        ({"answer_age": 5.1}, "NotAnswering"),
        ({"serving": False}, "WaitingForPeers"),
        ({"stopping": True}, "Stopping"),
        ({"pod_ready": False}, "PodNotReady"),
        ({"pod_ready": False, "serving": False}, "WaitingForPeers"),
        ({"answer_age": 4.9}, "Answering"),
    ],
)
def test_readiness_has_a_reason(changes, reason):
    seen = dataclasses.replace(READY, **changes)
    condition = seen.readiness()
    assert condition.reason == reason
    assert (condition.status == "True") == seen.ready == (reason == "Answering")


def test_load_data_is_fresh_for_three_intervals():
    def status(*ages):
        brokers = [dataclasses.replace(READY, name=f"e{n}", report_age=age) for n, age in enumerate(ages)]
        condition = freshness_condition(brokers, 2.0)
        return condition.status, condition.reason, condition.message

    assert status(0.0, 6.0)[:2] == ("True", "Reporting")
    assert status(0.0, 6.1)[:2] == ("False", "Stale")
    assert status(9.0, None)[:2] == ("False", "NoReports")
    assert "e1" in status(0.0, 6.1)[2]
    assert "e0, e1, e2 and 2 more" in status(9, 9, 9, 9, 9)[2]


def test_an_edges_status():
    status = edge_status(OBJECT, dataclasses.replace(READY, report={"state": "BUSY", "subscribers": 4}), 1.0, "10:00")
    assert (status["state"], status["subscribers"], status["pid"], status["observedGeneration"]) == ("BUSY", 4, 7, 3)
    assert conditions(status)["Ready"] == ("True", "Answering")
    assert conditions(status)["Progressing"] == ("False", "Settled")
    silent = edge_status({**OBJECT, "status": status}, dataclasses.replace(READY, answer_age=9.0), 1.0, "10:01")
    assert silent["state"] == "N/A"
    times = {c["type"]: c["lastTransitionTime"] for c in silent["conditions"]}
    assert times == {"Ready": "10:01", "Progressing": "10:00", "LoadDataFresh": "10:00"}


def test_a_cluster_is_as_ready_as_its_brokers():
    starting = dataclasses.replace(READY, name="e1", answer_age=None)
    failing = dataclasses.replace(READY, name="e2", pid=None, waiting_seconds=4.0, last_end="was ended by SIGKILL")
    good = cluster_status(OBJECT, HEAD, [READY], 1.0, "10:00")
    assert conditions(good) == {
        "Ready": ("True", "AllReady"), "Degraded": ("False", "AsExpected"), "Progressing": ("False", "Settled"),
        "LoadDataFresh": ("True", "Reporting"), "TakesPublishers": ("True", "HeadOpen"),
    }  # fmt: skip
    assert (good["endpoint"], good["head"]["name"], good["edges"]) == ("tcp://d", "c-head", {"desired": 1, "ready": 1})
    moving = cluster_status(OBJECT, HEAD, [READY, starting], 1.0, "10:00")
    assert conditions(moving)["Ready"] == ("False", "Starting")
    assert conditions(moving)["Progressing"] == ("True", "Starting")
    assert conditions(moving)["Degraded"][0] == "False"
    bad = cluster_status(OBJECT, HEAD, [READY, starting, failing], 1.0, "10:00")
    assert conditions(bad)["Ready"] == ("False", "BackOff")
    assert conditions(bad)["Degraded"] == ("True", "BackOff")
    degraded = next(c for c in bad["conditions"] if c["type"] == "Degraded")
    assert degraded["message"] == "e2: it was ended by SIGKILL; starts again after 4 s"


def test_a_cluster_all_of_whose_edges_are_cordoned_says_so():
    shut, other = dataclasses.replace(READY, cordoned=True), dataclasses.replace(READY, name="e1")
    told = cluster_status(OBJECT, HEAD, [shut, dataclasses.replace(other, cordoned=True)], 1.0, "10:00")
    assert conditions(told)["Degraded"] == ("True", "NoTarget")
    assert conditions(told)["Ready"] == ("True", "AllReady"), "all brokers answer"
    message = next(each["message"] for each in told["conditions"] if each["type"] == "Degraded")
    assert message == "no edge of c takes new subscribers"
    elsewhere = [dataclasses.replace(each, cluster="d") for each in (HEAD, other)]
    fleet = fleet_status(
        OBJECT, [HEAD, shut, *elsewhere], plain=False, pid=9, mediator={}, interval_seconds=1.0, time=""
    )
    assert conditions(fleet)["Degraded"] == ("True", "NoTarget"), "other clusters have edges, this one has none"


@pytest.mark.parametrize(
    ("changes", "degraded", "adds"),
    [
        ({}, "AsExpected", False),
        ({"answer_age": None}, "AsExpected", False),
        ({"stopping": True}, "NoTarget", True),
        ({"pid": None, "waiting_seconds": 4.0, "last_end": "was ended by SIGKILL"}, "BackOff", True),
        ({"answer_age": 9.0}, "NotAnswering", True),
    ],
    ids=["open", "starting", "leaving", "failing", "silent"],
)
def test_one_edge_is_cordoned_and_what_is_said_depends_on_the_other(changes, degraded, adds):
    other = dataclasses.replace(READY, name="e1", **changes)
    told = cluster_status(OBJECT, HEAD, [dataclasses.replace(READY, cordoned=True), other], 1.0, "10:00")
    assert conditions(told)["Degraded"][1] == degraded
    message = next(each.get("message", "") for each in told["conditions"] if each["type"] == "Degraded")
    assert message.endswith("no edge of c takes new subscribers") is adds


def test_edges_that_are_replaced_are_no_closed_cluster():
    told = cluster_status(OBJECT, HEAD, [dataclasses.replace(READY, stopping=True)], 1.0, "10:00")
    assert conditions(told)["Degraded"] == ("False", "AsExpected")


def test_a_cordoned_head_takes_no_new_publishers_until_it_is_replaced():
    cordoned = {**OBJECT, "spec": {"head": {"cordonedEpoch": 7}}}
    old = cluster_status(cordoned, dataclasses.replace(HEAD, report={"epoch": 7}), [READY], 1.0, "10:00")
    assert conditions(old)["TakesPublishers"] == ("False", "HeadCordoned")
    assert old["head"]["epoch"] == 7
    new = cluster_status(cordoned, dataclasses.replace(HEAD, report={"epoch": 8}), [READY], 1.0, "10:00")
    assert conditions(new)["TakesPublishers"] == ("True", "HeadOpen")


def test_brokers_with_earlier_settings_serve_and_are_not_ready_as_specified():
    old = dataclasses.replace(READY, name="e1", outdated=True)
    edge = edge_status(OBJECT, old, 1.0, "10:00")
    assert conditions(edge)["Ready"] == ("False", "Rolling")
    assert conditions(edge)["Progressing"] == ("True", "Rolling")
    rolling = cluster_status(OBJECT, HEAD, [READY, old], 1.0, "10:00")
    assert conditions(rolling)["Ready"] == ("False", "Rolling")
    assert conditions(rolling)["Progressing"] == ("True", "Rolling")
    assert conditions(rolling)["Degraded"] == ("False", "AsExpected")
    assert rolling["edges"] == {"desired": 2, "ready": 2}, "it serves"
    message = next(each["message"] for each in rolling["conditions"] if each["type"] == "Ready")
    assert message == "3 of 3 brokers are ready; with earlier settings until they are replaced: e1"
    failing = dataclasses.replace(READY, name="e2", answer_age=9.0, outdated=True)
    assert conditions(cluster_status(OBJECT, HEAD, [old, failing], 1.0, ""))["Ready"] == ("False", "NotAnswering")


def test_a_fleet_without_brokers_is_not_ready():
    status = fleet_status(OBJECT, [], plain=False, pid=9, mediator={}, interval_seconds=1.0, time="")
    assert conditions(status)["Ready"] == ("False", "NoBrokers")


def test_a_fleets_status_has_its_security_and_keeps_the_mediators_fields():
    old = {**OBJECT, "status": {"mediatorEpoch": 4, "draining": ["e1"]}}
    status = fleet_status(
        old, [HEAD, READY], plain=True, pid=9, mediator={"pid": 8}, interval_seconds=1.0, time="10:00"
    )
    assert (status["security"], status["mediatorEpoch"], status["supervisor"]) == ("Plain", 4, {"pid": 9})
    assert status["brokers"] == {"desired": 2, "ready": 2}
    assert (status["mediator"], status["draining"]) == ({"pid": 8}, ["e1"])
    assert fleet_status(old, [], plain=False, pid=9, mediator={}, interval_seconds=1, time="")["security"] == "Curve"


def test_loads_are_whole_numbers_with_units():
    report = {"input_utilization": 0.256, "match_delay_seconds": 0.00025, "input_rate": 99.6, "state": "OK", "x": 1}
    assert load_summary(report) == {
        "inputUtilizationPercent": 26, "matchDelayMicroseconds": 250, "publicationsPerSecond": 100,
    }  # fmt: skip
