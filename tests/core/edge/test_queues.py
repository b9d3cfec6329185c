"""Queues of an edge: turns, policies at the bound, and the way back to the stream."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from plimsoll.core.config import BrokerConfig, BrokerLimits, PeerBroker
from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment, LinkAttachments, PendingEnd
from plimsoll.core.edge.catchup_cursor import CatchupCursor
from plimsoll.core.edge.queues import DeliveryQueues, QueueOutcomes
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.messages import Fetched
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport import link_handshake
from plimsoll.core.transport.link import Link, LinkLimits


class Bench:
    """An edge's queues with one client link; `publish` is what the stream does."""

    def __init__(self, window: int = 10**6, **limits: Any) -> None:
        self.now, self.position, self.head_epoch = 0.0, 0, 7
        self.config = BrokerConfig(
            name="e", role="edge", cluster="h", data="", control="", head=PeerBroker(name="h"),
            limits=BrokerLimits(**{"link_buffer_bytes": 2000, "queue_bytes": 2000, "block_seconds": 5.0, **limits}),
        )  # fmt: skip
        self.counters: Counter[str] = Counter()
        self.dirty: dict[Link, None] = {}
        self.gone: list[EdgeAttachment] = []
        self.full: list[EdgeAttachment] = []
        self.link = Link(
            b"c", local=Info("e", "edge", 1), limits=LinkLimits(window_bytes=window), initiator=False,
            new_id=lambda: 1, now=0.0,
        )  # fmt: skip
        link_handshake.answer_hello(self.link, wire.Hello(1, wire.HELLO, 1, 0, False, Info("c", "client", 1)), 0.0)
        self.link.acknowledged(0, 10**6, 0.0)
        self.port = LinkAttachments(self.link)
        self.cursor = CatchupCursor()
        self.queues = DeliveryQueues(self, self.cursor, {self.link: self.port})
        self.queues.outcomes = QueueOutcomes(self.disconnect, self.buffer_full, self.ended)

    def disconnect(self, attachment: EdgeAttachment) -> None:
        self.gone.append(attachment)
        attachment.state, attachment.out = AttachmentState.CLOSED, self.queues.void
        attachment.clear()
        self.port.queued.pop(attachment, None)
        del self.port.by_id[attachment.id]

    def buffer_full(self, attachment: EdgeAttachment) -> None:
        self.full.append(attachment)

    def ended(self, attachment: EdgeAttachment) -> None:
        assert attachment.pending_end is not None
        if not self.queues.end(attachment, lambda: end_of(attachment)):
            self.link.buffer.append(end_of(attachment))

    def attach(self, number: int, policy: str = "block") -> EdgeAttachment:
        made = EdgeAttachment(f"s{number}", number, self.link, (1, 2), 1, self.queues.void)
        made.apply(msg.Policy(policy), self.config.limits, 1.0)
        made.front_epoch = 7
        self.port.by_id[number] = made
        self.queues.live(made)
        return made

    def publish(self, count: int = 1, size: int = 100) -> None:
        for _ in range(count):
            self.position += 1
            body = msgspec.Raw(wire.encode(msg.Body({}, b"x" * size)))
            record = wire.encode(msg.Pub(self.position, "h", 7, self.position, "p", 1, self.position, 0, 0, body))
            for one in self.port.by_id.values():
                one.out.append(one.deliver_prefix + record)

    def end_round(self, send: bool = True) -> None:
        """Tick, then flush what the link takes: all or nothing."""
        self.queues.tick()
        if send and self.link.buffer:
            self.link.buffer.clear()
            self.port.recount()
            self.port.stuck_since = None
        elif self.link.buffer:
            self.queues.stuck(self.port)

    def taken(self, number: int, sent: list[bytes]) -> list[int | msg.Gap]:
        deliveries = [msg.decode(msg.to_client, record) for record in sent]
        items = [d.item for d in deliveries if isinstance(d, msg.Deliver) and d.attachment == number]
        return [item if isinstance(item, msg.Gap) else item.position for item in items]


def state_of(attachment: EdgeAttachment) -> AttachmentState:
    return attachment.state


def test_who_keeps_up_has_no_queue():
    bench = Bench()
    one = bench.attach(1)
    assert one.out is bench.link.buffer
    bench.publish(3)
    assert bench.taken(1, bench.link.buffer) == [1, 2, 3]
    bench.end_round()
    assert bench.port.queued == {}


def test_a_stuck_links_buffer_is_bounded_however_long_it_is_stuck():
    bench = Bench()
    one, two = bench.attach(1), bench.attach(2)
    bench.publish(1)
    bench.end_round(send=False)
    for _ in range(50):
        bench.publish(1)
        bench.end_round(send=False)
    assert sum(map(len, bench.link.buffer)) < 2000 + 1000
    assert bench.port.behind
    assert one.state is two.state is AttachmentState.BLOCKED
    assert one.count_queue() < 2000 + 300


