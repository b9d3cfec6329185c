import socket

import pytest

from plimsoll.core.spec import BrokerEndpoints, InvalidResourcesError, SourceDocument, parse
from plimsoll.core.spec.broker_config import WantedPorts
from plimsoll.local import ports
from plimsoll.local.ports import PortError, assign_addresses, check_ports


def fleet(**listeners):
    def make(kind, name, **spec):
        content = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        return SourceDocument(content, "f.yaml", lambda path: len(path))

    cluster = make(
        "BrokerCluster", "c", head={"profile": "p"}, edges=[{"name": "e", "profile": "p"}], listeners=listeners
    )
    return parse([make("HardwareProfile", "p"), cluster])


@pytest.fixture
def used():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_free_ports_differ_and_are_below_those_of_outgoing_connections():
    wanted = {name: WantedPorts("", 0, 0) for name in "abc"}
    addresses = assign_addresses("fleet", wanted, {})
    endpoints = [end for address in addresses.values() for end in (address.data, address.control)]
    assert len(set(endpoints)) == 6
    assert all(end.startswith("tcp://127.0.0.1:") and 20_000 <= int(end.split(":")[2]) < 32_000 for end in endpoints)
    assert assign_addresses("fleet", wanted, {}) == addresses
    assert assign_addresses("other", wanted, {}) != addresses


def test_brokers_that_run_keep_their_addresses():
    wanted = {name: WantedPorts("", 0, 0) for name in "abc"}
    before = assign_addresses("fleet", {"b": wanted["b"]}, {})
    after = assign_addresses("fleet", wanted, before)
    assert after["b"] == before["b"]
    assert len({address.data for address in after.values()}) == 3


def test_a_port_in_use_is_located(used):
    check_ports(fleet())
    with pytest.raises(InvalidResourcesError) as caught:
        check_ports(fleet(brokers=[{"name": "c-head"}, {"name": "e", "controlPort": used}]))
    assert (
        f"f.yaml:5: BrokerCluster/c spec.listeners.brokers[1].controlPort: port {used} of 127.0.0.1 is in use"
        in str(caught.value)
    )
    with pytest.raises(PortError, match="in use"):
        assign_addresses("fleet", {"a": WantedPorts("", used, 0)}, {})


@pytest.mark.parametrize("address", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_located(address):
    with pytest.raises(InvalidResourcesError) as caught:
        check_ports(fleet(bindAddress=address))
    [problem] = caught.value.problems
    assert problem.path == ("spec", "listeners", "bindAddress")
    assert f'"{address}" is not an address of this machine' in problem.found
    with pytest.raises(PortError, match="is not an address of this machine"):
        assign_addresses("fleet", {"a": WantedPorts(address, 0, 0)}, {})


def test_what_listens_everywhere_is_reached_by_loopback():
    for host in ports.EVERY_INTERFACE:
        [address] = assign_addresses("f", {"a": WantedPorts(host, 0, 0)}, {}).values()
        port = address.data.rpartition(":")[2]
        assert (address.data, address.reach_data) == (f"tcp://{host}:{port}", f"tcp://127.0.0.1:{port}")
        assert address.reach_control.startswith("tcp://127.0.0.1:")
    assert ports.address_of("tcp://127.0.0.1:1", "tcp://127.0.0.1:2").reach_data == ""


def test_no_free_port(monkeypatch, used):
    monkeypatch.setattr(ports, "LOWEST", used)
    monkeypatch.setattr(ports, "HIGHEST", used + 1)
    with pytest.raises(PortError, match="no free port"):
        assign_addresses("fleet", {"a": WantedPorts("", 0, 0)}, {})


def test_ports_of_running_brokers_are_not_tried():
    taken = assign_addresses("fleet", {"a": WantedPorts("", 0, 0)}, {})
    first = int(taken["a"].data.rpartition(":")[2])
    more = assign_addresses("fleet", {"a": WantedPorts("", 0, 0), "b": WantedPorts("", 0, 0)}, taken)
    assert isinstance(more["b"], BrokerEndpoints)
    assert int(more["b"].data.rpartition(":")[2]) > first + 1
