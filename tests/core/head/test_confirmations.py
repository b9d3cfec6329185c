"""Confirmation by edges: which edges must have a publication, which are named, and what remains when links end."""

from __future__ import annotations

from typing import Any

from plimsoll.core.config import BrokerLimits
from plimsoll.core.head.confirmations import Confirmations
from plimsoll.core.head.log import Log
from plimsoll.core.head.open_publisher import PendingConfirmation
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport import link_handshake
from plimsoll.core.transport.link import Link, LinkLimits
from plimsoll.core.transport.overlay_node import OverlayNode


class Bench:
    """Confirmations over real streams: edges `e1`, `e2` and a neighbour `k`."""

    def __init__(self) -> None:
        node = OverlayNode(Info("h", "head", 1), LinkLimits(), lambda: 1, max_frame_bytes=2**20)
        self.outboxes = Outboxes(node, Log(10**6), ("h", 1))
        self.confirmations = Confirmations(self.outboxes, PublisherTable(BrokerLimits()).answers, 10.0)
        self.by_key = {
            name: self.outboxes.open(self.link(i, name), is_head=name == "k")
            for i, name in enumerate(("e1", "e2", "k"))
        }

    def link(self, number: int, name: str) -> Link:
        link = Link(
            name.encode(), local=Info("h", "head", 1), limits=LinkLimits(), initiator=False, new_id=lambda: 1, now=0.0
        )
        link_handshake.answer_hello(
            link, wire.Hello(1, wire.HELLO, number, 0, False, Info(name, "head" if name == "k" else "edge", 1)), 0
        )
        link.acknowledged(0, 100, 0.0)
        return link

    def key(self, name: str) -> str:
        return self.by_key[name].key

    def ask(self, position: int, *names: str, now: float = 0.0) -> PendingConfirmation:
        pending = PendingConfirmation(position)
        self.confirmations.await_for_publisher(position, "p", pending, {self.key(name) for name in names}, now)
        return pending

    def said(self, name: str) -> list[Any]:
        return [msg.decode(msg.between_heads, record) for record in self.by_key[name].link.buffer]

    def lose(self, name: str) -> Outbox:
        outbox = self.by_key[name]
        self.outboxes.lost(outbox)
        self.confirmations.lost(outbox)
        return outbox


def state(pending: PendingConfirmation) -> tuple[bool, list[str]]:
    return pending.missing, pending.late


def test_a_publication_that_no_edge_needs_is_confirmed_at_once():
    assert state(Bench().ask(1)) == (False, [])


def test_all_edges_that_need_it_must_have_it():
    bench = Bench()
    pending = bench.ask(5, "e1", "e2")
    bench.confirmations.acknowledged(bench.by_key["e1"], 4)
    assert state(pending) == (True, [])
    bench.confirmations.acknowledged(bench.by_key["e1"], 5)
    assert state(pending) == (True, [])
    bench.confirmations.acknowledged(bench.by_key["e2"], 9)
    assert state(pending) == (False, [])


def test_an_edge_that_was_down_when_it_was_logged_is_named():
    bench = Bench()
    key = bench.key("e2")
    bench.lose("e2")
    pending = PendingConfirmation(1)
    bench.confirmations.await_for_publisher(1, "p", pending, {bench.key("e1"), key}, 0.0)
    bench.confirmations.acknowledged(bench.by_key["e1"], 1)
    assert state(pending) == (False, ["e2"])


def test_a_link_that_is_lost_is_named_and_waits_for_nothing_more():
    bench = Bench()
    one, two = bench.ask(1, "e1", "k"), bench.ask(2, "k")
    outbox = bench.lose("k")
    assert state(two) == (False, ["k"])
    assert state(one) == (True, [])
    assert not outbox.awaiting
    bench.confirmations.acknowledged(bench.by_key["e1"], 1)
    assert state(one) == (False, ["k"])


def test_time_is_up():
    bench = Bench()
    pending, later = bench.ask(1, "e1", "k", now=0.0), bench.ask(2, "k", now=5.0)
    bench.confirmations.end_late(9.9)
    assert state(pending) == (True, [])
    bench.confirmations.end_late(10.0)
    assert state(pending) == (False, ["e1", "k"])
    assert state(later) == (True, [])
    assert list(bench.by_key["k"].awaiting) == [2], "what is over is not waited for"
    bench.confirmations.confirmed(bench.by_key["k"], msg.Confirmed([1, 2], []))
    bench.confirmations.end_late(1e9)
    assert state(later) == (False, []), "nothing is left to expire"


def test_a_neighbour_answers_for_the_edges_behind_it():
    bench = Bench()
    pending = bench.ask(3, "k")
    bench.confirmations.acknowledged(bench.by_key["k"], 3)
    assert state(pending) == (True, []), "that it has it does not mean that its edges have"
    bench.confirmations.confirmed(bench.by_key["k"], msg.Confirmed([3], ["k7"]))
    assert state(pending) == (False, ["k7"])


def test_a_neighbour_that_asked_is_told_by_its_own_position():
    bench = Bench()
    bench.confirmations.await_for_neighbor(8, "k", 71, {bench.key("e1")}, 0.0)
    assert bench.said("k") == []
    bench.confirmations.acknowledged(bench.by_key["e1"], 8)
    assert bench.said("k") == [msg.Confirmed([71], [])]
    bench.confirmations.await_for_neighbor(9, "k", 72, {bench.key("e1")}, 0.0)
    bench.confirmations.end_late(10.0)
    assert bench.said("k")[-1] == msg.Confirmed([72], ["e1"])


def test_an_answer_to_a_neighbour_that_has_gone_is_dropped():
    bench = Bench()
    bench.confirmations.await_for_neighbor(8, "k", 71, {bench.key("e1")}, 0.0)
    bench.lose("k")
    bench.confirmations.acknowledged(bench.by_key["e1"], 8)
    bench.confirmations.end_late(1e9)
    assert bench.said("k") == []
