"""One message among all that are sent is found: by its kind, whichever its number is, and in a ROUTE as well."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.simulator.engine.event_queue import EventQueue
from plimsoll.simulator.engine.network import SimulatedConnection, SimulatedNetwork
from plimsoll.simulator.fault_injection.message_watch import STEADY, MessageWatch

KINDS = (msg.Revoke("s", 1, [], "e", "tcp://e", ""), msg.PlaceReply([]), msg.ListSubscribers(1, "e"))
"""Their tags are below 128, above, and that of a control record."""


class Party:
    """An end of a connection."""

    name = "h"

    def on_frame(self, peer: object, frame: bytes, control: bool) -> None:
        """Nothing is read here."""


def sent(network: SimulatedNetwork, *frames: bytes) -> None:
    """What the network does with each frame that is sent."""
    party = Party()
    connection = SimulatedConnection(party, "h", "sim://h", False, random.Random(1))
    for frame in frames:
        for tap in network.taps:
            tap(connection, party, party, frame)


def data(*records: Any) -> bytes:
    return wire.data_frame(1, 0, 1, 0, 9, [wire.encode(record) for record in records], len(records))


@pytest.mark.parametrize("record", KINDS, ids=lambda record: type(record).__name__)
def test_the_nth_of_its_kind_is_found_once(record: Any):
    network, found = SimulatedNetwork(EventQueue(), random.Random(1), STEADY), []
    MessageWatch(network, type(record), 2, lambda: found.append(len(found)))
    other = next(each for each in KINDS if each is not record)
    sent(network, data(other, record), wire.bye_frame(1, "done"), data(record, other))
    assert found == []
    sent(network, data(other), wire.control_frame(record), data(record, record))
    assert found == [0]


def test_one_that_goes_by_heads_counts_on_each_way():
    network, found = SimulatedNetwork(EventQueue(), random.Random(1), STEADY), []
    MessageWatch(network, msg.PlaceReply, 1, lambda: found.append("second"))
    sent(network, data(msg.Route("a", "b", "", msgspec.Raw(wire.encode(KINDS[1])))))
    assert found == []
    sent(network, data(KINDS[1]))
    assert found == ["second"]
