"""Recorders as pods: what they are given, and when they are replaced or go."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tests.operator.dataset_world import authorized, dataset_world, pod_spec, settled

from plimsoll.feeds.config import read_config
from plimsoll.operator import names
from plimsoll.operator.objects.recorders import recorder_name

NAME = "stocks-recorder-reports"


def test_each_feed_has_one_with_its_configuration(tmp_path: Path):
    world = dataset_world()
    file = tmp_path / "config.json"
    file.write_text(world.objects["ConfigMap", f"{NAME}-config"]["data"]["config.json"])
    config = read_config(file)
    assert (config.path, config.subscription) == ("/data/feeds/reports", "[class,=,'REPORT']")
    assert (config.connection, config.http) == ("/etc/plimsoll/keys", "tcp://0.0.0.0:7420")
    assert config.subscriber.startswith("recorder.feed-")
    spec = pod_spec(world, NAME)
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "records"}} in spec["volumes"]
    assert spec["containers"][0]["image"] == "plimsoll/collector:dev"


def test_its_identity_may_subscribe_under_names_of_its_own_and_nothing_else():
    world = dataset_world()
    assert ["client", "plimsoll.recorder", "subscribe", "names=recorder."] in authorized(world)
    secret = world.objects["Secret", "plimsoll-recorder-keys"]["data"]
    assert {"secret.key", "public.key", "heads.json"} <= set(secret)


CLIENTS = [
    {"name": "all"}, {"name": "desk", "roles": ["Read"], "feeds": ["reports"]}, {"name": "ann", "feeds": ["other"]},
    {"name": "bob", "roles": ["Publish"]},
]  # fmt: skip


def test_it_serves_its_dataset_to_those_who_may_read_it():
    world = dataset_world(security={"clients": CLIENTS})
    service = world.objects["Service", NAME]["spec"]
    assert [each["port"] for each in service["ports"]] == [7421]
    pod = world.objects["StatefulSet", NAME]["spec"]["template"]
    assert service["selector"].items() <= pod["metadata"]["labels"].items()
    assert {"name": "feed", "containerPort": 7421, "protocol": "TCP"} in pod["spec"]["containers"][0]["ports"]
    config = json.loads(world.objects["ConfigMap", f"{NAME}-config"]["data"]["config.json"])["serving"]
    endpoint = f"tcp://{NAME}.ns.svc:7421"
    assert config == {
        "endpoint": "tcp://*:7421", "advertised": endpoint, "key": "/etc/plimsoll/keys/secret.key",
        "readers": "/etc/plimsoll/authorized/feed_readers",
    }  # fmt: skip
    key = base64.b64decode(world.objects["Secret", "plimsoll-recorder-keys"]["data"]["public.key"]).decode().strip()
    for client, reads in (("all", True), ("desk", True), ("ann", False), ("bob", False)):
        data = world.objects["Secret", f"plimsoll-client-{client}"]["data"]
        listed = json.loads(base64.b64decode(data["feeds.json"])) if "feeds.json" in data else {}
        assert listed == ({"reports": {"endpoint": endpoint, "publicKey": key}} if reads else {})


def test_it_has_the_readers_alone_of_the_authorized_keys_and_hears_of_a_change_at_once():
    world = dataset_world(security={"clients": CLIENTS})
    volumes = {each["name"]: each for each in pod_spec(world, NAME)["volumes"]}
    assert volumes["readers"]["configMap"]["items"] == [{"key": "feed_readers", "path": "feed_readers"}]
    lines = world.objects["ConfigMap", names.AUTHORIZED_KEYS]["data"][names.READERS_FILE].splitlines()
    told = {line.split()[2]: line.split()[3:] for line in lines}
    assert told == {
        "all": ["read"], "desk": ["read", "feeds=reports"], "ann": ["read", "feeds=other"], "bob": ["none"],
        "plimsoll.recorder": ["none"], "plimsoll.channels": ["none"],
    }  # fmt: skip
    before = world.objects["Pod", f"{NAME}-0"]["metadata"]["annotations"][names.KEYS_HASH]
    broker = world.objects["Pod", "east-head-0"]["metadata"]["annotations"][names.KEYS_HASH]
    world.spec("BrokerFleet", "stocks", datasets={"volumeClaim": "records"}, security={"clients": CLIENTS[1:]})
    world.spec("BrokerFleet", "stocks", datasets={"volumeClaim": "records"}, security={"clients": [
        {"name": "all", "feeds": []}, *CLIENTS[1:]
    ]})  # fmt: skip
    settled(world)
    assert world.objects["Pod", f"{NAME}-0"]["metadata"]["annotations"][names.KEYS_HASH] != before
    assert world.objects["Pod", "east-head-0"]["metadata"]["annotations"][names.KEYS_HASH] == broker


def test_its_port_is_open_and_that_of_no_other_pod():
    world = dataset_world()
    spec = world.objects["NetworkPolicy", names.FEED_POLICY]["spec"]
    assert spec["podSelector"]["matchLabels"]["app.kubernetes.io/name"] == "plimsoll-recorder"
    assert spec["ingress"] == [{"ports": [{"port": 7421, "protocol": "TCP"}]}]
    world.delete(("Feed", "reports"))
    settled(world)
    assert names.FEED_POLICY not in world.of("NetworkPolicy")
    assert NAME not in world.of("Service")


def test_a_change_restarts_it_and_that_of_another_feed_does_not():
    world = dataset_world()
    before = world.objects["StatefulSet", NAME]["spec"]["template"]
    world.put({**world.objects["Feed", "reports"], "metadata": {"name": "more"}, "spec": {"subscription": "[a,=,1]"}})
    settled(world)
    assert world.objects["StatefulSet", NAME]["spec"]["template"] == before
    world.spec("Feed", "reports", retain={"age": "1h"})
    settled(world)
    assert world.objects["StatefulSet", NAME]["spec"]["template"] != before


def test_it_goes_with_its_feed_and_the_channels_of_the_feed_are_told():
    world = dataset_world()
    world.delete(("Feed", "reports"))
    settled(world)
    assert [name for name in world.of("StatefulSet") if "recorder" in name or "channels" in name] == []
    assert "plimsoll-recorder-keys" not in world.of("Secret")
    assert "plimsoll-parameter-keys" not in world.of("Secret")


def test_a_fleet_without_keys_says_so_in_the_connection_file():
    world = dataset_world(security={"plain": True})
    data = world.objects["ConfigMap", f"{NAME}-config"]["data"]
    assert '"security": "plain"' in data["connection.json"]
    assert "tcp://east-head.ns.svc:7400" in data["connection.json"]
    assert [each["name"] for each in pod_spec(world, NAME)["volumes"]] == ["tmp", "data", "config"]


def test_a_long_name_gets_a_hash_and_stays_another_than_that_of_its_like():
    first, second = recorder_name("stocks", "a" * 60 + "b"), recorder_name("stocks", "a" * 60 + "c")
    assert len(first) == 50
    assert first != second
