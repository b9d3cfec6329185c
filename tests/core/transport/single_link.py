"""One side of a link by itself, as tests make it, and what its other side says."""

from __future__ import annotations

from itertools import count

from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport import link_handshake
from plimsoll.core.transport.link import Link, LinkLimits

US, THEM = Info("head", "head", 3), Info("edge", "edge", 5)
LIMITS = LinkLimits(window_bytes=1_000, window_frames=40, heartbeat_seconds=1.0, dead_seconds=10.0, ack_seconds=0.25)
NEVER = float("inf")


def made(*, initiator: bool, limits: LinkLimits = LIMITS) -> Link:
    ids = count(7)
    return Link(b"peer", local=US, limits=limits, initiator=initiator, new_id=lambda: next(ids), now=1.0)


def hello(received: int = 0, link: int = 9) -> wire.Hello:
    frame = wire.decode_frame(wire.hello_frame(link, received, False, THEM))
    assert isinstance(frame, wire.Hello)
    return frame


def hello_ok(link: int, received: int = 0, *, lost: bool = False) -> wire.HelloOk:
    frame = wire.decode_frame(wire.hello_ok_frame(link, received, lost, THEM))
    assert isinstance(frame, wire.HelloOk)
    return frame


def data(seq: int, ack: int = 0, credit: int = 100, flags: int = 0) -> wire.Data:
    frame = wire.decode_frame(wire.data_frame(9, flags, seq, ack, credit, [b"\xc0", b"\xc0"], 2))
    assert isinstance(frame, wire.Data)
    return frame


def accepted(credit: int = 100, limits: LinkLimits = LIMITS) -> Link:
    """An acceptor with an open link, whose peer has given it this credit."""
    link = made(initiator=False, limits=limits)
    link_handshake.answer_hello(link, hello(), 2.0)
    link.acknowledged(0, credit, 2.0)
    return link


def dialled() -> Link:
    link = made(initiator=True)
    link_handshake.say_hello(link, 1.5)
    assert link_handshake.take_answer(link, hello_ok(7), 2.0)[0] is False
    return link


def beginnings(link: Link) -> tuple[object, ...]:
    return (
        link.next_seq, link.acked, link.credit, list(link.unacked), link.inflight_bytes, list(link.buffer),
        link.expected, link.consumed, link.credit_told, link.unacked_in_frames, link.unacked_in_bytes,
        link.ack_due_at, link.resync_asked, link.open, link.was_open,
    )  # fmt: skip


NEW: tuple[object, ...] = (1, 0, 0, [], 0, [], 1, 0, 0, 0, 0, NEVER, -NEVER, False, False)
