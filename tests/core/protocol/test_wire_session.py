"""The session of the vectors, played by a client of raw bytes against a real head and a real edge."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.core.fleet import Fleet
from tests.vectors import make

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import LinkLimits
from plimsoll.core.transport.overlay_node import Dial, OverlayNode


class RawClient(OverlayNode):
    """Sends bytes and keeps bytes."""

    def __init__(self) -> None:
        super().__init__(Info("raw", "client", 1), LinkLimits(), lambda: 0, max_frame_bytes=2**20)
        self.heard: dict[str, list[bytes]] = {"h": [], "e1": []}

    def connect(self, broker: str) -> None:
        self._dials.append(Dial(broker, f"mem://{broker}"))

    def receive(self, peer: Any, frames: Any, now: float) -> None:
        self.heard[peer] += frames

    def poll(self, now: float) -> None: ...


def conversation(frames: list[bytes]) -> list[Any]:
    """What was sent, as values: handshakes and records, without heartbeats, acknowledgements and progress."""
    said: list[Any] = []
    for data in frames:
        frame = wire.decode_frame(data)
        if isinstance(frame, wire.Data):
            records = [msgspec.msgpack.decode(raw) for raw in frame.records]
            said += [record for record in records if record[0] != 6]
        elif not isinstance(frame, wire.Ack | wire.Beat):
            said.append(msgspec.msgpack.decode(data))
    return said


@pytest.fixture
def fleet() -> Fleet:
    fleet = Fleet()
    fleet.cluster("h", ["e1"])
    fleet.start("h", "e1")
    fleet.run(1.0)
    assert (fleet.nodes["h"].info.incarnation, fleet.nodes["e1"].info.incarnation) == (11, 12)
    return fleet


def test_real_brokers_answer_as_the_vectors_say(fleet: Fleet):
    client = RawClient()
    fleet.nodes["raw"] = client
    client.connect("h")
    client.connect("e1")
    fleet.round()
    expected: dict[str, list[bytes]] = {"h": [], "e1": []}
    for sender, receiver, _, data in make.SESSION:
        if sender == "client":
            client._out.append((receiver, data))
            fleet.settle()
            fleet.run(0.05)
        else:
            expected[sender].append(data)
            heard = conversation(client.heard[sender])
            wanted = conversation(expected[sender])
            assert heard[: len(wanted)] == wanted
    for broker, frames in expected.items():
        assert conversation(client.heard[broker]) == conversation(frames), broker
        assert {name for name in fleet.nodes[broker].counters if not name.startswith(("said_", "heard_"))} == set()
    (link,) = [link for link in fleet.nodes["h"].handshakes.accepted_links() if link.name == "app-1"]
    assert link.expected == 3
    assert fleet.edge("e1").attachments.by_subscriber == {}


def test_the_records_of_the_session_are_what_their_sender_may_say():
    for sender, receiver, _, data in make.SESSION:
        frame = wire.decode_frame(data)
        if isinstance(frame, wire.Data):
            for raw in frame.records:
                msg.decode(msg.from_client if sender == "client" else msg.to_client, raw)
        assert "client" in (sender, receiver)
