"""How brokers are reached: by their own address, by others only on request, and from which peers."""

import pytest
from tests.operator.world import FLEET, World

from plimsoll.operator import names


def world(listener: str = "") -> World:
    made = World(FLEET.replace("  head: {profile: small}", f"  head: {{profile: small}}\n{listener}"))
    made.settle()
    return made


def listeners(text: str) -> str:
    return f"  listeners:\n    brokers:\n    - {{name: edge-0, {text}}}"


def test_a_broker_has_an_address_before_it_is_ready():
    spec = world().objects["Service", "edge-0"]["spec"]
    assert spec["publishNotReadyAddresses"] is True
    assert {each["name"]: each["port"] for each in spec["ports"]} == {"data": 7400, "control": 7401, "http": 7402}
    assert spec["selector"] == {names.BROKER: "edge-0"}


def test_nothing_is_open_to_the_outside_unless_asked_for():
    assert {each for each in world().of("Service") if each.endswith("-external")} == set()


@pytest.mark.parametrize(
    ("port", "kind", "opened"),
    [(31400, "NodePort", {"port": 7400, "nodePort": 31400}), (9000, "LoadBalancer", {"port": 9000})],
)
def test_the_advertised_port_says_how_clients_come_in(port: int, kind: str, opened: dict[str, int]):
    made = world(listeners(f"advertisedHost: brokers.example.com, advertisedPort: {port}"))
    spec = made.objects["Service", "edge-0-external"]["spec"]
    assert spec["type"] == kind
    (given,) = spec["ports"]
    assert given == {"name": "data", "targetPort": "data", "protocol": "TCP", **opened}
    config = made.objects["ConfigMap", "edge-0-config"]["data"][names.CONFIG_FILE]
    assert f"tcp://brokers.example.com:{port}" in config
    made.spec("BrokerCluster", "east", listeners={})
    made.settle()
    assert "edge-0-external" not in made.of("Service")


def test_other_ports_are_everywhere_the_same():
    made = world(listeners("dataPort: 9400, controlPort: 9401"))
    ports = {each["name"]: each["port"] for each in made.objects["Service", "edge-0"]["spec"]["ports"]}
    assert (ports["data"], ports["control"]) == (9400, 9401)
    allowed = made.objects["NetworkPolicy", names.NETWORK_POLICY]["spec"]["ingress"]
    assert {each["port"] for each in allowed[0]["ports"]} == {7400, 9400, 7402}


def test_control_is_for_brokers_collectors_channels_and_the_operator():
    spec = world().objects["NetworkPolicy", names.NETWORK_POLICY]["spec"]
    every_pod, inner = spec["ingress"]
    assert {each["port"] for each in every_pod["ports"]} == {7400, 7402}
    assert [each["port"] for each in inner["ports"]] == [7401]
    assert [each["podSelector"]["matchLabels"].get("app.kubernetes.io/name") for each in inner["from"]] == [
        "plimsoll-broker", "plimsoll-collector", "plimsoll-channels", "plimsoll-operator",
    ]  # fmt: skip
    assert spec["policyTypes"] == ["Ingress", "Egress"]


def test_a_head_with_a_standby_is_reached_where_it_leads_and_asked_by_the_operator_alone():
    made = World(FLEET.replace("head: {profile: small}", "head: {profile: small, standby: 1}"))
    made.settle()
    assert made.objects["Service", "east-head"]["spec"]["selector"] == {
        names.BROKER: "east-head", names.POD_NAME: "east-head-0",
    }  # fmt: skip
    cluster = made.objects["BrokerCluster", "east"]
    made.put({**cluster, "status": {"leadership": {"term": 2, "leader": 1, "leads": 5}}})
    made.settle()
    assert made.objects["Service", "east-head"]["spec"]["selector"][names.POD_NAME] == "east-head-1"
    budget = made.objects["PodDisruptionBudget", "east-head"]["spec"]
    assert (budget["minAvailable"], budget["selector"]) == (1, {"matchLabels": {names.BROKER: "east-head"}})
    *_, asked = made.objects["NetworkPolicy", names.NETWORK_POLICY]["spec"]["ingress"]
    assert [each["port"] for each in asked["ports"]] == [names.PAIR_PORT]
    (operator,) = asked["from"]
    assert operator["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "plimsoll-operator"}
