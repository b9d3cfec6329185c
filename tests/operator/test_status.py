"""The contents of statuses, and how often they are written."""

import importlib
from typing import Any

import pytest
from tests.operator.world import World

from plimsoll.core.spec.usable import SpecFault, UsableFleet
from plimsoll.operator import names, status
from plimsoll.operator.mediator.broker_poller import BrokerReading
from plimsoll.operator.reconcile.observed import rfc3339, unix_seconds
from plimsoll.operator.reconcile.retries import Fault
from plimsoll.operator.security import keys
from plimsoll.operator.spec_faults import SpecFaults


def heard(**report: Any) -> BrokerReading:
    return BrokerReading(
        {"ready": True}, 0.1, {"state": "OK", "input_utilization": 0.25, "subscribers": 7, **report}, 0.5
    )


def settled() -> World:
    world = World()
    world.settle()
    return world


def told(world: World, **given: Any) -> dict[tuple[str, str], dict[str, Any]]:
    brokers = {name: heard() for name in world.of("StatefulSet")}
    facts = status.StatusInputs(
        desired=world.desired(), observed=world.observed(), **{"time": world.time, "readings": brokers, **given}
    )
    return {(item["kind"], item["metadata"]["name"]): wanted for item, wanted in status.fleet_statuses(facts)}


def condition(found: dict[str, Any], type_: str) -> tuple[str, str]:
    (one,) = [each for each in found["conditions"] if each["type"] == type_]
    return one["status"], one["reason"]


def test_a_fleet_that_serves():
    found = told(settled())
    edge, cluster, fleet = (
        found["EdgeBroker", "edge-0"], found["BrokerCluster", "east"], found["BrokerFleet", "stocks"],
    )  # fmt: skip
    assert condition(edge, "Ready") == ("True", "Answering")
    assert (edge["pod"], edge["node"], edge["subscribers"]) == ("edge-0-0", "n1", 7)
    assert edge["load"]["inputUtilizationPercent"] == 25
    assert cluster["edges"] == {"desired": 3, "ready": 3}
    assert (cluster["replicas"], cluster["subscribers"]) == (3, 21)
    assert condition(cluster, "Ready") == condition(fleet, "Ready") == ("True", "AllReady")
    assert condition(fleet, "Degraded") == ("False", "AsExpected")
    assert fleet["brokers"] == {"desired": 4, "ready": 4}


def test_a_cluster_all_of_whose_edges_are_cordoned_says_so():
    world = settled()
    edges = world.of("EdgeBroker")
    for edge in edges[1:]:
        world.spec("EdgeBroker", edge, cordoned=True)
    assert condition(told(world)["BrokerCluster", "east"], "Degraded") == ("False", "AsExpected")
    world.spec("EdgeBroker", edges[0], cordoned=True)
    found = told(world)
    for item in (found["BrokerCluster", "east"], found["BrokerFleet", "stocks"]):
        assert condition(item, "Degraded") == ("True", "NoTarget")


def test_a_log_in_memory_says_what_is_lost_and_is_written_once():
    world = settled()
    brokers = {name: heard() for name in world.of("StatefulSet")} | {"east-head": heard(log_bytes=5)}
    cluster = told(world, readings=brokers)["BrokerCluster", "east"]
    assert condition(cluster, "LogSafe") == ("False", "LogInMemory")
    assert "its standby" not in str(cluster["conditions"])
    world.objects["BrokerCluster", "east"]["status"] = cluster
    world.now += 1000
    brokers["east-head"] = heard(log_bytes=500)
    assert told(world, readings=brokers)["BrokerCluster", "east"]["conditions"] == cluster["conditions"]


def test_a_pod_that_cannot_run_says_why():
    world = settled()
    world.set_pod("edge-1", ready=False, waiting="ImagePullBackOff")
    found = told(world)
    assert condition(found["EdgeBroker", "edge-1"], "Ready") == ("False", "ImagePullBackOff")
    assert condition(found["BrokerCluster", "east"], "Degraded") == ("True", "ImagePullBackOff")


