"""Confirmation by edges: who must have a publication, who is named, and what is left behind when links go."""

from __future__ import annotations

from typing import Any

from plimsoll.core import records as r
from plimsoll.core import wire
from plimsoll.core.config import Limits
from plimsoll.core.confirm import Confirmations
from plimsoll.core.link import Link, LinkLimits
from plimsoll.core.log import Log
from plimsoll.core.node import Node
from plimsoll.core.outlet import Outlet
from plimsoll.core.publishers import Pending, Publishers
from plimsoll.core.streams import Streams
from plimsoll.core.wire import Info


class Bench:
    """Confirmations over real streams: edges `e1`, `e2` and a neighbour `k`."""

    def __init__(self) -> None:
        node = Node(Info("h", "head", 1), LinkLimits(), lambda: 1, max_frame_bytes=2**20)
        self.streams = Streams(node, Log(10**6), ("h", 1))
        self.confirmations = Confirmations(self.streams, Publishers(Limits()), 10.0)
        self.outlets = {
            name: self.streams.open(self.link(i, name), is_head=name == "k") for i, name in enumerate(("e1", "e2", "k"))
        }

    def link(self, number: int, name: str) -> Link:
        link = Link(
            name.encode(), local=Info("h", "head", 1), limits=LinkLimits(), initiator=False, new_id=lambda: 1, now=0.0
        )
        link.on_hello(wire.Hello(1, wire.HELLO, number, 0, False, Info(name, "head" if name == "k" else "edge", 1)), 0)
        link.acknowledged(0, 100, 0.0)
        return link

    def key(self, name: str) -> str:
        return self.outlets[name].key

    def ask(self, position: int, *names: str, now: float = 0.0) -> Pending:
        pending = Pending(position)
        self.confirmations.of_publisher(position, "p", pending, {self.key(name) for name in names}, now)
        return pending

    def said(self, name: str) -> list[Any]:
        return [r.decode(r.between_heads, record) for record in self.outlets[name].link.buffer]

    def lose(self, name: str) -> Outlet:
        outlet = self.outlets[name]
        self.streams.lost(outlet)
        self.confirmations.lost(outlet)
        return outlet


def state(pending: Pending) -> tuple[bool, list[str]]:
    return pending.missing, pending.late


def test_a_publication_that_nobody_needs_is_confirmed_at_once():
    assert state(Bench().ask(1)) == (False, [])


def test_all_edges_that_need_it_must_have_it():
    bench = Bench()
    pending = bench.ask(5, "e1", "e2")
    bench.confirmations.acknowledged(bench.outlets["e1"], 4)
    assert state(pending) == (True, [])
    bench.confirmations.acknowledged(bench.outlets["e1"], 5)
    assert state(pending) == (True, [])
    bench.confirmations.acknowledged(bench.outlets["e2"], 9)
    assert state(pending) == (False, [])


def test_an_edge_that_was_down_when_it_was_logged_is_named():
    bench = Bench()
    key = bench.key("e2")
    bench.lose("e2")
    pending = Pending(1)
    bench.confirmations.of_publisher(1, "p", pending, {bench.key("e1"), key}, 0.0)
    bench.confirmations.acknowledged(bench.outlets["e1"], 1)
    assert state(pending) == (False, ["e2"])


def test_a_link_that_is_lost_is_named_and_waits_for_nothing_more():
    bench = Bench()
    one, two = bench.ask(1, "e1", "k"), bench.ask(2, "k")
    outlet = bench.lose("k")
    assert state(two) == (False, ["k"])
    assert state(one) == (True, [])
    assert not outlet.awaiting
    bench.confirmations.acknowledged(bench.outlets["e1"], 1)
    assert state(one) == (False, ["k"])


def test_time_is_up():
    bench = Bench()
    pending, later = bench.ask(1, "e1", "k", now=0.0), bench.ask(2, "k", now=5.0)
    assert bench.confirmations.next_deadline() == 10.0
    bench.confirmations.expire(9.9)
    assert state(pending) == (True, [])
    bench.confirmations.expire(10.0)
    assert state(pending) == (False, ["e1", "k"])
    assert state(later) == (True, [])
    assert list(bench.outlets["k"].awaiting) == [2], "what is over is not waited for"
    bench.confirmations.confirmed(bench.outlets["k"], r.Confirmed([1, 2], []))
    assert state(later) == (False, [])
    assert bench.confirmations.next_deadline() == float("inf")


def test_a_neighbour_answers_for_the_edges_behind_it():
    bench = Bench()
    pending = bench.ask(3, "k")
    bench.confirmations.acknowledged(bench.outlets["k"], 3)
    assert state(pending) == (True, []), "that it has it does not mean that its edges have"
    bench.confirmations.confirmed(bench.outlets["k"], r.Confirmed([3], ["k7"]))
    assert state(pending) == (False, ["k7"])


def test_a_neighbour_that_asked_is_told_by_its_own_position():
    bench = Bench()
    bench.confirmations.of_neighbor(8, "k", 71, {bench.key("e1")}, 0.0)
    assert bench.said("k") == []
    bench.confirmations.acknowledged(bench.outlets["e1"], 8)
    assert bench.said("k") == [r.Confirmed([71], [])]
    bench.confirmations.of_neighbor(9, "k", 72, {bench.key("e1")}, 0.0)
    bench.confirmations.expire(10.0)
    assert bench.said("k")[-1] == r.Confirmed([72], ["e1"])


def test_an_answer_to_a_neighbour_that_has_gone_is_dropped():
    bench = Bench()
    bench.confirmations.of_neighbor(8, "k", 71, {bench.key("e1")}, 0.0)
    bench.lose("k")
    bench.confirmations.acknowledged(bench.outlets["e1"], 8)
    assert bench.confirmations.next_deadline() == float("inf")
