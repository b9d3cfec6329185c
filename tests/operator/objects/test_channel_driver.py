"""The driver of channels as a pod: one for all of them, which follows changes while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.operator.dataset_world import authorized, dataset_world, pod_spec, settled
from tests.operator.world import World

from plimsoll.channels.config import DriverConfig, read_config
from plimsoll.operator import names

NAME = "stocks-channels"


def config_of(world: World, folder: Path) -> DriverConfig:
    file = folder / "config.json"
    file.write_text(world.objects["ConfigMap", f"{NAME}-config"]["data"]["config.json"])
    return read_config(file)


def test_one_driver_has_all_channels_and_asks_all_edges(tmp_path: Path):
    world = dataset_world()
    config = config_of(world, tmp_path)
    assert [each.name for each in config.channels] == ["fires", "floods"]
    assert config.channels[1].tables[0].path == "/data/shelters.csv"
    assert config.channels[0].new_feeds["reports"].path == "/data/feeds/reports"
    assert (config.folder, config.name) == ("/data/channels", "plimsoll.parameters")
    assert [(each.name, each.control, bool(each.public_key)) for each in config.edges] == [
        (f"edge-{number}", f"tcp://edge-{number}.ns.svc:7401", True) for number in range(3)
    ]


def test_it_follows_channels_and_edges_without_a_restart(tmp_path: Path):
    world = dataset_world()
    template = world.objects["StatefulSet", NAME]["spec"]["template"]
    told = world.objects["Pod", f"{NAME}-0"]["metadata"]["annotations"][names.CONFIG_HASH]
    world.delete(("Channel", "floods"))
    world.spec("BrokerCluster", "east", edges=[{"name": "edge", "profile": "small", "replicas": 4}])
    settled(world)
    config = config_of(world, tmp_path)
    assert [each.name for each in config.channels] == ["fires"]
    assert len(config.edges) == 4
    assert world.objects["StatefulSet", NAME]["spec"]["template"] == template
    now = world.objects["Pod", f"{NAME}-0"]["metadata"]["annotations"][names.CONFIG_HASH]
    assert now != told, "the kubelet updates the mounted file at once"


def test_its_identities_may_publish_results_and_list_parameters():
    found = authorized(dataset_world())
    assert ["client", "plimsoll.channels", "publish", "names=channel."] in found
    assert ["collector", "plimsoll.parameters"] in found


def test_it_may_do_no_more_than_it_must():
    spec = pod_spec(dataset_world(), NAME)
    assert not spec["automountServiceAccountToken"], "without executors it needs no rights"
    (container,) = spec["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["startupProbe"]["failureThreshold"] == 300, "Spark may start slowly"
    mounts = {each["name"]: each.get("readOnly", False) for each in container["volumeMounts"]}
    assert mounts == {"tmp": False, "data": False, "config": True, "keys": True, "control-keys": True}


def test_a_new_key_at_edges_restarts_it():
    world = dataset_world()
    template = world.objects["StatefulSet", NAME]["spec"]["template"]
    held = world.objects["Secret", names.PARAMETER_KEYS]
    del world.objects["Secret", names.PARAMETER_KEYS]
    settled(world)
    assert world.objects["Secret", names.PARAMETER_KEYS]["data"] != held["data"]
    assert world.objects["StatefulSet", NAME]["spec"]["template"] != template


@pytest.mark.parametrize("gone", ["volume", "channels"])
def test_without_channels_or_a_volume_there_is_none(gone: str):
    world = dataset_world(datasets={} if gone == "volume" else {"volumeClaim": "records"})
    for channel in world.of("Channel") if gone == "channels" else []:
        world.delete(("Channel", channel))
    settled(world)
    assert NAME not in world.of("StatefulSet")
    assert names.CHANNEL_KEYS not in world.of("Secret")
