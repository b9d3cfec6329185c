"""Bounds of a head and an edge that hold for every peer: how many of each kind, and how much under way."""

from __future__ import annotations

import msgspec
from tests.core.fleet import STOCK, one_cluster, resume

from plimsoll.core.config import BrokerConfig, BrokerLimits
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.transport.link import FRAME_BYTES
from plimsoll.core.transport.overlay_node import link_limits


def test_an_edge_takes_a_bounded_number_of_subscribers_and_refuses_the_next():
    fleet = one_cluster(max_subscribers=2)
    fleet.identity = ""  # without keys all are one, and may have all
    client = fleet.client("x", "e1")
    client.tell("e1", *(resume(i, f"s{i}") for i in (1, 2, 3)))
    fleet.run(1.0)
    assert [shut.code for shut in client.of("e1", msg.AttachmentClosed)] == ["full"]
    client.tell("e1", resume(4, "s1", n=3))
    fleet.run(1.0)
    assert [shut.code for shut in client.of("e1", msg.AttachmentClosed)] == ["full", "replaced"], (
        "who is there may attach again"
    )


def test_a_head_takes_a_bounded_number_of_publishers_and_refuses_the_next():
    fleet = one_cluster(max_publishers=2)
    fleet.identity = ""
    client = fleet.client("x", "h")
    client.tell("h", *(msg.Open(i, f"p{i}", 1) for i in (1, 2, 3)), msg.Open(4, "p1", 2))
    fleet.run(1.0)
    assert [(said.handle, said.seq, said.code) for said in client.of("h", msg.Refused)] == [(3, 0, "full")]
    assert [said.handle for said in client.of("h", msg.Opened)] == [1, 2, 4]


def test_full_frames_under_way_fit_into_the_inbox():
    limits = BrokerLimits(inbox_bytes=10 * FRAME_BYTES, window_frames=1024)
    config = BrokerConfig(name="h", role="head", cluster="c", data="d", control="c", limits=limits)
    assert link_limits(config).window_frames == 10


def test_a_frame_above_the_credit_is_not_taken():
    """A peer that sends more than its credit is asked to start over from what has arrived."""
    fleet = one_cluster(inbox_bytes=4 * FRAME_BYTES)
    client = fleet.client("x", "h")
    link = client.dialled["h"]
    head = fleet.head()
    peer = next(link.peer for link in head.handshakes.accepted_links() if link.name == "x")
    last = link.next_seq + 3 * 4
    frames = [
        wire.data_frame(link.id, 0, seq, 0, 9, [wire.encode(msg.Open(seq, f"p{seq}", 1))], 1)
        for seq in range(link.next_seq, last + 1)
    ]
    head.receive(peer, frames, head.now)
    assert len(head.publishers) <= 2 * 4 < len(frames)
    assert head.counters["frames_out_of_order"] > 0


def test_a_large_frame_for_many_is_flushed_on_the_way(monkeypatch):
    """What one frame of the stream makes is sealed, or bounded, before all of it has been gathered."""
    monkeypatch.setattr("plimsoll.core.edge.stream_input.ROUND_DELIVERIES", 10)
    fleet = one_cluster(edges=1)
    client, publisher = fleet.client("x", "e1"), fleet.client("y", "h")
    client.tell("e1", *(resume(i, f"s{i}", STOCK) for i in range(1, 9)))
    publisher.tell("h", msg.Open(1, "p", 1))
    fleet.run(1.0)
    edge, most = fleet.edge("e1"), 0
    port = next(iter(edge.attachments.by_link))
    flush = edge.flush

    def watched() -> None:
        nonlocal most
        most = max(most, len(port.buffer))
        flush()

    monkeypatch.setattr(edge, "flush", watched)
    body = wire.encode(msg.Body({"class": "STOCK"}))
    publisher.tell("h", *(msg.Publish(1, n, 0, 0, msgspec.Raw(body)) for n in range(1, 41)))
    fleet.run(1.0)
    assert client.numbers("e1", 8) == list(range(1, 41))
    assert 0 < most <= 20


def test_a_stream_that_cannot_be_read_starts_over():
    """The rest of such a frame is not guessed at: both sides start over, and subscribers go on from their tokens."""
    fleet = one_cluster(edges=1)
    client = fleet.client("x", "e1")
    client.tell("e1", resume(1, "s"))
    fleet.run(1.0)
    edge = fleet.edge("e1")
    head = edge.head
    bad = wire.data_frame(head.id, 0, head.expected, 0, head.credit, [b"\x92\x06\xa1x"], 1)
    edge.receive(head.peer, [bad], edge.now)
    assert edge.counters["streams_unreadable"] == 1
    fleet.run(3.0)
    assert edge.head.open
    assert [shut.code for shut in client.of("e1", msg.AttachmentClosed)] == ["head"]
