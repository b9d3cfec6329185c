"""Collectors on Kubernetes: the objects for them, the brokers that they may listen to, and changes of the fleet."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operator.world import FLEET, World
from tests.telemetry.test_session_rows import session

from plimsoll.operator import names, status
from plimsoll.operator.objects import collectors
from plimsoll.operator.objects.collectors import FleetCollectorClient
from plimsoll.operator.security.keys import StoredKeys
from plimsoll.telemetry.client.snapshot_poller import PollResult
from plimsoll.telemetry.config import CollectorConfig, config_problems, read_config
from plimsoll.telemetry.credentials import bearer_token

TELEMETRY = {"collectors": {"replicas": 2, "interval": "5s", "volumeClaim": "quotes-data"}, "reportInterval": "5s"}


@pytest.fixture
def world() -> World:
    world = World()
    world.spec("BrokerFleet", "stocks", telemetry=TELEMETRY)
    settled(world)
    return world


def settled(world: World) -> None:
    for _ in range(20):
        steps = world.look()
        if not steps:
            return
        world.carry_out(steps)
        world.controllers()
        world.now += 5
    raise AssertionError(f"it does not settle: {steps}")


def told(world: World, tmp_path: Any, name: str = "stocks-telemetry-1") -> CollectorConfig:
    file = tmp_path / "config.json"
    file.write_text(world.objects["ConfigMap", "stocks-telemetry-config"]["data"]["config.json"])
    return read_config(file, name)


def test_they_are_configured_with_their_heads_and_expected_brokers(world: World, tmp_path):
    config = told(world, tmp_path)
    assert config_problems(config) == []
    assert (config.name, config.index, config.collectors, config.identity) == (
        "stocks-telemetry-1", 1, 2, "plimsoll.collector",
    )  # fmt: skip
    (listened,) = config.clusters.values()
    assert listened.head.control == "tcp://east-head.ns.svc:7401"
    assert listened.brokers == ("east-head", "edge-0", "edge-1", "edge-2")
    assert (config.interval_seconds, config.report_seconds, config.retain_seconds) == (5.0, 5.0, 604800.0)
    keys = world.objects["ConfigMap", names.AUTHORIZED_KEYS]["data"]["authorized_keys"]
    assert [line.split()[1:] for line in keys.splitlines() if "collector" in line] == [
        ["collector", "plimsoll.collector"]
    ]


def test_they_follow_the_fleet_without_a_restart(world: World, tmp_path):
    template = world.objects["StatefulSet", "stocks-telemetry"]["spec"]["template"]
    world.spec("BrokerCluster", "east", edges=[{"name": "edge", "profile": "small", "replicas": 4}])
    settled(world)
    (listened,) = told(world, tmp_path).clusters.values()
    assert "edge-3" in listened.brokers
    assert world.objects["StatefulSet", "stocks-telemetry"]["spec"]["template"] == template


def test_a_pod_may_do_no_more_than_it_must(world: World):
    pods = world.objects["StatefulSet", "stocks-telemetry"]["spec"]
    assert pods["replicas"] == 2
    spec = pods["template"]["spec"]
    assert not spec["automountServiceAccountToken"]
    assert spec["securityContext"]["runAsNonRoot"]
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    volumes = {each["name"]: each for each in spec["volumes"]}
    assert volumes["data"]["persistentVolumeClaim"] == {"claimName": "quotes-data"}
    assert volumes["keys"]["secret"]["secretName"] == names.COLLECTOR_KEYS
    assert [each["key"] for each in volumes["keys"]["secret"]["items"]] == ["secret.key"]


def test_a_pod_leaves_a_lost_node_as_soon_as_brokers_do(world: World):
    spec = world.objects["StatefulSet", "stocks-telemetry"]["spec"]["template"]["spec"]
    assert {each["tolerationSeconds"] for each in spec["tolerations"]} == {10}


def test_without_a_claim_files_go_with_their_pod():
    world = World()
    world.spec("BrokerFleet", "stocks", telemetry={"collectors": {"replicas": 1}})
    settled(world)
    volumes = world.objects["StatefulSet", "stocks-telemetry"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "data", "emptyDir": {}} in volumes


def test_control_ports_are_open_to_them(world: World):
    ingress = world.objects["NetworkPolicy", names.NETWORK_POLICY]["spec"]["ingress"]
    admitted = [source["podSelector"]["matchLabels"] for rule in ingress for source in rule.get("from", [])]
    labels = world.objects["StatefulSet", "stocks-telemetry"]["spec"]["template"]["metadata"]["labels"]
    assert any(wanted.items() <= labels.items() for wanted in admitted)


def test_a_collector_is_reached_on_one_port_and_reaches_only_brokers(world: World):
    spec = world.objects["NetworkPolicy", names.COLLECTOR_POLICY]["spec"]
    pods = world.objects["StatefulSet", "stocks-telemetry"]["spec"]["template"]["metadata"]["labels"]
    assert spec["podSelector"]["matchLabels"].items() <= pods.items()
    assert [each["port"] for rule in spec["ingress"] for each in rule["ports"]] == [7410]
    brokers, dns = spec["egress"]
    assert [each["podSelector"]["matchLabels"]["app.kubernetes.io/name"] for each in brokers["to"]] == [
        "plimsoll-broker"
    ]
    assert [each["port"] for each in brokers["ports"]] == [7401]
    assert {each["port"] for each in dns["ports"]} == {53, 5353}
    assert spec["policyTypes"] == ["Ingress", "Egress"]


def test_collectors_are_no_brokers(world: World):
    assert "stocks-telemetry" not in world.observed().brokers()
    assert "stocks-telemetry" not in world.desired().brokers


def test_a_fleet_that_wants_none_has_none(world: World):
    world.spec("BrokerFleet", "stocks", telemetry={"reportInterval": "5s"})
    settled(world)
    left = [key for key in world.objects if "telemetry" in key[1] or "collector" in key[1]]
    assert [key for key in left if key[0] != "Pod"] == [], "pods go with their StatefulSet"


def test_a_plain_fleet_has_collectors_without_keys(tmp_path):
    world = World(FLEET.replace("  security:\n    clients:\n    - {name: app}", "  security: {plain: true}"))
    world.spec("BrokerFleet", "stocks", security={"plain": True}, telemetry=TELEMETRY)
    settled(world)
    assert told(world, tmp_path).security.plain
    assert ("Secret", names.COLLECTOR_KEYS) not in world.objects


def test_each_collector_has_its_address():
    assert collectors.collector_addresses("stocks", "ns", 2) == (
        ("stocks-telemetry-0.stocks-telemetry.ns.svc", 7410),
        ("stocks-telemetry-1.stocks-telemetry.ns.svc", 7410),
    )


class Sent:
    def __init__(self, where: Any, token: str) -> None:
        self.where, self.token = where(), token
        self.names: list[str] = []
        self.stopped = False
        SENT.append(self)

    def enqueue(self, item: Any) -> None:
        self.names.append(item["metadata"]["name"])

    def stop(self, seconds: float) -> None:
        self.stopped = True


SENT: list[Sent] = []


class Asked:
    def __init__(self, places: Any, wanted: Any) -> None:
        self.places, self.fleet, self.result, self.stopped = places(), wanted.fleet, None, False
        ASKED.append(self)

    def stop(self, seconds: float) -> None:
        self.stopped = True


ASKED: list[Any] = []


def test_collectors_are_asked_with_keys_or_without(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(collectors, "SnapshotPoller", Asked)
    ASKED.clear()
    telling = FleetCollectorClient("ns")
    telling.update("f", 2, None, [])
    telling.update("f", 2, None, [])
    (asker,) = ASKED
    assert (asker.fleet, asker.places) == ("f", collectors.collector_addresses("f", "ns", 2))
    assert telling.status == {}
    asker.result = PollResult(1, None, 2)
    assert telling.status == {"source": "Fold", "reason": "Silent: none of 2 collectors answers"}
    telling.update("f", 0, None, [])
    assert asker.stopped
    assert telling.status == {}


def test_status_says_what_collectors_know_and_no_more(world: World):
    fleet = world.objects["BrokerFleet", "stocks"]
    said = {"source": "Fold", "reason": "Missing: Spark has written none", "brokersSeen": 4, "brokersExpected": 4}
    for telemetry in (said, {}):
        facts = status.StatusInputs(
            desired=world.desired(), observed=world.observed(), telemetry=telemetry, time=world.time
        )
        (written,) = [found for item, found in status.fleet_statuses(facts) if item["kind"] == "BrokerFleet"]
        assert written.get("telemetry", {}) == telemetry
        fleet["status"] = written


def test_sessions_are_sent_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(collectors, "OutcomeSender", Sent)
    monkeypatch.setattr(collectors, "SnapshotPoller", Asked)
    SENT.clear()
    telling, keys = FleetCollectorClient("ns"), StoredKeys("public", "secret")
    telling.update("f", 1, keys, [session("a"), session("b", phase="Draining")])
    telling.update("f", 1, keys, [session("a"), session("b")])
    telling.update("f", 1, keys, [session("b")])
    assert [sent.names for sent in SENT] == [["a", "b"]]
    assert SENT[0].token == bearer_token("secret")
    assert SENT[0].where == ("f-telemetry-0.f-telemetry.ns.svc", 7410)
    telling.update("f", 0, keys, [session("c")])
    assert SENT[0].stopped
    telling.update("f", 2, StoredKeys("public", "other"), [session("b")])
    assert [sent.names for sent in SENT] == [["a", "b"], ["b"]]


def test_without_keys_no_session_is_sent(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(collectors, "OutcomeSender", Sent)
    monkeypatch.setattr(collectors, "SnapshotPoller", Asked)
    SENT.clear()
    FleetCollectorClient("ns").update("f", 1, None, [session("a")])
    assert SENT == []
