"""Records find their way through a tree of heads that nobody has a map of."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from plimsoll.core import records as r
from plimsoll.core import wire
from plimsoll.core.handover.post import Post
from plimsoll.core.wire import WireError


class Office:
    """What a post needs of its head, with links that carry at once or not at all."""

    def __init__(self, name: str, tree: Tree) -> None:
        self.name, self.tree, self.post = name, tree, Post(self)
        self.had: list[tuple[str, str, Any]] = []

    def neighbors(self) -> list[str]:
        return sorted(self.tree.links[self.name])

    def to_neighbor(self, neighbor: str, record: Any) -> None:
        self.tree.carried.append((self.name, neighbor, record))

    def arrived(self, source: str, edge: str, record: Any) -> None:
        self.had.append((source, edge, record))


class Tree:
    def __init__(self, *links: tuple[str, str]) -> None:
        self.links: dict[str, set[str]] = {}
        for a, b in links:
            self.mend(a, b)
        self.offices = {name: Office(name, self) for name in self.links}
        self.carried: deque[tuple[str, str, r.Route]] = deque()

    def cut(self, a: str, b: str) -> None:
        self.links[a].discard(b)
        self.links[b].discard(a)
        for one, other in ((a, b), (b, a)):
            self.offices[one].post.lost(other)

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
                self.offices[to].post.on_route(source, record)
        return hops

    def send(self, source: str, to: str, edge: str = "") -> int:
        assert self.offices[source].post.send(to, NAK, edge)
        return self.run()


NAK = r.Nak("1.1", ["x"], "no")
CHAIN = [("a", "b"), ("b", "c"), ("c", "d")]


def test_what_is_said_to_a_head_or_its_edge_arrives_there_and_nowhere_else():
    tree = Tree(*CHAIN, ("b", "e"))
    tree.send("a", "d", "d1")
    assert tree.offices["d"].had == [("a", "d1", NAK)]
    assert all(office.had == [] for name, office in tree.offices.items() if name != "d")


def test_an_unknown_head_is_looked_for_everywhere_and_the_way_back_is_learned():
    tree = Tree(*CHAIN, ("b", "e"), ("e", "f"))
    assert tree.send("a", "d") == 5, "to b, then c, d and e, f"
    assert tree.send("d", "a") == 3
    assert tree.send("a", "d") == 3, "the answer has shown the way"
    assert [len(tree.offices[name].had) for name in "ad"] == [1, 2]


def test_a_neighbor_is_told_directly():
    tree = Tree(*CHAIN, ("b", "e"))
    assert tree.send("b", "c") == 1


def test_a_head_that_is_not_there_does_not_go_round():
    tree = Tree(*CHAIN)
    assert tree.send("a", "nowhere") == 3


def test_what_has_come_round_is_dropped():
    tree = Tree(("a", "b"), ("b", "c"), ("c", "a"))
    assert tree.send("a", "nowhere") <= 6
    assert tree.offices["a"].post.hops == {}


def test_what_is_behind_a_lost_neighbor_is_looked_for_anew():
    tree = Tree(("a", "b"), ("b", "c"), ("a", "e"))
    tree.send("c", "a")
    assert tree.offices["a"].post.reaches("c")
    tree.cut("b", "c")
    tree.cut("a", "b")
    tree.mend("a", "b")
    tree.mend("e", "c")
    tree.send("a", "c")
    assert tree.offices["c"].had == [("a", "", NAK)]


def test_a_head_is_reached_as_long_as_some_way_may_lead_there():
    tree = Tree(("a", "b"), ("a", "c"))
    post = tree.offices["a"].post
    assert post.reaches("d")
    tree.send("b", "a")
    assert post.reaches("b")
    tree.links["a"].discard("b")
    assert not post.reaches("b"), "the way that is known is down"
    assert post.send("b", NAK) is False
    tree.links["a"].discard("c")
    assert not post.reaches("d")
    assert post.send("d", NAK) is False


def test_behind_a_neighbor_are_those_that_it_leads_to_and_those_that_nobody_has_heard_of():
    tree = Tree(("a", "b"), ("b", "d"), ("a", "c"))
    tree.send("d", "a")
    tree.send("c", "a")
    post = tree.offices["a"].post
    assert post.behind("b", ["b", "c", "d", "new"]) == ["b", "d", "new"]
    assert post.behind("c", ["b", "c", "d", "new"]) == ["c", "new"]


def test_what_cannot_be_read_is_refused_here_but_passed_on_elsewhere():
    tree = Tree(*CHAIN)
    broken = r.Route("b", "a", "", Raw(wire.encode(r.Welcome(3))))
    with pytest.raises(WireError):
        tree.offices["b"].post.on_route("a", broken)
    tree.offices["b"].post.on_route("a", r.Route("c", "a", "", broken.item))
    assert len(tree.carried) == 1


parents = st.lists(st.integers(0, 6), min_size=2, max_size=7)
mails = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=30)


@given(parents, mails)
def test_in_any_tree_each_arrives_once(parents: list[int], mails: list[tuple[int, int]]):
    links = [(f"h{i + 1}", f"h{min(parent, i)}") for i, parent in enumerate(parents)]
    tree = Tree(*links)
    names = sorted(tree.offices)
    for source, to in mails:
        a, b = names[source % len(names)], names[to % len(names)]
        if a != b:
            before = len(tree.offices[b].had)
            assert tree.send(a, b) < len(names)
            assert len(tree.offices[b].had) == before + 1