def test_a_pod_that_is_there_and_does_not_serve_is_not_ready():
    world = settled()
    world.set_pod("edge-1", ready=False)
    found = told(world)
    assert condition(found["EdgeBroker", "edge-1"], "Ready") == ("False", "PodNotReady")
    assert condition(found["BrokerCluster", "east"], "Ready") == ("False", "PodNotReady")
    brokers = {name: heard() for name in world.of("StatefulSet")}
    waits = BrokerReading({"ready": False, "waiting_for": ["east-head"]}, 0.1)
    found = told(settled(), readings={**brokers, "edge-1": waits})
    assert condition(found["EdgeBroker", "edge-1"], "Ready") == ("False", "WaitingForPeers")
    found = told(settled(), readings={**brokers, "edge-1": BrokerReading()})
    assert condition(found["BrokerCluster", "east"], "Ready") == ("False", "Starting")


def test_what_an_earlier_container_said_is_not_about_this_one():
    found = told(settled(), container_seconds={"edge-1": 0.05})
    assert condition(found["EdgeBroker", "edge-1"], "Ready") == ("False", "Starting")
    assert "subscribers" not in found["EdgeBroker", "edge-1"]
    found = told(settled(), container_seconds={"edge-1": 0.3})
    assert condition(found["EdgeBroker", "edge-1"], "Ready") == ("True", "Answering")
    assert condition(found["EdgeBroker", "edge-1"], "LoadDataFresh") == ("False", "NoReports"), "of the one before"


def told_restarts(process: Any, container: dict[str, Any], age: float = 0.1) -> tuple[int, str]:
    """Restarts and last end of an edge that says this of its process; its pod is 10 s old."""
    world = settled()
    pod = world.objects["Pod", "edge-1-0"]
    pod["status"]["containerStatuses"][0] |= container
    at = unix_seconds(pod["metadata"]["creationTimestamp"]) + 10
    said = BrokerReading({"process": process}, age, {"role": "edge"}, 0.1)
    brokers = {name: heard() for name in world.of("StatefulSet")} | {"edge-1": said}
    edge = told(world, readings=brokers, time=rfc3339(at))["EdgeBroker", "edge-1"]
    return edge["restarts"], edge.get("lastEnd", "")


def test_restarts_are_those_of_the_kubelet_and_those_within_the_container():
    ended = {"restartCount": 1, "lastState": {"terminated": {"exitCode": 137}}}
    assert told_restarts({}, ended) == (1, "exited with 137")
    assert told_restarts({"restarts": 1}, ended) == (1, "exited with 137")
    within = {"restarts": 4, "last_end": "was killed by signal 9"}
    assert told_restarts(within, ended) == (4, "was killed by signal 9")
    assert told_restarts(within, ended, age=3.0)[0] == 4, "it does not answer at the moment"
    assert told_restarts(within, ended, age=11.0)[0] == 1, "the pod before said so"


@pytest.mark.parametrize("process", [7, {"restarts": "x", "last_end": 7}, {"restarts": 1e300}, {"restarts": True}])
def test_what_a_broker_says_of_its_restarts_is_checked(process: Any):
    assert told_restarts(process, {}) == (0, "")


def test_what_a_broker_says_of_its_restarts_is_bounded():
    restarts, end = told_restarts({"restarts": 10**15, "last_end": "x" * 10_000 + "\x1b"}, {})
    assert restarts == 2**31 - 1
    assert len(end) <= 500


def test_a_broker_that_cannot_be_read_hinders_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    world, read = settled(), status.observed_broker
    before = told(world)

    def failing(facts: status.StatusInputs, name: str, role: Any) -> Any:
        if name in ("edge-1", "east-head"):
            raise ValueError("no such time")
        return read(facts, name, role)

    with monkeypatch.context() as patched:
        patched.setattr(status, "observed_broker", failing)
        now = told(world)
        assert now.keys() == before.keys()
        assert now["EdgeBroker", "edge-0"] == before["EdgeBroker", "edge-0"]
        assert condition(now["EdgeBroker", "edge-1"], "Ready") == ("False", "PartFailed")
        assert condition(now["BrokerCluster", "east"], "Ready")[0] == "False"
        for item, found in now.items():
            world.objects[item]["status"] = found
        told(world)
    said = [each.getMessage() for each in caplog.records if "cannot be read" in each.getMessage()]
    assert sorted(said) == ["the state of east-head cannot be read", "the state of edge-1 cannot be read"]
    assert told(world) == before


