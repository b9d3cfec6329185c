"""What waits until all have reported, in which order it continues, and when a gap replaces unknown publications."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.core.head.startup import StartupBarrier
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import NEVER


@dataclass(eq=False)
class FakeLink:
    id: int


class FakeHead:
    """An edge `e` and the neighbours `k` and `m`; records the calls of the barrier, in order."""

    def __init__(self) -> None:
        self.routes = SimpleNamespace(neighbors={"k": None, "m": None})
        self.asked: list[Any] = []
        self.barrier = StartupBarrier(("e", "k", "m"), self, self, lambda: self.asked.append("ready"))  # type: ignore[arg-type]  # stand-ins

    def report_to_neighbors(self, missing: set[str]) -> None:
        self.asked.append(sorted(missing))

    def log_uncertainty(self, source: str) -> None:
        self.asked.append(("gap", source))

    def end_epoch(self, neighbor: str, epoch: int) -> None:
        self.asked.append(("ended", neighbor, epoch))

    def connect(self, name: str, incarnation: int = 1) -> None:
        self.barrier.neighbor_connected(Info(name, "head", incarnation))


def link(link_id: int = 1) -> Any:
    return FakeLink(link_id)


GAP = msg.Gap("k", 1, 1, 1, 1, [], "restart")


def test_each_report_is_passed_on_and_the_last_one_lets_all_go_on():
    head = FakeHead()
    head.barrier.edge_reported("e", has_owners=False)
    head.barrier.neighbor_reported("k", holds_cover=False)
    assert head.barrier.missing == {"m"}
    head.barrier.neighbor_reported("m", holds_cover=False)
    assert not head.barrier.is_starting
    assert head.asked == [["k", "m"], ["m"], [], "ready"]


@dataclass(frozen=True)
class FakeOutbox:
    name: str


def test_a_head_whose_log_has_all_leaves_out_edges_that_are_not_there():
    head, now = SimpleNamespace(routes=SimpleNamespace(neighbors={}), node=SimpleNamespace(now=5.0)), 0.0
    head.outboxes, head.by_key = head, {"e#1": FakeOutbox("e")}
    head.report_to_neighbors = lambda missing: None
    asked: list[str] = []

    def barrier(*, needs_all: bool) -> StartupBarrier:
        found = StartupBarrier(("d", "e"), head, head, lambda: asked.append("ready"), 30.0, 1.0)  # type: ignore[arg-type]  # stand-ins
        found.needs_all = needs_all
        found.expect(["consumer group g"])
        return found

    patient, quick = barrier(needs_all=True), barrier(needs_all=False)
    for now, missing in ((5.0, {"d", "e"}), (5.9, {"d", "e"}), (6.0, {"e"})):
        head.node.now = now
        patient.tick()
        quick.tick()
        assert patient.missing == {"d", "e", "consumer group g"}
        assert quick.missing == missing | {"consumer group g"}, "one with a link is about to report"
        assert quick.wake_at() == (6.0 if now < 6.0 else NEVER)
    assert patient.wake_at() == NEVER
    quick.reported("consumer group g")
    assert asked == []
    quick.edge_reported("e", has_owners=True)
    assert asked == ["ready"]
    assert not quick.is_starting


def test_the_lease_ends_the_wait():
    head = FakeHead()
    head.barrier.lease_passed()
    assert not head.barrier.is_starting
    assert head.asked[-1] == "ready"


def test_more_may_be_waited_for_while_a_head_starts_and_nothing_once_it_is_ready():
    head = FakeHead()
    head.barrier.expect(["consumer group g"])
    for name in ("e", "k", "m"):
        head.barrier.reported(name)
    assert head.barrier.missing == {"consumer group g"}
    head.barrier.reported("consumer group g")
    assert head.asked[-1] == "ready"
    head.barrier.expect(["consumer group h"])
    assert not head.barrier.is_starting


def test_what_was_held_outlives_its_link_and_opens_end_with_their_client():
    head = FakeHead()
    kept, renewed, client, gone = link(), link(), link(), link()
    head.barrier.hold(kept, GAP, ends_frame=True)
    head.barrier.hold(renewed, GAP, ends_frame=True)
    head.barrier.wait(client, msg.Open(1, "p", 1))
    head.barrier.wait(gone, msg.Open(1, "q", 1))
    assert head.barrier.has_held(renewed)
    renewed.id = 2
    assert [head.barrier.has_held(each) for each in (kept, renewed, client)] == [True, False, False]
    head.barrier.client_lost(gone)
    assert [(held.link, held.link_id == held.link.id) for held in head.barrier.take_held()] == [
        (kept, True),
        (renewed, False),
    ]
    assert [at for at, _ in head.barrier.take_waiting()] == [client]
    assert (head.barrier.take_held(), head.barrier.take_waiting()) == ([], [])
    assert not head.barrier.has_held(kept)


@pytest.mark.parametrize(("incarnation", "gaps"), [(1, []), (2, [("gap", "k")])])
def test_a_neighbour_that_is_back_is_a_gap_if_it_has_restarted(incarnation: int, gaps: list[Any]):
    head = FakeHead()
    head.connect("k")
    head.barrier.lease_passed()
    head.asked.clear()
    head.connect("k", incarnation)
    assert head.asked == ([("ended", "k", 1)] if gaps else [])
    head.asked.clear()
    head.barrier.neighbor_reported("k", holds_cover=True)
    head.barrier.neighbor_reported("k", holds_cover=True)
    assert [each for each in head.asked if isinstance(each, tuple)] == gaps


def test_of_a_neighbour_that_reports_after_its_lease_a_restarted_head_knows_nothing():
    head = FakeHead()
    head.barrier.neighbor_reported("m", holds_cover=True)
    head.barrier.lease_passed()
    head.asked.clear()
    head.barrier.neighbor_reported("k", holds_cover=True)
    assert head.asked[0] == ("gap", "k")


def test_edges_that_were_welcomed_before_the_neighbours_had_reported_get_a_gap_at_the_end():
    head = FakeHead()
    head.barrier.edge_reported("e", has_owners=True)
    head.barrier.neighbor_reported("k", holds_cover=True)
    head.barrier.neighbor_reported("m", holds_cover=True)
    assert head.asked[-2:] == [("gap", ""), "ready"]


def test_places_are_lacking_until_all_edges_have_reported_to_a_head_of_a_tree_that_remembers():
    head = FakeHead()
    assert not head.barrier.lacks_places_of(["e"]), "its subscribers have a gap anyway"
    head.barrier.recall({"k": 1})
    assert head.barrier.lacks_places_of(["e"])
    head.barrier.reported("e")
    assert not head.barrier.lacks_places_of(["e"]), "neighbours have no places of this cluster"
    alone = FakeHead()
    alone.barrier.recall({})
    alone.routes.neighbors.clear()
    assert not alone.barrier.lacks_places_of(["e"]), "its log has everything"
