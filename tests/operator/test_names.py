"""Names that other programs rely on."""

from plimsoll.operator import names


def test_objects_of_a_broker():
    assert (names.config_of("e-0"), names.keys_of("e-0"), names.pod_of("e-0"), names.external_of("e-0")) == (
        "e-0-config", "e-0-keys", "e-0-0", "e-0-external",
    )  # fmt: skip
    assert names.host_of("e-0", "ns") == "e-0.ns.svc"
    assert names.client_keys("app") == "plimsoll-client-app"


def test_labels():
    labels = names.broker_labels("stocks", "east", "e-0", "edge")
    assert labels == {
        "app.kubernetes.io/name": "plimsoll-broker", "app.kubernetes.io/instance": "e-0",
        "app.kubernetes.io/component": "edge", "app.kubernetes.io/part-of": "stocks",
        "app.kubernetes.io/managed-by": "plimsoll-operator", "plimsoll.dev/fleet": "stocks",
        "plimsoll.dev/cluster": "east", "plimsoll.dev/broker": "e-0",
    }  # fmt: skip
    assert names.fleet_labels("stocks")["plimsoll.dev/fleet"] == "stocks"