def test_ready_is_of_what_was_acted_on():
    """A profile changes: brokers go on with the earlier one, and neither they nor their measurements are of the new."""
    world = settled()
    world.spec("HardwareProfile", "small", memory="80Mi")
    measured = {"match_base_seconds": 1e-6, "match_seconds_per_match": 1e-6}
    brokers = {name: heard(**measured) for name in world.of("StatefulSet")}
    found = told(world, readings=brokers)
    assert condition(found["EdgeBroker", "edge-1"], "Ready") == ("False", "Rolling")
    assert condition(found["BrokerCluster", "east"], "Ready") == ("False", "Rolling")
    assert condition(found["BrokerFleet", "stocks"], "Ready") == ("False", "Rolling")
    assert condition(found["HardwareProfile", "small"], "Calibrated") == ("False", "Rolling")
    world.settle()
    found = told(world, readings=brokers)
    assert condition(found["BrokerFleet", "stocks"], "Ready") == ("True", "AllReady")
    assert condition(found["HardwareProfile", "small"], "Calibrated") == ("True", "Measured")


def test_a_fleet_without_clusters_is_not_ready():
    world = settled()
    world.delete(("BrokerCluster", "east"))
    world.settle()
    assert condition(told(world)["BrokerFleet", "stocks"], "Ready") == ("False", "NoBrokers")


def test_a_pod_that_is_refused_says_why():
    world = settled()
    del world.objects["Pod", "edge-1-0"]
    said = 'pods "edge-1-0" is forbidden: no PriorityClass with name high was found'
    found = told(world, refusals={"edge-1": said, "edge-0": "an old one, as its pod runs"})
    assert condition(found["EdgeBroker", "edge-1"], "Ready") == ("False", "PodRefused")
    [ready] = [each for each in found["EdgeBroker", "edge-1"]["conditions"] if each["type"] == "Ready"]
    assert ready["message"] == said
    assert condition(found["BrokerCluster", "east"], "Degraded") == ("True", "PodRefused")
    assert condition(found["EdgeBroker", "edge-0"], "Ready") == ("True", "Answering")


@pytest.mark.parametrize(
    "ref",
    [
        ("Service", "edge-0"), ("StatefulSet", "edge-0"), ("Pod", "edge-0-0"), ("ConfigMap", "edge-0-config"),
        ("Secret", "edge-0-keys"), ("Service", "edge-0-external"), ("EdgeBroker", "edge-0"),
    ],
)  # fmt: skip
def test_what_could_not_be_done_is_said_where_it_belongs(ref: tuple[str, str]):
    found = told(settled(), faults={ref: Fault("NameTaken", "another owner has created it")})
    assert condition(found["EdgeBroker", "edge-0"], "Degraded") == ("True", "NameTaken")
    assert condition(found["BrokerCluster", "east"], "Degraded") == ("True", "NameTaken")
    assert not any(each["type"] == "Degraded" for each in found["EdgeBroker", "edge-2"]["conditions"])


def test_what_waits_is_progress():
    waits = {("EdgeBroker", "edge-0"): "session s moves its subscribers"}
    assert condition(told(settled(), blocked=waits)["BrokerCluster", "east"], "Progressing") == ("True", "Rolling")


def test_a_fault_of_one_object_is_said_by_it_and_by_the_fleet_alone():
    fault = SpecFault("InvalidSpec", "spec.memory: no such amount")
    specs = SpecFaults(
        found=UsableFleet(None, {("HardwareProfile", "large"): {}}, {("HardwareProfile", "large"): fault})
    )
    found = told(settled(), specs=specs)
    assert condition(found["HardwareProfile", "large"], "Accepted") == ("False", "InvalidSpec")
    assert condition(found["HardwareProfile", "small"], "Accepted") == ("True", "Accepted")
    assert condition(found["BrokerFleet", "stocks"], "Degraded") == ("True", "InvalidSpec")
    assert condition(found["BrokerCluster", "east"], "Degraded") == ("False", "AsExpected")


