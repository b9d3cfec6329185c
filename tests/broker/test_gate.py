"""Names are checked against keys where they are said, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import msgspec

from plimsoll.broker.gate import Gate
from plimsoll.broker.security import Authority, Identity
from plimsoll.core import records, wire


def hello(name: str, role: str = "client") -> bytes:
    return wire.hello_frame(5, 0, False, msgspec.convert({"name": name, "role": role, "incarnation": 1}, wire.Info))


def test_a_hello_must_be_of_the_name_beside_the_key():
    gate = Gate(Authority(Path("none"), {"A": Identity("client", "ann")}))
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
    gate = Gate(Authority(Path("none"), {"M": Identity("mediator", "m")}))
    users = {b"1": "M"}
    good = wire.control_frame(records.Identify("m", "mediator", 1), records.StatusQuery(1))
    bad = wire.control_frame(records.StatusQuery(1), records.Identify("h", "head", 1))
    assert gate.admit_control(b"1", good, users)
    assert not gate.admit_control(b"1", bad, users)
    assert not gate.admit_control(b"2", good, users)
    assert gate.admit_control(b"1", b"rubbish", users)


def test_a_collector_says_who_it_is_and_nothing_else():
    gate = Gate(Authority(Path("none"), {"C": Identity("collector", "c0")}))
    users = {b"1": "C"}
    known = records.Identify("c0", "collector", 0)
    assert gate.admit_control(b"1", wire.control_frame(known), users)
    for more in (
        records.StatusQuery(1), records.Leave(), records.Members([], []), records.Load({"broker": "e"}),
        records.Identify("c0", "mediator", 9), records.Command(1, 1, "s", "ask"),
    ):  # fmt: skip
        assert not gate.admit_control(b"1", wire.control_frame(known, more), users), more
    assert gate.counters["commands_of_collectors_refused"] == 5
    assert gate.counters["names_refused"] == 1