def test_what_was_queued_comes_in_order_and_in_turns():
    bench = Bench(link_buffer_bytes=1000, queue_bytes=10**5)
    bench.attach(1)
    bench.attach(2)
    bench.port.behind = True
    for one in bench.port.by_id.values():
        bench.queues.route(one)
    bench.publish(200, size=1)
    sent: list[bytes] = []
    turns: list[int] = []
    for _ in range(400):
        bench.queues.tick()
        sent += bench.link.buffer
        turns += [msg.decode(msg.to_client, record).attachment for record in bench.link.buffer]
        bench.link.buffer.clear()
    assert bench.taken(1, sent) == bench.taken(2, sent) == list(range(1, 201))
    assert {1, 2} <= set(turns[:140]), "neither waits until the other is done"
    assert not bench.port.behind
    assert all(one.out is bench.link.buffer for one in bench.port.by_id.values())


def test_a_paused_subscriber_alone_is_held():
    bench = Bench()
    one, two = bench.attach(1), bench.attach(2)
    one.paused = True
    bench.queues.route(one)
    bench.publish(5)
    bench.end_round(send=False)
    assert bench.taken(2, bench.link.buffer) == [1, 2, 3, 4, 5]
    assert bench.taken(1, bench.link.buffer) == []
    one.paused = False
    bench.queues.refill(bench.port)
    bench.queues.route(one)
    bench.publish(1)
    bench.queues.refill(bench.port)
    assert bench.taken(1, bench.link.buffer) == [1, 2, 3, 4, 5, 6]
    assert two.out is bench.link.buffer


def test_block_stops_at_the_bound_and_the_rest_is_fetched_after_the_queue():
    bench = Bench()
    one = bench.attach(1)
    one.paused = True
    bench.queues.route(one)
    bench.publish(30)
    bench.end_round()
    assert state_of(one) is AttachmentState.BLOCKED
    assert one.position == 30
    queued = len(one.queue)
    bench.publish(10)
    bench.end_round()
    assert len(one.queue) == queued == 30
    one.paused = False
    bench.queues.refill(bench.port)
    bench.link.buffer.clear()
    while one.queue:
        bench.queues.refill(bench.port)
        bench.link.buffer.clear()
    assert state_of(one) is AttachmentState.CATCHUP
    fetch = bench.cursor.begin()
    assert fetch is not None
    assert fetch.after == 30
    for done in bench.cursor.end(Fetched(fetch.cursor, 40, True)):
        bench.queues.live(done)
    assert state_of(one) is AttachmentState.LIVE
    assert one.out is bench.link.buffer


def test_block_that_lasts_is_one_gap_that_grows():
    bench = Bench()
    one = bench.attach(1)
    one.paused = True
    bench.queues.route(one)
    bench.publish(30)
    bench.end_round()
    size = one.count_queue()
    for _ in range(20):
        bench.now += 6.0
        bench.publish(10)
        bench.end_round()
        assert one.count_queue() < size + 150
    last = msg.decode(msg.to_client, one.queue[-1])
    assert isinstance(last, msg.Deliver)
    assert last.item == msg.Gap("h", 7, 31, 7, 230, [], "blocked")
    assert one.position == 230


def test_drop_oldest_keeps_the_newest():
    bench = Bench()
    one = bench.attach(1, "drop-oldest")
    one.paused = True
    bench.queues.route(one)
    for _ in range(10):
        bench.publish(10)
        bench.end_round()
    assert one.state is AttachmentState.LIVE
    assert one.count_queue() <= 2000
    one.paused = False
    bench.queues.refill(bench.port)
    first, *rest = bench.taken(1, bench.link.buffer)
    assert isinstance(first, msg.Gap)
    assert (first.low, first.high) == (1, 100 - len(rest) - len(one.queue))
    assert rest == list(range(first.high + 1, first.high + 1 + len(rest)))


def test_disconnect_is_told_to_the_edge():
    bench = Bench()
    one, two = bench.attach(1, "disconnect"), bench.attach(2)
    one.paused = True
    bench.queues.route(one)
    bench.publish(30, size=10)
    bench.publish(1, size=2000)
    bench.end_round()
    assert bench.gone == [one]
    assert two.state is AttachmentState.LIVE


@pytest.mark.parametrize("state", [AttachmentState.RESUMING, AttachmentState.CATCHUP, AttachmentState.BLOCKED])
def test_the_stream_passes_over_who_is_not_live(state: AttachmentState):
    bench = Bench()
    one = bench.attach(1)
    one.state = state
    bench.queues.route(one)
    bench.publish(5)
    assert one.queue == bench.link.buffer or (not one.queue and not bench.link.buffer)
    bench.queues.tick()
    assert len(bench.queues.void) == 1, "nothing piles up there"


