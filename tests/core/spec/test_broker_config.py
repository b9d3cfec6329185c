"""What each broker process is configured with."""

from fractions import Fraction
from typing import Any

import pytest

from plimsoll.core.config import (
    COMPILER_BYTES,
    PROCESS_BYTES,
    BrokerConfig,
    BrokerHardware,
    BrokerLimits,
    decode,
    encode,
)
from plimsoll.core.spec import (
    BrokerEndpoints,
    Resources,
    SourceDocument,
    broker_configs,
    declared_brokers,
    edge_brokers,
    parse,
    wanted_ports,
)
from plimsoll.core.spec.broker_config import carried_bytes_per_second
from plimsoll.core.spec.status.conditions import Condition, merge_conditions
from plimsoll.core.spec.validation import consistency


def make(kind: str, name: str, **spec: Any) -> SourceDocument:
    content = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    return SourceDocument(content)


ADDRESS = BrokerEndpoints("tcp://127.0.0.1:100", "tcp://127.0.0.1:200")


def chain() -> Resources:
    """Three clusters in a line: a - b - c."""
    return parse(
        [
            make(
                "BrokerFleet", "quotes", timeScalePercent=50,
                defaults={"subscribers": {"whenSlow": "DropOldest", "queueSize": "64Ki"}},
            ),
            make("HardwareProfile", "big", memory="512Mi"),
            make(
                "HardwareProfile", "small", cpu="250m", memory="64Mi",
                bandwidth={"outputBytesPerSecond": "600k", "burst": "5ms"},
                emulation={"base": "1ms", "perSubscription": "2us"},
            ),
            make("BrokerCluster", "b", head={"profile": "big"}, neighbors=[{"name": "c"}, {"name": "a"}]),
            make("BrokerCluster", "c", head={"profile": "small"}, edges=[{"name": "ce", "profile": "small"}]),
            make(
                "BrokerCluster", "a", head={"profile": "big", "logSize": "10Mi"},
                edges=[
                    {"name": "ae", "profile": "small", "replicas": 2},
                    {"name": "none", "profile": "big", "replicas": 0},
                ],
                listeners={"bindAddress": "10.0.0.1", "brokers": [
                    {"name": "a-head", "dataPort": 7000, "controlPort": 7001, "advertisedHost": "quotes.example.org"},
                    {"name": "ae-1", "advertisedPort": 9},
                ]},
            ),
            make("EdgeBroker", "extra", clusterRef={"name": "a"}, profile="big"),
        ]
    )  # fmt: skip


def configs() -> dict[str, BrokerConfig]:
    resources = chain()
    addresses = {
        name: BrokerEndpoints(
            f"tcp://127.0.0.1:{100 + i}", f"tcp://127.0.0.1:{200 + i}", f"key of {name}", f"{name}.key", "auth"
        )
        for i, name in enumerate(wanted_ports(resources))
    }
    return {config.name: config for config in broker_configs(resources, addresses)}


def test_order_is_heads_first():
    assert [place.name for place in declared_brokers(chain())] == [
        "a-head",
        "b-head",
        "c-head",
        "ae-0",
        "ae-1",
        "ce",
        "extra",
    ]
    assert list(configs()) == ["a-head", "b-head", "c-head", "ae-0", "ae-1", "ce", "extra"]


def test_each_link_of_heads_is_told_to_both():
    heads = {name: [peer.name for peer in config.neighbors] for name, config in configs().items()}
    assert heads == {
        "a-head": ["b-head"], "b-head": ["a-head", "c-head"], "c-head": ["b-head"],
        "ae-0": [], "ae-1": [], "ce": [], "extra": [],
    }  # fmt: skip


def test_an_edge_knows_its_head_and_the_head_its_edges():
    told = configs()
    assert told["a-head"].edges == ("ae-0", "ae-1", "extra")
    head = told["ae-1"].head
    assert head is not None
    assert (head.name, head.data, head.control, head.public_key) == (
        "a-head", told["a-head"].data, told["a-head"].control, "key of a-head",
    )  # fmt: skip
    assert told["a-head"].head is None
    assert told["ce"].edges == ()


def test_hardware_and_limits():
    edge = configs()["ce"]
    assert edge.hardware.cpu_millicores == 250
    assert edge.hardware.memory_bytes == 64 * 2**20
    assert edge.hardware.output_bytes_per_second == 600_000
    assert edge.hardware.output_burst_seconds == pytest.approx(0.005)
    assert edge.hardware.input_bytes_per_second is None
    assert edge.hardware.emulation is not None
    assert edge.hardware.emulation.base_seconds == pytest.approx(0.001)
    assert edge.hardware.emulation.per_subscription_seconds == pytest.approx(2e-6)
    assert (edge.limits.slow_policy, edge.limits.queue_bytes) == ("drop-oldest", 65536)
    assert edge.time_factor == 0.5
    assert edge.security.secret_key_file == "ce.key"  # noqa: S105  # a file's name
    assert not edge.security.plain


def test_log_is_as_asked_or_by_the_heads_memory():
    told = configs()
    assert told["a-head"].limits.log_bytes == 10 * 2**20
    assert told["b-head"].limits.log_bytes == 128 * 2**20
    half_of_the_room = (64 - 45) * 2**20 // 2
    assert told["c-head"].limits.log_bytes == half_of_the_room
    assert carried_bytes_per_second(chain(), "c") == pytest.approx(half_of_the_room / 60)


