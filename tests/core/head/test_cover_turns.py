"""Covering updates at a head, in turns: bounded work in a round, order on a link, and no other link held up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from tests.core.fleet import Client, Fleet, Publishing, one_cluster, resume, tree

from plimsoll.core.config import BrokerHardware, HardwareEmulation
from plimsoll.core.head import cover_turns
from plimsoll.core.head.cover_turns import CoverTurns, WaitingMessage
from plimsoll.core.head.record_input import RecordInput
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport import client_intake


@pytest.fixture
def short_rounds() -> Iterator[None]:
    """A round of a head has time for two updates, and edges send many of them."""
    with (
        mock.patch.object(cover_turns, "HALF_ROUND_UNITS", 1),
        mock.patch.object(client_intake, "ROUND_UNITS", 10**6),
        mock.patch.object(client_intake, "TURN_UNITS", 10**6),
    ):
        yield


def item(number: int) -> msg.SubscriptionItem:
    return msg.SubscriptionItem(number, f"[n,=,{number}]")


def changes(client: Client, edge: str, attachment: int, count: int) -> None:
    """One change of the list after the other, each an update of its own."""
    for version in range(2, 2 + count):
        client.tell(edge, msg.Subs(attachment, version, [item(1000 * attachment + version)], []))


def rounds(fleet: Fleet, count: int) -> None:
    for _ in range(count):
        fleet.round()


@pytest.mark.usefixtures("short_rounds")
def test_updates_of_a_link_wait_in_order_and_all_of_them_come():
    fleet = one_cluster()
    client = fleet.client("c", "e1")
    client.tell("e1", resume(1, "s", "[n,=,0]"))
    fleet.run(0.5)
    changes(client, "e1", 1, 30)
    rounds(fleet, 6)
    head = fleet.head()
    assert head.cover_turns.waiting
    assert head.wake_at() == head.now
    fleet.run(3.0)
    assert not head.cover_turns.waiting
    assert head.wake_at() > head.now
    assert [suback.version for suback in client.of("e1", msg.Suback)][-1] == 31
    assert head.routes.total_size(head.outboxes.by_key) == 31


@pytest.mark.usefixtures("short_rounds")
def test_a_round_deals_with_as_many_updates_as_it_has_time_for():
    fleet = one_cluster()
    client = fleet.client("c", "e1")
    client.tell("e1", resume(1, "s", "[n,=,0]"))
    fleet.run(0.5)
    applied: list[int] = []
    deal = CoverTurns._deal
    tick = CoverTurns.tick

    def dealt(self: CoverTurns, link: Any, each: WaitingMessage) -> int:
        applied[-1] += isinstance(each.message, msg.Cover)
        return deal(self, link, each)

    def ticked(self: CoverTurns) -> None:
        applied.append(0)
        tick(self)

    with mock.patch.object(CoverTurns, "_deal", dealt), mock.patch.object(CoverTurns, "tick", ticked):
        changes(client, "e1", 1, 30)
        fleet.run(3.0)
    assert sum(applied) == 30
    assert max(applied) == 1


@pytest.mark.usefixtures("short_rounds")
def test_a_link_with_much_to_announce_does_not_delay_another_for_long():
    fleet = one_cluster()
    hog, other = fleet.client("hog", "e1"), fleet.client("other", "e2")
    hog.tell("e1", resume(1, "h", "[n,=,0]"))
    other.tell("e2", resume(1, "o", "[n,=,0]"))
    fleet.run(0.5)
    changes(hog, "e1", 1, 100)
    rounds(fleet, 5)
    changes(other, "e2", 1, 1)
    for _ in range(15):
        fleet.round()
        if other.of("e2", msg.Suback)[-1].version == 2:
            break
    assert other.of("e2", msg.Suback)[-1].version == 2
    assert fleet.head().cover_turns.waiting, "the other link still has much to do"
    fleet.run(5.0)
    assert hog.of("e1", msg.Suback)[-1].version == 101


@pytest.mark.usefixtures("short_rounds")
def test_publications_of_clients_pass_by_and_those_of_the_link_keep_their_place():
    fleet = tree([("a", "b")])
    client = fleet.client("c", "b", "a1", "b1")
    client.tell("a1", resume(1, "s", "[n,>,0]"))
    client.tell("b1", resume(2, "t", "[n,=,0]"))
    fleet.run(1.0)
    publisher = Publishing(client, "b")
    fleet.run(0.5)
    head, seen = fleet.head("a"), list[str]()
    dispatch = RecordInput._dispatch

    def watched(self: RecordInput, link: Any, message: Any) -> None:
        if self is head.record_input and link.name == "b" and isinstance(message, msg.Cover | msg.Pub):
            seen.append(type(message).__name__)
        dispatch(self, link, message)

    with mock.patch.object(RecordInput, "_dispatch", watched):
        for at in range(10):
            client.tell("b1", msg.Subs(2, 2 + at, [item(1000 + at)], []))
            rounds(fleet, 3)
            publisher.publish(1)
        fleet.run(3.0)
    assert client.numbers("a1", 1) == list(range(1, 11))
    assert seen.count("Pub") == seen.count("Cover") == 10


class Scripted:
    """A host of turns that spends some units on each message, and notes what it has dealt with."""

    def __init__(self, units: int) -> None:
        self.covers = mock.Mock(units_spent=0)
        self.units, self.dealt = units, list[tuple[Any, Any, bool]]()
        self.early: type[Any] = type(None)

    def is_early(self, message: Any) -> bool:
        return message is not None and isinstance(message, self.early)

    def deal(self, link: Any, message: Any, ends_frame: bool) -> None:
        self.dealt.append((link, message, ends_frame))
        if isinstance(message, msg.Cover):
            self.covers.units_spent += self.units


def cover(seq: int) -> msg.Cover:
    return msg.Cover(seq, [], [])


def scripted(units: int) -> tuple[Scripted, Any]:
    host = Scripted(units)
    turns: Any = CoverTurns(host)  # type: ignore[arg-type]  # of a head it needs no more
    return host, turns


def test_what_follows_an_update_that_waits_waits_too_and_nothing_passes_it():
    host, turns = scripted(cover_turns.HALF_ROUND_UNITS)
    turns.take("e1", cover(1), False)
    turns.take("e1", cover(2), False)
    marks = [msg.Leaving(), msg.Progress(3), None, msg.CutRequest("7.1", cover(3), [])]
    for mark in marks:
        turns.take("e1", mark, True)
    assert [message for _, message, _ in host.dealt] == [cover(1)]
    turns.tick()
    turns.tick()
    assert host.dealt == [("e1", cover(1), False), ("e1", cover(2), False), *(("e1", mark, True) for mark in marks)]
    assert not turns.waiting


def test_links_that_wait_take_turns():
    host, turns = scripted(cover_turns.TURN_UNITS)
    for seq in range(1, 9):
        for link in ("e1", "e2", "e3"):
            turns.take(link, cover(seq), True)
    del host.dealt[:]
    for _ in range(20):
        turns.tick()
    order = [link for link, _, _ in host.dealt]
    assert len(order) == 24 - 2
    assert {order.count(link) for link in ("e1", "e2", "e3")} == {7, 8}
    assert all(len(set(order[i : i + 3])) == 3 for i in range(0, 18, 3)), "no link has a second turn before the others"


def test_messages_that_cost_nothing_in_covers_end_a_turn_as_well():
    host, turns = scripted(cover_turns.HALF_ROUND_UNITS)
    turns.take("e1", cover(1), False)
    turns.take("e1", cover(2), False)
    for _ in range(1_000):
        turns.take("e1", msg.Progress(3), True)
    turns.tick()
    turns.tick()
    assert len(host.dealt) - 2 == cover_turns.TURN_UNITS // cover_turns.MESSAGE_UNITS


def test_of_a_link_that_is_over_only_what_has_been_published_is_left():
    host, turns = scripted(cover_turns.HALF_ROUND_UNITS)
    gap = msg.Gap("h", 1, 1, 1, 1, [], "log")
    for each in (cover(1), cover(2), gap, msg.Leaving()):
        turns.take("b", each, True)
    assert turns.drop("b") == [gap]
    assert turns.drop("b") == turns.drop("never heard of") == []
    turns.tick()
    assert len(host.dealt) == 1


def test_what_is_early_waits_with_all_behind_it_and_holds_up_no_other_link():
    host, turns = scripted(0)
    host.early = msg.ResumeUp
    resume = msg.ResumeUp("x", (1, 2), cover(1), None)
    for link, message in (("e1", resume), ("e1", cover(2)), ("e2", cover(1))):
        turns.take(link, message, True)
    turns.tick()
    assert [link for link, _, _ in host.dealt] == ["e2"]
    assert not turns.has_work, "it waits for no more than a report"
    host.early = type(None)
    assert turns.has_work
    turns.tick()
    assert host.dealt[1:] == [("e1", resume, True), ("e1", cover(2), True)]


def test_a_publication_that_waits_is_logged_when_its_link_is_lost():
    fleet = tree([("a", "b")])
    client = fleet.client("c", "a1", "b", "b1")
    client.tell("a1", resume(1, "s", "[n,>,0]"))
    client.tell("b1", resume(2, "t", "[n,=,0]"))
    fleet.run(1.0)
    publisher = Publishing(client, "b")
    fleet.run(0.5)
    head = fleet.head("a")
    with mock.patch.object(head.cover_turns, "tick"):
        head.cover_turns._left = 0
        client.tell("b1", msg.Subs(2, 2, [item(1000)], []))
        rounds(fleet, 6)
        publisher.publish(3)
        rounds(fleet, 6)
        (link,) = head.cover_turns.waiting
        assert client.numbers("a1", 1) == []
        head.handshakes.on_dead(link)
        assert not head.cover_turns.waiting
    fleet.run(3.0)
    assert client.numbers("a1", 1) == [1, 2, 3]
    assert head.routes.size("b") > 0


@pytest.mark.usefixtures("short_rounds")
def test_an_edge_that_is_lost_takes_what_waits_with_it():
    fleet = one_cluster()
    client = fleet.client("c", "e1")
    client.tell("e1", resume(1, "s", "[n,=,0]"))
    fleet.run(0.5)
    changes(client, "e1", 1, 60)
    rounds(fleet, 6)
    head = fleet.head()
    (link,) = head.cover_turns.waiting
    head.handshakes.close(link, "test")
    assert not head.cover_turns.waiting
    fleet.run(5.0)
    assert head.routes.total_size(head.outboxes.by_key) == len(fleet.edge("e1").subscription_table.cover) == 0


@pytest.mark.usefixtures("short_rounds")
def test_emulated_hardware_stays_in_front():
    slow = BrokerHardware(emulation=HardwareEmulation(base_seconds=0.001))
    fleet = Fleet()
    fleet.cluster("h", ["e1"], hardware={"h": slow})
    fleet.start()
    fleet.run(1.0)
    client = fleet.client("c", "e1", "h")
    client.tell("e1", resume(1, "s", "[n,>,0]"))
    publisher = Publishing(client, "h")
    fleet.run(0.5)
    changes(client, "e1", 1, 30)
    publisher.publish(10)
    fleet.run(3.0)
    assert client.of("e1", msg.Suback)[-1].version == 31
    assert client.numbers("e1", 1) == list(range(1, 11))
