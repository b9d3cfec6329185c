from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import zmq

from plimsoll.client import Address, Curve
from plimsoll.client.errors import SecurityError
from plimsoll.client.io_driver import (
    LONGEST_WAIT_SECONDS,
    ClientIODriver,
    head_addresses,
    new_id,
    new_incarnation,
    unique_name,
)

NO_HEAD = "tcp://127.0.0.1:1"


@pytest.fixture
def engine() -> Iterator[ClientIODriver]:
    engine = ClientIODriver(NO_HEAD, "me", "plain", None)
    yield engine
    engine.leave()


@pytest.mark.parametrize("heads", [NO_HEAD, Address(NO_HEAD), [NO_HEAD], (Address(NO_HEAD),)])
def test_heads_may_be_written_in_several_ways(heads: Any):
    assert list(head_addresses(heads)) == [Address(NO_HEAD)]


def test_names_are_made_up_and_differ(engine: ClientIODriver):
    assert unique_name() != unique_name()
    assert engine.own_name("p") == "me/p1"
    assert engine.own_name("s") == "me/s2"


def test_incarnations_rise_and_fit_into_the_wire():
    first = new_incarnation()
    assert first <= new_incarnation() < 2**63
    assert 0 <= new_id() < 2**32
    assert len({new_id() for _ in range(100)}) > 95


def test_a_round_dials_and_says_who_is_waited_for(engine: ClientIODriver):
    assert engine.round() == []
    assert len(engine.transport.dealers) == 1
    assert engine.where() == f"no head answers at {NO_HEAD}"
    assert engine.status()["plain"] is True
    engine.machine.refusal = "not you"
    assert engine.where().endswith("; last refusal: not you")


def test_it_waits_no_longer_than_needed(engine: ClientIODriver):
    engine.round()
    assert 0 <= engine.seconds_to_next() <= LONGEST_WAIT_SECONDS
    engine.more = True
    assert engine.seconds_to_next() == 0.0


def test_with_curve_a_key_of_the_head_is_needed_and_silence_is_explained():
    public, secret = (key.decode() for key in zmq.curve_keypair())
    with pytest.raises(SecurityError, match="public key is missing"):
        ClientIODriver(NO_HEAD, "", Curve(secret=secret), None)
    engine = ClientIODriver(Address(NO_HEAD, public), "", Curve(secret=secret), None)
    try:
        engine.round()
        assert "a wrong key looks like silence" in engine.where()
        assert engine.status()["plain"] is False
    finally:
        engine.leave()
