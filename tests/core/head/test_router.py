"""Records find their way through a tree of heads of which no head has a map."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from plimsoll.core.head.router import TreeRouter
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import WireError


class RouterHead:
    """What a router needs of a head, with links that deliver at once or not at all."""

    def __init__(self, name: str, tree: Tree) -> None:
        self.name, self.tree, self.router = name, tree, TreeRouter(name, self, self, self.deliver)
        self.had: list[tuple[str, str, Any]] = []

    def synced_neighbors(self) -> list[str]:
        return sorted(self.tree.links[self.name])

    def send_to(self, key: str, record: Any) -> None:
        self.tree.carried.append((self.name, key, record))

    def deliver(self, source: str, edge: str, record: Any) -> None:
        self.had.append((source, edge, record))


class Tree:
    def __init__(self, *links: tuple[str, str]) -> None:
        self.links: dict[str, set[str]] = {}
        for a, b in links:
            self.mend(a, b)
        self.heads = {name: RouterHead(name, self) for name in self.links}
        self.carried: deque[tuple[str, str, msg.Route]] = deque()

    def cut(self, a: str, b: str) -> None:
        self.links[a].discard(b)
        self.links[b].discard(a)
        for one, other in ((a, b), (b, a)):
            self.heads[one].router.forget_routes(other)

    def mend(self, a: str, b: str) -> None:
        self.links.setdefault(a, set()).add(b)
        self.links.setdefault(b, set()).add(a)

    def run(self) -> int:
        """Carry all that is under way; returns how many hops that took."""
        hops = 0
        while self.carried:
            source, to, record = self.carried.popleft()
            hops += 1
            assert hops < 10_000, "it goes round for ever"
            if to in self.links[source]:
                self.heads[to].router.on_route(source, record)
        return hops

    def send(self, source: str, to: str, edge: str = "") -> int:
        assert self.heads[source].router.send(to, NAK, edge)
        return self.run()


NAK = msg.HandoverRejected("1.1", ["x"], "no")
CHAIN = [("a", "b"), ("b", "c"), ("c", "d")]


def test_what_is_said_to_a_head_or_its_edge_arrives_there_and_nowhere_else():
    tree = Tree(*CHAIN, ("b", "e"))
    tree.send("a", "d", "d1")
    assert tree.heads["d"].had == [("a", "d1", NAK)]
    assert all(head.had == [] for name, head in tree.heads.items() if name != "d")


def test_an_unknown_head_is_looked_for_everywhere_and_the_way_back_is_learned():
    tree = Tree(*CHAIN, ("b", "e"), ("e", "f"))
    assert tree.send("a", "d") == 5, "to b, then c, d and e, f"
    assert tree.send("d", "a") == 3
    assert tree.send("a", "d") == 3, "the answer has shown the way"
    assert [len(tree.heads[name].had) for name in "ad"] == [1, 2]


def test_a_neighbor_is_told_directly():
    tree = Tree(*CHAIN, ("b", "e"))
    assert tree.send("b", "c") == 1


def test_a_head_that_is_not_there_does_not_go_round():
    tree = Tree(*CHAIN)
    assert tree.send("a", "nowhere") == 3


def test_what_has_come_round_is_dropped():
    tree = Tree(("a", "b"), ("b", "c"), ("c", "a"))
    assert tree.send("a", "nowhere") <= 6
    assert tree.heads["a"].router.hops == {}


def test_heads_behind_a_lost_neighbor_are_looked_for_again():
    tree = Tree(("a", "b"), ("b", "c"), ("a", "e"))
    tree.send("c", "a")
    assert tree.heads["a"].router.reaches("c")
    tree.cut("b", "c")
    tree.cut("a", "b")
    tree.mend("a", "b")
    tree.mend("e", "c")
    tree.send("a", "c")
    assert tree.heads["c"].had == [("a", "", NAK)]


def test_a_head_is_reached_as_long_as_some_way_may_lead_there():
    tree = Tree(("a", "b"), ("a", "c"))
    router = tree.heads["a"].router
    assert router.reaches("d")
    tree.send("b", "a")
    assert router.reaches("b")
    tree.links["a"].discard("b")
    assert not router.reaches("b"), "the way that is known is down"
    assert router.send("b", NAK) is False
    tree.links["a"].discard("c")
    assert not router.reaches("d")
    assert router.send("d", NAK) is False


def test_behind_a_neighbor_are_heads_that_it_leads_to_and_unknown_ones():
    tree = Tree(("a", "b"), ("b", "d"), ("a", "c"))
    tree.send("d", "a")
    tree.send("c", "a")
    router = tree.heads["a"].router
    assert router.behind("b", ["b", "c", "d", "new"]) == ["b", "d", "new"]
    assert router.behind("c", ["b", "c", "d", "new"]) == ["c", "new"]


def test_what_cannot_be_read_is_refused_here_but_passed_on_elsewhere():
    tree = Tree(*CHAIN)
    broken = msg.Route("b", "a", "", Raw(wire.encode(msg.Welcome(3))))
    with pytest.raises(WireError):
        tree.heads["b"].router.on_route("a", broken)
    tree.heads["b"].router.on_route("a", msg.Route("c", "a", "", broken.item))
    assert len(tree.carried) == 1


parents = st.lists(st.integers(0, 6), min_size=2, max_size=7)
mails = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=30)


@given(parents, mails)
def test_in_any_tree_each_arrives_once(parents: list[int], mails: list[tuple[int, int]]):
    links = [(f"h{i + 1}", f"h{min(parent, i)}") for i, parent in enumerate(parents)]
    tree = Tree(*links)
    names = sorted(tree.heads)
    for source, to in mails:
        a, b = names[source % len(names)], names[to % len(names)]
        if a != b:
            before = len(tree.heads[b].had)
            assert tree.send(a, b) < len(names)
            assert len(tree.heads[b].had) == before + 1
