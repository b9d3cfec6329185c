"""Sealing: the loop that is written out for a fan-out does what `Link.seal` does, and what it leaves alone is whole."""

from __future__ import annotations

import pytest

from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport import link_handshake
from plimsoll.core.transport.link import FRAME_BYTES, Link, LinkLimits, seal_small

LIMITS = LinkLimits(window_bytes=100_000, window_frames=8)


def opened(flags: int = 0, credit: int = 8) -> Link:
    """An accepted link that has received one frame, so that there is something to acknowledge."""
    link = Link(b"peer", local=Info("edge", "edge", 1), limits=LIMITS, initiator=False, new_id=lambda: 7, now=0.0)
    hello = wire.decode_frame(wire.hello_frame(7, 0, False, Info("client", "client", 2)))
    assert isinstance(hello, wire.Hello)
    link_handshake.answer_hello(link, hello, 0.0)
    link.flags = flags
    first = decoded(wire.data_frame(7, 0, 1, 0, credit, [], 0))
    assert link.accept(first, 50, 1.0)
    return link


def decoded(data: bytes) -> wire.Data:
    frame = wire.decode_frame(data)
    assert isinstance(frame, wire.Data)
    return frame


def state(link: Link) -> tuple[object, ...]:
    return (
        list(link.unacked), link.next_seq, link.inflight_bytes, link.last_progress, link.credit_told, link.ack_due_at,
        link.unacked_in_frames, link.unacked_in_bytes,
    )  # fmt: skip


@pytest.mark.parametrize("flags", [0, wire.FLAG_ACK_NOW])
@pytest.mark.parametrize(
    "records", [[b"\xc0"], [b"\xc0", b"\xa1x", b"\x07"], [b"\xc6\x00\x01\x11\x70" + b"." * 70_000]]
)
def test_the_loop_seals_as_the_link_does(flags: int, records: list[bytes]):
    one, other = opened(flags), opened(flags)
    told: list[int] = []
    one.on_sealed = other.on_sealed = told.append
    out: list[tuple[object, bytes]] = []
    for now in (2.0, 3.0):
        one.buffer += records
        frame = other.seal(records, now)
        assert seal_small([one], now, out) == ([], len(records), len(frame))
        assert out.pop() == (b"peer", frame)
        assert state(one) == state(other)
        assert not one.buffer
        for link in (one, other):
            link.took(1, now)
    assert told == [len(records)] * 2
    assert decoded(frame) == wire.Data(1, wire.DATA, 7, flags, 2, 1, 9, [*decoded(frame).records])
    assert [bytes(raw) for raw in decoded(frame).records] == records


def close(link: Link) -> None:
    link.open = False


def stick(link: Link) -> None:
    link.is_stuck = True


def spend_credit(link: Link) -> None:
    link.credit = link.next_seq - 1


def fill_window(link: Link) -> None:
    link.inflight_bytes = LIMITS.window_bytes


def overfill_a_frame(link: Link) -> None:
    link.buffer += [b"." * (FRAME_BYTES // 2)] * 2


def overfill_with_two(link: Link) -> None:
    link.buffer[:] = [b"." * FRAME_BYTES] * 2


def add_many(link: Link) -> None:
    link.buffer += [b"\xc0"] * 1000


@pytest.mark.parametrize(
    "spoil", [close, stick, spend_credit, fill_window, overfill_a_frame, overfill_with_two, add_many]
)
def test_a_link_that_wants_care_is_left_as_it_is(spoil):
    link, good = opened(), opened()
    for each in (link, good):
        each.buffer.append(b"\xc0")
    spoil(link)
    before, buffer, credit_told = state(link), list(link.buffer), link.credit_told
    out: list[tuple[object, bytes]] = []
    rest, records, _ = seal_small([link, good], 2.0, out)
    assert (rest, records, len(out)) == ([link], 1, 1)
    assert link.buffer == buffer
    assert link.credit_told == credit_told
    assert state(link) == before


def test_the_last_credit_is_used_and_a_frame_is_filled_to_its_bound():
    link = opened(credit=1)
    empty = len(opened(credit=1).seal([b"", b""], 2.0))
    link.buffer += [b".", b"." * (FRAME_BYTES + wire.DATA_HEAD_BYTES - empty - 1)]
    out: list[tuple[object, bytes]] = []
    assert seal_small([link], 2.0, out) == ([], 2, FRAME_BYTES + wire.DATA_HEAD_BYTES)
    link.buffer.append(b".")
    assert seal_small([link], 2.0, out) == ([link], 0, 0), "there is no credit any more"


def test_what_frames_say_of_the_other_direction_follows_what_is_received_and_taken():
    link = opened()
    said = [decoded(link.seal([b"\xc0"], 1.0))]
    assert link.accept(decoded(wire.data_frame(7, 0, 2, 0, 8, [], 0)), 50, 2.0)
    said.append(decoded(link.seal([b"\xc0"], 2.0)))
    link.took(2, 2.0)
    said.append(decoded(link.seal([b"\xc0"], 2.0)))
    assert [(frame.ack, frame.credit) for frame in said] == [(1, 8), (2, 8), (2, 10)]


def test_flags_are_those_of_the_moment():
    link = opened()
    said = []
    for flags in (0, wire.FLAG_ACK_NOW, 0):
        link.flags = flags
        said.append(decoded(link.seal([b"\xc0"], 1.0)).flags)
    assert said == [0, wire.FLAG_ACK_NOW, 0]


@pytest.mark.parametrize("ack", [1, 2, 3])
def test_what_is_acknowledged_leaves_the_window_and_the_rest_stays(ack: int):
    link = opened()
    frames = [link.seal([b"\xa1" + letter], 1.0) for letter in (b"a", b"b", b"c")]
    assert link.acknowledged(ack, 8, 2.0)
    assert list(link.unacked) == frames[ack:]
    assert link.inflight_bytes == sum(map(len, frames[ack:]))
    assert link.last_progress == 2.0
    assert not link.acknowledged(4, 8, 3.0)  # a number that was never sent
    assert list(link.unacked) == frames[ack:]
