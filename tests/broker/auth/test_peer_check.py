"""Names are checked against keys in the frames that carry them, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from plimsoll.broker.auth.peer_check import PeerCheck
from plimsoll.core.protocol import messages, wire
from plimsoll.network.auth.authorized_keys import AuthorizedKeys, KeyIdentity


def hello(name: str, role: str = "client") -> bytes:
    return wire.hello_frame(5, 0, False, msgspec.convert({"name": name, "role": role, "incarnation": 1}, wire.Info))


def test_a_hello_must_be_of_the_name_beside_the_key():
    gate = PeerCheck(AuthorizedKeys(Path("none"), {"A": KeyIdentity("client", "ann")}))
    users = {b"1": "A"}
    data = [b"\x98\x01\x00 data", hello("ann"), hello("bob"), hello("ann", "edge"), b"\x92\x01\x02", b""]
    assert gate.admit(b"1", data, users) == [data[0], data[1], b"\x92\x01\x02", b""]
    assert gate.counters["names_refused"] == 2
    peer, answer = gate.answers[0]
    refusal = wire.decode_frame(answer)
    assert isinstance(refusal, wire.Refuse)
    assert (peer, refusal.link, refusal.code) == (b"1", 5, "refused")
    assert gate.admit(b"2", [hello("ann")], users) == []


def test_an_identification_must_be_of_the_name_beside_the_key():
    gate = PeerCheck(AuthorizedKeys(Path("none"), {"M": KeyIdentity("mediator", "m")}))
    users = {b"1": "M"}
    good = wire.control_frame(messages.Identify("m", "mediator", 1), messages.StatusQuery(1))
    bad = wire.control_frame(messages.StatusQuery(1), messages.Identify("h", "head", 1))
    assert gate.admit_control(b"1", good, users)
    assert not gate.admit_control(b"1", bad, users)
    assert not gate.admit_control(b"2", good, users)
    assert gate.admit_control(b"1", b"rubbish", users)


def test_a_collector_says_who_it_is_and_nothing_else():
    gate = PeerCheck(AuthorizedKeys(Path("none"), {"C": KeyIdentity("collector", "c0")}))
    users = {b"1": "C"}
    known = messages.Identify("c0", "collector", 0)
    assert gate.admit_control(b"1", wire.control_frame(known), users)
    for more in (
        messages.StatusQuery(1),
        messages.Leave(),
        messages.ClusterMembers([], []),
        messages.LoadUpdate({"broker": "e"}),
        messages.Identify("c0", "mediator", 9),
        messages.Command(1, 1, "s", "ask"),
    ):
        assert not gate.admit_control(b"1", wire.control_frame(known, more), users), more
    assert gate.counters["commands_of_collectors_refused"] == 5
    assert gate.counters["names_refused"] == 1


@pytest.mark.parametrize("role", ["edge", "head"])
def test_commands_are_of_mediators_alone(role: str):
    gate = PeerCheck(AuthorizedKeys(Path("none"), {"B": KeyIdentity(role, "b"), "M": KeyIdentity("mediator", "m")}))
    users = {b"1": "B", b"2": "M"}
    commands = [
        messages.Leave(), messages.ClusterMembers([], []), messages.Command(1, 1, "s", "ask"),
        messages.ListPublications(1), messages.ListSubscriptions(1), messages.ListParameters(1),
    ]  # fmt: skip
    for record in commands:
        assert not gate.admit_control(b"1", wire.control_frame(messages.Identify("b", role, 1), record), users)
        assert gate.admit_control(b"2", wire.control_frame(record), users)
    assert gate.admit_control(b"1", wire.control_frame(messages.LoadUpdate({"broker": "b"})), users)
    assert gate.admit_control(b"1", wire.control_frame(messages.StatusQuery(1)), users)
    assert gate.counters["commands_of_collectors_refused"] == len(commands)
