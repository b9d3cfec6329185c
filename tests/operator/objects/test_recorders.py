"""Recorders as pods: what they are given, and when they are replaced or go."""

from __future__ import annotations

from pathlib import Path

from tests.operator.dataset_world import authorized, dataset_world, pod_spec, settled

from plimsoll.feeds.config import read_config
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