def test_loads_are_written_seldom_and_conditions_at_once():
    before: dict[str, Any] = {"metadata": {"name": "e"}, "status": {"state": "OK", "load": {"a": 1}, "conditions": []}}
    louder = {"state": "OK", "load": {"a": 2}, "conditions": []}
    assert not status.is_due(before, louder, 9.9, 10.0)
    assert status.is_due(before, louder, 10.0, 10.0)
    assert status.is_due(before, {**louder, "state": "BUSY"}, 0.0, 10.0)
    assert not status.is_due(before, before["status"], 1e9, 10.0)
    nested = {"status": {"head": {"load": {"a": 1}, "state": "OK"}}}
    assert not status.is_due(nested, {"head": {"load": {"a": 2}, "state": "OK"}}, 0.0, 10.0)


def test_a_new_operator_waits_for_answers_before_it_judges():
    world = settled()
    brokers = {name: heard() for name in world.of("StatefulSet")}
    facts = status.StatusInputs(desired=world.desired(), observed=world.observed(), readings=brokers, time=world.time)
    assert not status.has_silent_broker(facts)
    silent = {**brokers, "edge-1": BrokerReading()}
    facts = status.StatusInputs(desired=world.desired(), observed=world.observed(), readings=silent, time=world.time)
    assert status.has_silent_broker(facts)
    world.set_pod("edge-1", ready=False)  # it does not serve, which is known without an answer
    facts = status.StatusInputs(desired=world.desired(), observed=world.observed(), readings=silent, time=world.time)
    assert not status.has_silent_broker(facts)


def test_a_secret_that_was_deleted_is_told_of_while_the_old_key_is_accepted():
    world = settled()
    secret = world.objects["Secret", names.client_keys("app")]
    secret["metadata"]["annotations"] = {names.DELETED_AT: world.time}
    secret["data"][keys.OLD_PUBLIC] = "b2xk"
    fleet = told(world)["BrokerFleet", "stocks"]
    assert condition(fleet, "KeysReplaced") == ("True", "SecretDeleted")
    world.objects["BrokerFleet", "stocks"]["status"] = fleet
    del secret["data"][keys.OLD_PUBLIC]
    fleet = told(world)["BrokerFleet", "stocks"]
    assert not any(each["type"] == "KeysReplaced" for each in fleet["conditions"])


@pytest.mark.parametrize(
    ("part", "key"),
    [("resource_status.edge_status", ("EdgeBroker", "edge-1")), ("group_status", ("BrokerCluster", "east")),
     ("profile_status", ("HardwareProfile", "small")), ("_keys_condition", ("BrokerFleet", "stocks"))],
)  # fmt: skip
def test_a_status_that_cannot_be_computed_says_so_and_hinders_no_other(
    part: str, key: tuple[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    world = settled()
    module, _, name = f"plimsoll.operator.status.{part}".rpartition(".")
    compute = getattr(importlib.import_module(module.replace("operator.status.resource", "mediator.resource")), name)

    def failing(subject: Any, *rest: Any) -> Any:
        if key[0] == "EdgeBroker" and subject["metadata"]["name"] != key[1]:
            return compute(subject, *rest)
        if key[0] == "HardwareProfile" and subject["metadata"]["name"] != key[1]:
            return compute(subject, *rest)
        raise OverflowError("too large")

    before = told(world)
    for item, found in before.items():
        world.objects[item]["status"] = found
    with monkeypatch.context() as patched:
        patched.setattr(f"{module}.{name}", failing)
        now = told(world)
        assert condition(now[key], "StatusUncomputed") == ("True", "PartFailed")
        assert {item for item in now if "StatusUncomputed" in str(now[item])} == {key}
        assert now.keys() == before.keys()
        world.objects[key]["status"] = now[key]
        told(world)
        assert len([each for each in caplog.records if "cannot be computed" in each.getMessage()]) == 1
    assert "StatusUncomputed" not in str(told(world)[key])


def test_a_status_that_json_does_not_have_says_so_and_hinders_no_other(monkeypatch: pytest.MonkeyPatch):
    world, key = settled(), ("HardwareProfile", "small")
    monkeypatch.setattr("plimsoll.operator.status.profile_status", lambda *_, **__: {"brokers": float("nan")})
    now = told(world)
    assert condition(now[key], "StatusUncomputed") == ("True", "PartFailed")
    assert "brokers" not in now[key]
    assert ("BrokerCluster", "east") in now