@pytest.mark.parametrize("mebibytes", [64, 128, 255, 256, 320, 512, 1024, 4096])
def test_a_head_with_a_full_log_fits_into_its_memory(mebibytes: int):
    """By default with the compiled loop where there is one; with the largest log that is accepted, without it."""
    memory = mebibytes * 2**20
    default, largest = (int(log(Fraction(memory))) for log in (consistency.default_log, consistency.largest_log))
    assert default <= largest

    def config(log: int) -> BrokerConfig:
        limits, hardware = BrokerLimits(log_bytes=log), BrokerHardware(memory_bytes=memory)
        return BrokerConfig(
            name="h", role="head", cluster="c", data="d", control="c", hardware=hardware, limits=limits
        )  # fmt: skip

    def needed(log: int) -> int:
        return PROCESS_BYTES + log + (COMPILER_BYTES if config(log).may_compile else 0)

    assert config(default).may_compile == (mebibytes >= 256)
    assert needed(default) < memory
    assert needed(largest) < memory


def test_log_grows_to_what_reattaching_needs():
    resources = parse(
        [
            make("HardwareProfile", "p", memory="256Mi", bandwidth={"inputBytesPerSecond": "2M"}),
            make("BrokerCluster", "a", head={"profile": "p"}),
        ]
    )
    [head] = broker_configs(resources, {"a-head": BrokerEndpoints("tcp://127.0.0.1:1", "tcp://127.0.0.1:2")})
    assert head.limits.log_bytes == 120_000_000


def test_ports_and_advertised_addresses():
    wanted = wanted_ports(chain())
    assert (wanted["a-head"].bind_address, wanted["a-head"].data_port, wanted["a-head"].control_port) == (
        "10.0.0.1", 7000, 7001,
    )  # fmt: skip
    assert (wanted["ce"].bind_address, wanted["ce"].data_port) == ("", 0)
    told = configs()
    assert told["a-head"].advertised == "tcp://quotes.example.org:100"
    assert told["ae-1"].advertised == "tcp://127.0.0.1:9"
    assert told["ce"].advertised == told["ce"].data


def test_peers_and_clients_are_told_what_can_be_reached():
    resources = parse(
        [
            make("HardwareProfile", "p"),
            make("BrokerCluster", "a", head={"profile": "p"}, edges=[{"name": "e", "profile": "p"}]),
        ]
    )
    bound = BrokerEndpoints("tcp://*:1", "tcp://*:2", reach_data="tcp://h.example:1", reach_control="tcp://h.example:2")
    head, edge = broker_configs(resources, {"a-head": bound, "e": bound})
    assert (head.data, head.control, head.advertised) == ("tcp://*:1", "tcp://*:2", "tcp://h.example:1")
    assert edge.head is not None
    assert (edge.head.data, edge.head.control) == ("tcp://h.example:1", "tcp://h.example:2")


def test_a_configuration_survives_json():
    for config in configs().values():
        assert decode(encode(config)) == config


def test_edge_brokers_name_their_cluster_as_owner_unless_made_by_hand():
    made = {edge.name: edge for edge in edge_brokers(chain())}
    assert list(made) == ["ae-0", "ae-1", "ce", "extra"]
    assert made["ae-0"].owner == ("BrokerCluster", "a")
    assert made["extra"].owner is None
    whole = [SourceDocument(item.mapping()) for item in [*chain(), *made.values()] if item.name != "extra"]
    assert "ae-0" not in parse(whole).edges  # what a cluster makes is not taken for an edge made by hand


def test_a_condition_keeps_its_transition_time_until_its_status_changes():
    first = merge_conditions([], [Condition("Ready", "False", "Starting")], 1, "10:00")
    second = merge_conditions(first, [Condition("Ready", "False", "Failing")], 2, "10:01")
    third = merge_conditions(second, [Condition("Ready", "True", "AllReady")], 2, "10:02")
    assert [c[0]["lastTransitionTime"] for c in (first, second, third)] == ["10:00", "10:00", "10:02"]
    assert second[0]["reason"] == "Failing"
    assert second[0]["observedGeneration"] == 2


def test_the_policy_is_the_clusters_own_or_else_the_fleets():
    documents = [
        make("BrokerFleet", "quotes", defaults={"policy": {"type": "Random", "random": {"seed": 3}}}),
        make("HardwareProfile", "small"),
        make("BrokerCluster", "a", head={"profile": "small"}, edges=[{"name": "ae", "profile": "small"}]),
        make(
            "BrokerCluster", "b", head={"profile": "small"}, policy={"type": "Padres", "detection": {"interval": "2s"}}
        ),
    ]  # fmt: skip
    resources = parse(documents)
    found = {
        config.name: config.policy
        for config in broker_configs(resources, dict.fromkeys(wanted_ports(resources), ADDRESS))
    }
    assert found["ae"] == found["a-head"] == {"type": "Random", "random": {"seed": 3}}
    assert found["b-head"] == {"type": "Padres", "detection": {"interval": "2s"}}
    assert {config.policy for config in configs().values()} == {None}
