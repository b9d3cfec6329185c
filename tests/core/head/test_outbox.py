"""What a head still has to send on one link: order, lost ranges, and what an acknowledgement proves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.head.log import Log, LogEntry
from plimsoll.core.head.outbox import LostRange, Outbox
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport import link_handshake
from plimsoll.core.transport.link import Link, LinkLimits


def open_link(window_bytes: int = 1000, link_id: int = 7, incarnation: int = 1) -> Link:
    """The accepting side of an open link; the other side has given credit for 1000 frames."""
    limits = LinkLimits(window_bytes=window_bytes)
    link = Link(b"peer", local=Info("h", "head", 1), limits=limits, initiator=False, new_id=lambda: 0, now=0.0)
    link_handshake.answer_hello(link, wire.Hello(1, wire.HELLO, link_id, 0, False, Info("n", "head", incarnation)), 0.0)
    link.acknowledged(0, 1000, 0.0)
    return link


def log_of(count: int, kept: int | None = None) -> Log:
    """Entries of 100 bytes; only the last `kept` are still there."""
    log = Log(10**9)
    for i in range(1, count + 1):
        log.append(LogEntry(b"%-100d" % i, ((("h", 1), i),), False))
    if kept is not None:
        while len(log) > kept:
            log._evict()
    return log


def outbox_on(link: Link) -> Outbox:
    outbox = Outbox(link, "n", True)
    outbox.measure()
    return outbox


def seal(outbox: Outbox, count: int) -> int:
    """Seal the first records of the buffer as one frame; returns its number."""
    link = outbox.link
    number = link.next_seq
    link.seal(link.buffer[:count], 0.0)
    del link.buffer[:count]
    outbox.sealed(count)
    return number


def pump(outbox: Outbox, log: Log) -> list[LostRange]:
    holes = []
    for hole in outbox.pump(log):
        outbox.send_gap(hole, b"gap %d-%d" % hole)
        holes.append(hole)
    return holes


def said(outbox: Outbox) -> list[str]:
    return [record.decode().strip() for record in outbox.link.buffer]


def test_what_has_room_is_sent_and_what_has_none_waits():
    outbox, log = outbox_on(open_link(250)), log_of(5)
    sent = [outbox.offer(i, b"%-100d" % i) for i in range(1, 6)]
    assert sent == [True, True, True, False, False], "a record may overdraw the room, the next one waits"
    assert list(outbox.backlog) == [4, 5]
    seal(outbox, 3)
    outbox.link.acknowledged(1, 1000, 0.0)
    outbox.measure()
    assert pump(outbox, log) == []
    assert said(outbox) == ["4", "5"]


def test_in_band_messages_keep_their_place_behind_what_waits():
    outbox, log = outbox_on(open_link(100)), log_of(4)
    outbox.offer(1, b"%-100d" % 1)
    outbox.offer(2, b"%-100d" % 2)
    assert outbox.send(b"cut") is False
    outbox.offer(3, b"%-100d" % 3)
    seal(outbox, 1)
    outbox.link.acknowledged(1, 1000, 0.0)
    outbox.room = 10**6
    assert pump(outbox, log) == []
    assert said(outbox) == ["2", "cut", "3"]


def test_holes_are_split_at_in_band_messages_and_those_are_never_lost():
    outbox, log = outbox_on(open_link(100)), log_of(9, kept=2)
    outbox.room = 0
    for item in (1, 2, b"cut", 4, 5, b"end", 7, 8, 9):
        outbox.send(item) if isinstance(item, bytes) else outbox.offer(item, b"%-100d" % item)
    outbox.room = 10**6
    assert pump(outbox, log) == [LostRange(1, 2), LostRange(4, 5), LostRange(7, 7)]
    assert said(outbox) == ["gap 1-2", "cut", "gap 4-5", "end", "gap 7-7", "8", "9"]


def test_a_backlog_that_does_not_move_is_folded_into_holes_and_stays_bounded():
    link = open_link(100)
    outbox, log = outbox_on(link), Log(50 * 300)
    outbox.room = 0
    for i in range(1, 5001):
        log.append(LogEntry(b"%-100d" % i, ((("h", 1), i),), False))
        outbox.offer(i, b"%-100d" % i)
        if i % 1000 == 500:
            outbox.send(b"message %d" % i)
        outbox.compact(log)
        assert len(outbox.backlog) <= 2 * len(log) + 1024 + 1
    outbox.room = 10**6
    holes = pump(outbox, log)
    assert [hole.low for hole in holes] == [1, 501, 1501, 2501, 3501, 4501]
    assert holes[-1].high == log.first - 1
    assert [s for s in said(outbox) if s.startswith("message")] == [f"message {i}" for i in range(500, 5000, 1000)]
    assert [s for s in said(outbox) if s.isdigit()] == [str(i) for i in range(log.first, 5001)]


@given(st.lists(st.sampled_from(["offer", "tell", "evict", "compact", "pump"]), max_size=60), st.integers(0, 400))
def test_every_position_is_sent_once_in_order_or_inside_one_hole(steps: list[str], room: int):
    outbox, log = outbox_on(open_link(100)), Log(10**9)
    outbox.room = 0
    told: list[str] = []
    for step in [*steps, "pump all"]:
        if step == "offer":
            at = log.append(LogEntry(b"%-100d" % (log.last + 1), (), False))
            outbox.offer(at, b"%-100d" % at)
        elif step == "tell":
            told.append(f"m{len(told)}")
            outbox.send(told[-1].encode())
        elif step == "evict" and len(log) > 1:
            log._evict()
        elif step == "compact":
            outbox.compact(log)
        elif step.startswith("pump"):
            outbox.room = 10**6 if step == "pump all" else room
            pump(outbox, log)
            outbox.room = 0
    line = said(outbox)
    covered: list[int] = []
    for one in line:
        if one.startswith("gap"):
            low, high = map(int, one.removeprefix("gap ").split("-"))
            covered += range(low, high + 1)
        elif one.isdigit():
            covered.append(int(one))
    assert covered == list(range(1, log.last + 1))
    assert [one for one in line if one.startswith("m")] == told


# -- acknowledgements


def test_a_frame_proves_only_what_it_carried():
    """The buffer may hold more than one frame takes: the acknowledgement of the first proves nothing about the rest."""
    outbox = outbox_on(open_link(10**6))
    for i in (1, 2, 3):
        outbox.offer(i, b"%-100d" % i)
    first, second = seal(outbox, 1), seal(outbox, 2)
    assert outbox.settle() == 0
    outbox.link.acknowledged(first, 1000, 0.0)
    assert outbox.settle() == 1
    assert outbox.unacknowledged() == [2, 3]
    outbox.link.acknowledged(second, 1000, 0.0)
    assert outbox.settle() == 3
    assert outbox.unacknowledged() == []


def test_in_band_messages_count_in_frames_but_prove_no_position():
    outbox = outbox_on(open_link(10**6))
    outbox.send(b"hello")
    outbox.offer(1, b"one")
    outbox.send(b"there")
    outbox.offer(2, b"two")
    seal(outbox, 1)
    frame = seal(outbox, 2)
    outbox.link.acknowledged(frame, 1000, 0.0)
    assert outbox.settle() == 1
    assert outbox.unacknowledged() == [2]


def test_a_new_link_is_sent_again_what_was_not_acknowledged_gaps_included():
    log = log_of(6, kept=3)
    outbox = outbox_on(open_link(10**6))
    outbox.room = 0
    for i in range(1, 6):
        outbox.offer(i, b"%-100d" % i)
    outbox.room = 10**6
    pump(outbox, log)
    outbox.room = 0
    outbox.send(b"void")
    outbox.offer(6, b"%-100d" % 6)
    assert outbox.unacknowledged() == [LostRange(1, 3), 4, 5]
    outbox.renew(open_link(10**6, link_id=8), outbox.unacknowledged())
    outbox.measure()
    assert pump(outbox, log) == [LostRange(1, 3)]
    assert said(outbox) == ["gap 1-3", "4", "5", "6"]


@pytest.mark.parametrize("count", [1, 3])
def test_a_hole_is_acknowledged_as_its_last_position(count: int):
    outbox, log = outbox_on(open_link(10**6)), log_of(5, kept=2)
    outbox.room = 0
    for i in range(1, 6):
        outbox.offer(i, b"%-100d" % i)
    outbox.room = 10**6
    pump(outbox, log)
    frame = seal(outbox, count)
    outbox.link.acknowledged(frame, 1000, 0.0)
    assert outbox.settle() == {1: 3, 3: 5}[count]
