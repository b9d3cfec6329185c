"""A broker's configuration: read back as it was written, and refused with the field that is wrong."""

from __future__ import annotations

import json

import msgspec
import pytest

from plimsoll.core import config
from plimsoll.core.config import (
    COMPILE_MIN_MEMORY_BYTES,
    BrokerConfig,
    BrokerHardware,
    BrokerLimits,
    DiskLog,
    HardwareEmulation,
    LinkSecurity,
    PeerBroker,
)
from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head

FULL = BrokerConfig(
    name="h",
    role="head",
    cluster="east",
    data="tcp://127.0.0.1:7000",
    control="tcp://127.0.0.1:7001",
    advertised_data="tcp://east.example:7000",
    edges=("e1", "e2"),
    neighbors=(PeerBroker(name="k", data="tcp://k:1", control="tcp://k:2", public_key="x" * 40),),
    hardware=BrokerHardware(output_bytes_per_second=1e6, emulation=HardwareEmulation(base_seconds=0.001)),
    limits=BrokerLimits(slow_policy="drop-oldest", lease_seconds=3.0),
    security=LinkSecurity(plain=True),
    time_factor=0.1,
)


def test_what_is_written_is_read_back_equal():
    assert config.decode(config.encode(FULL)) == FULL
    assert config.decode(config.encode(FULL).decode()) == FULL


def test_what_is_left_out_has_its_default():
    least = config.decode('{"name":"e","role":"edge","cluster":"c","data":"tcp://a:1","control":"tcp://a:2"}')
    assert least.limits == BrokerLimits()
    assert (least.fleet, least.head, least.time_factor) == ("default", None, 1.0)
    assert not least.security.plain, "encrypted unless the configuration says otherwise"


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (("role",), "middle", "$.role"),
        (("limits", "heartbeat_seconds"), "1s", "$.limits.heartbeat_seconds"),
        (("limits", "slow_policy"), "forget", "$.limits.slow_policy"),
        (("limits", "no_such_limit"), 1, "$.limits"),
        (("neighbors", 0, "name"), 5, "$.neighbors[0].name"),
        (("hardware", "emulation", "base"), 1, "$.hardware.emulation"),
        (("nmae",), "h", "nmae"),
    ],
)
def test_what_is_wrong_is_named(path: tuple[str | int, ...], value: object, where: str):
    document = json.loads(config.encode(FULL))
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(msgspec.ValidationError) as caught:
        config.decode(json.dumps(document))
    assert where in str(caught.value)


def test_who_is_the_head_and_where_clients_go():
    edge = BrokerConfig(name="e", role="edge", cluster="c", data="tcp://a:1", control="", head=PeerBroker(name="h"))
    assert (FULL.head_name, edge.head_name) == ("h", "h")
    assert (FULL.advertised, edge.advertised) == ("tcp://east.example:7000", "tcp://a:1")


def test_a_standby_alone_is_enough_only_where_the_log_on_the_disk_may_lag():
    disks = (None, DiskLog(directory="/d", size_bytes=1), DiskLog(directory="/d", size_bytes=1, may_lag=True))
    assert [msgspec.structs.replace(FULL, disk_log=disk).may_lag for disk in disks] == [False, False, True]


def test_what_has_little_memory_compiles_nothing():
    small, enough = (
        BrokerHardware(memory_bytes=COMPILE_MIN_MEMORY_BYTES - 1),
        BrokerHardware(memory_bytes=COMPILE_MIN_MEMORY_BYTES),
    )
    assert (small.may_compile, enough.may_compile, BrokerHardware().may_compile) == (False, True, True)
    for hardware, compiles in ((small, False), (enough, True)):
        head = Head(msgspec.structs.replace(FULL, hardware=hardware), 1, lambda: 1)
        edge = Edge(
            msgspec.structs.replace(FULL, name="e1", role="edge", head=FULL.neighbors[0], hardware=hardware),
            1,
            lambda: 1,
        )
        assert head.routes._index._may_compile is edge.index._may_compile is compiles