def test_a_link_that_is_over_is_forgotten():
    bench = Bench()
    bench.attach(1)
    bench.publish(1)
    bench.end_round(send=False)
    bench.queues.put_aside(bench.port.by_id[1])
    bench.queues.forget(bench.port)
    bench.queues.tick()
    assert bench.queues._stuck == bench.queues._queueing == {}


# -- hand-over


CUT = ("7.1", ("h", 7, 0))


def end_of(one: EdgeAttachment) -> bytes:
    return wire.encode(msg.End(*CUT, [one.id]))


def hold(bench: Bench, number: int, policy: str = "block") -> EdgeAttachment:
    one = bench.attach(number, policy)
    one.state = AttachmentState.BUFFERING
    bench.queues.route(one)
    return one


def test_what_is_held_is_not_sent_and_its_link_goes_on():
    bench = Bench()
    one, two = hold(bench, 1), bench.attach(2)
    bench.publish(3)
    bench.end_round(send=False)
    assert bench.taken(1, bench.link.buffer) == []
    assert bench.taken(2, bench.link.buffer) == [1, 2, 3]
    bench.port.behind = True
    bench.queues.refill(bench.port)
    assert not bench.port.behind, "a hold does not count as being behind"
    assert two.out is bench.link.buffer
    assert len(one.queue) == 3


def test_what_was_held_comes_first():
    bench = Bench()
    one = hold(bench, 1)
    bench.publish(3)
    bench.end_round()
    bench.queues.live(one)
    bench.publish(2)
    bench.queues.tick()
    assert bench.taken(1, bench.link.buffer) == [1, 2, 3, 4, 5]
    assert one.out is bench.link.buffer


@pytest.mark.parametrize("policy", ["block", "drop-oldest", "disconnect"])
def test_a_full_hold_is_reported_to_the_edge_under_any_policy(policy: str):
    bench = Bench()
    one = hold(bench, 1, policy)
    bench.publish(5)
    bench.end_round()
    assert bench.full == []
    bench.publish(25)
    bench.end_round()
    assert (bench.full, bench.gone, one.state) == ([one], [], AttachmentState.BUFFERING)
    assert len(one.queue) == 30


@pytest.mark.parametrize("policy", ["block", "drop-oldest", "disconnect"])
def test_end_is_behind_the_queue_and_no_policy_takes_it(policy: str):
    bench = Bench()
    one = bench.attach(1, policy)
    one.paused = True
    bench.queues.route(one)
    bench.publish(30)
    assert bench.queues.end(one, lambda: end_of(one))
    bench.publish(5)
    bench.end_round()
    assert one.state is AttachmentState.ENDING
    assert (bench.gone, bench.link.buffer) == ([], [])
    one.paused = False
    sent: list[bytes] = []
    while bench.port.queued:
        bench.queues.refill(bench.port)
        sent += bench.link.buffer
        bench.link.buffer.clear()
    assert bench.taken(1, sent) == list(range(1, 31))
    assert isinstance(msg.decode(msg.to_client, sent[-1]), msg.End)
    bench.publish(1)
    assert bench.link.buffer == []


def test_end_of_one_with_an_empty_queue_does_not_wait():
    bench = Bench()
    one = bench.attach(1)
    one.paused = True
    bench.queues.route(one)
    assert not bench.queues.end(one, lambda: end_of(one))
    assert bench.port.queued == {}
    bench.publish(1)
    assert (one.state, bench.link.buffer) == (AttachmentState.ENDING, [])


@pytest.mark.parametrize("missing", [0, 4])
def test_a_blocked_one_fetches_what_is_before_its_cut_and_then_ends(missing: int):
    bench = Bench()
    one = bench.attach(1)
    one.paused = True
    bench.queues.route(one)
    bench.publish(30)
    bench.end_round()
    bench.publish(missing)
    one.pending_end = PendingEnd(bench.position, *CUT)
    bench.publish(5)
    one.paused = False
    while one.queue:
        bench.queues.refill(bench.port)
        bench.link.buffer[:-1] = []
    if missing:
        assert state_of(one) is AttachmentState.CATCHUP
        assert one.pending_end == (34, *CUT)
    else:
        assert state_of(one) is AttachmentState.ENDING
        assert bench.link.buffer[-1] == end_of(one)


def test_a_block_that_lasts_loses_nothing_of_the_target():
    bench = Bench()
    one = bench.attach(1)
    one.paused = True
    bench.queues.route(one)
    bench.publish(30)
    bench.end_round()
    bench.publish(4)
    one.pending_end = PendingEnd(bench.position, *CUT)
    for _ in range(3):
        bench.publish(5)
        bench.now += 6.0
        bench.end_round()
    last = msg.decode(msg.to_client, one.queue[-1])
    assert isinstance(last, msg.Deliver)
    assert last.item == msg.Gap("h", 7, 31, 7, 34, [], "blocked")
    assert one.position == 34
