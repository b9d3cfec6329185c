"""Clients' requests in turns: bounded work in a round, order on a link, and none held up for long by another."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest
from tests.core.fleet import STOCK, Fleet, Publishing, one_cluster, resume

from plimsoll.core.edge import list_change
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.transport import client_intake
from plimsoll.core.transport.client_intake import ROUND_UNITS, ClientIntake
from plimsoll.core.transport.link import Link


def many(count: int, first: int = 1) -> list[msg.SubscriptionItem]:
    return [msg.SubscriptionItem(first + i, f"[n,=,{i}],[x,contains,'{i:04}']") for i in range(count)]


def test_a_long_list_is_taken_in_parts_of_bounded_work():
    fleet = one_cluster()
    client = fleet.client("c", "e1")
    rounds: list[int] = []
    turn = ClientIntake._turn

    def watched(self: ClientIntake, link: object, intake: client_intake.LinkIntake) -> bool:
        before = self._left
        done = turn(self, link, intake)  # type: ignore[arg-type]  # the link is passed on
        rounds.append(before - self._left)
        return done

    with mock.patch.object(ClientIntake, "_turn", watched):
        client.tell("e1", msg.Resume(1, "s", (1, 1), 1, many(3_000), msg.Policy(), None, []))
        fleet.run(3.0)
    assert len(rounds) > 50
    # A turn ends with the part that passes its bound: one part more, and one search for a coverer.
    assert max(rounds) < client_intake.TURN_UNITS + list_change.PART_UNITS + 3 * 4096
    assert client.of("e1", msg.Suback) == [msg.Suback(1, 1, [])]
    edge = fleet.edge("e1")
    assert not edge.client_intake.waiting
    assert edge.client_intake.waiting_bytes == 0
    assert len(edge.attachments.by_subscriber["s"].subscriptions) == 3_000
    assert fleet.head().routes.size(next(iter(fleet.head().outboxes.by_key))) == 3_000


def test_others_are_served_between_the_parts():
    fleet = one_cluster()
    hog, other = fleet.client("hog", "e1"), fleet.client("other", "e1")
    hog.tell("e1", resume(1, "h", STOCK))
    other.tell("e1", resume(1, "o", STOCK))
    fleet.run(0.5)
    edge = fleet.edge("e1")
    with mock.patch.object(client_intake, "ROUND_UNITS", 100), mock.patch.object(list_change, "PART_UNITS", 100):
        hog.tell("e1", msg.Subs(1, 2, many(200, first=2), []))
        other.tell("e1", msg.Subs(1, 2, many(1, first=2), []))
        for _ in range(40):
            fleet.round()
            if other.of("e1", msg.Suback)[-1].version == 2:
                break
        assert other.of("e1", msg.Suback)[-1].version == 2
        assert hog.of("e1", msg.Suback)[-1].version == 1, "its own list is still on the way"
        assert edge.client_intake.waiting
        fleet.run(5.0)
    assert hog.of("e1", msg.Suback)[-1].version == 2


def test_a_list_that_is_replaced_misses_nothing_on_the_way():
    fleet = one_cluster()
    client, other = fleet.client("c", "e1"), fleet.client("pub", "h")
    client.tell("e1", resume(1, "s", "[n,>,0]"))
    publisher = Publishing(other, "h")
    fleet.run(0.5)
    with mock.patch.object(client_intake, "ROUND_UNITS", 100), mock.patch.object(list_change, "PART_UNITS", 100):
        items = [*many(100, first=2), msg.SubscriptionItem(1, "[n,>,-1]")]
        client.tell("e1", msg.Subs(1, 2, items, [1]))
        for _ in range(60):
            publisher.publish(1)
            fleet.round()
        fleet.run(5.0)
    assert client.of("e1", msg.Suback)[-1].version == 2
    assert client.numbers("e1", 1) == list(range(1, 61))


@pytest.mark.parametrize("ended", ["link", "again"])
def test_a_change_that_is_cut_short_leaves_nothing(ended: str):
    fleet = one_cluster()
    client = fleet.client("c", "e1")
    edge = fleet.edge("e1")
    with mock.patch.object(client_intake, "ROUND_UNITS", 100), mock.patch.object(list_change, "PART_UNITS", 100):
        client.tell("e1", msg.Resume(1, "s", (1, 1), 1, many(300), msg.Policy(), None, []))
        for _ in range(20):
            fleet.round()
        assert edge.client_intake.waiting
        if ended == "link":
            edge.handshakes.close(edge.handshakes.accepted_links()[0], "test")
            assert not edge.client_intake.waiting
            assert edge.client_intake.waiting_bytes == 0
            client = fleet.client("c2", "e1")
        again = msg.Resume(2, "s", (2, 1), 1, [msg.SubscriptionItem(1, STOCK)], msg.Policy(), None, [])
        client.tell("e1", again)
        fleet.run(5.0)
    assert len(edge.index) == 1
    assert edge.subscription_table.cover.member_count == 1
    assert len(edge.subscription_table) == 1
    assert fleet.head().routes.size(next(iter(fleet.head().outboxes.by_key))) == 1


def test_the_link_with_the_most_waiting_is_ended_when_there_is_no_room():
    fleet: Fleet = one_cluster(inbox_bytes=200_000)
    hog, other = fleet.client("hog", "e1"), fleet.client("other", "e1")
    hog.tell("e1", resume(1, "h", STOCK))
    other.tell("e1", resume(1, "o", STOCK))
    fleet.run(0.5)
    with mock.patch.object(client_intake, "ROUND_UNITS", 1), mock.patch.object(list_change, "PART_UNITS", 1):
        other.tell("e1", msg.Subs(1, 2, many(1, first=2), []))
        for n in range(8):
            hog.tell("e1", msg.Subs(1, 2 + n, many(3_000, first=2 + 3_000 * n), []))
        for _ in range(20):
            fleet.round()
        edge = fleet.edge("e1")
        assert edge.counters["links_ended_for_backlog"] == 1
        assert edge.attachments.by_subscriber["o"].state.value == "live"
        assert edge.attachments.by_subscriber["h"].state.value == "closed"
        assert edge.client_intake.waiting_bytes < 200_000


def test_records_of_a_link_keep_their_order():
    fleet = one_cluster()
    client = fleet.client("c", "e1")
    seen: list[str] = []
    intake = fleet.edge("e1").client_intake
    handle = intake.handle

    def watched(link: Link, message: msg.FromClient) -> Iterator[int]:
        seen.append(type(message).__name__)
        return handle(link, message)

    with (
        mock.patch.object(intake, "handle", watched),
        mock.patch.object(client_intake, "ROUND_UNITS", 50),
        mock.patch.object(list_change, "PART_UNITS", 50),
    ):
        client.tell("e1", resume(1, "s", STOCK))
        fleet.run(0.2)
        client.tell("e1", msg.Subs(1, 2, many(50, first=2), []), msg.Pause(1))
        client.tell("e1", msg.Continue(1), msg.Detach([1], True))
        fleet.run(5.0)
    assert seen == ["Resume", "Subs", "Pause", "Continue", "Detach"]
    assert fleet.edge("e1").attachments.by_subscriber == {}
    assert len(fleet.edge("e1").index) == 0
    assert fleet.edge("e1").subscription_table.cover.member_count == 0


def test_the_budget_is_a_rounds():
    assert ROUND_UNITS >= client_intake.TURN_UNITS >= list_change.PART_UNITS


def dealt_with_in_rounds(fleet: Fleet, intake: ClientIntake) -> list[int]:
    """How many messages each round from here on deals with, until nothing waits."""
    counts, handle = [0], intake.handle

    def watched(link: Link, message: msg.FromClient) -> Iterator[int]:
        counts[-1] += 1
        return handle(link, message)

    with mock.patch.object(intake, "handle", watched):
        for _ in range(2_000):
            fleet.round()
            counts.append(0)
            if not intake.waiting and len(counts) > 20:
                return counts
    raise AssertionError("the requests are never done")


def until_waiting(fleet: Fleet, intake: ClientIntake) -> None:
    for _ in range(50):
        fleet.round()
        if intake.waiting:
            return
    raise AssertionError("all was done in the round in which it came")


def test_long_records_that_change_nothing_are_few_in_a_round():
    fleet = one_cluster()
    hog = fleet.client("hog", "e1")
    fleet.run(0.5)
    hog.tell("e1", *(msg.Detach([9] * wire.LISTED_AT_MOST, withdraw=False) for _ in range(40)))
    counts = dealt_with_in_rounds(fleet, fleet.edge("e1").client_intake)
    assert sum(counts) == 40
    # Each has 16 KiB, more than a turn; a round has what arrives and what has waited.
    assert max(counts) <= 2 * (1 + ROUND_UNITS // client_intake.TURN_UNITS)


def test_a_change_that_changes_nothing_is_work_too():
    """It is announced, and answered."""
    fleet = one_cluster()
    hog = fleet.client("hog", "e1")
    hog.tell("e1", resume(1, "s", STOCK))
    fleet.run(0.5)
    hog.tell("e1", *(msg.Subs(1, 2 + n, [], []) for n in range(2_000)))
    intake = fleet.edge("e1").client_intake
    until_waiting(fleet, intake)
    counts = dealt_with_in_rounds(fleet, intake)
    assert max(counts) <= client_intake.TURN_UNITS // 60 + 1


def test_a_heads_clients_take_turns_with_their_requests():
    fleet = one_cluster()
    hog, other = fleet.client("hog", "h"), fleet.client("other", "h")
    publisher = Publishing(other, "h")
    fleet.run(0.5)
    hog.tell("h", *(msg.Join("x") for _ in range(20_000)))
    publisher.publish(5)
    intake = fleet.head().client_intake
    until_waiting(fleet, intake)
    for _ in range(10):
        fleet.round()
    assert publisher.accepted == 5
    assert intake.waiting, "and is not done when others have been served"
    counts = dealt_with_in_rounds(fleet, intake)
    assert max(counts) <= client_intake.TURN_UNITS // 20 + 1, "a JOIN is four microseconds of work"
    fleet.run(20.0)
    assert len(hog.of("h", msg.Placed)) == 20_000


def test_what_waits_at_a_head_ends_with_its_link():
    fleet = one_cluster()
    hog = fleet.client("hog", "h")
    fleet.run(0.5)
    hog.tell("h", *(msg.Join("x") for _ in range(20_000)))
    intake = fleet.head().client_intake
    until_waiting(fleet, intake)
    (link,) = intake.waiting
    fleet.head().handshakes.close(link, "over")
    assert not intake.waiting
    assert intake.waiting_bytes == 0


def test_what_waits_is_no_larger_than_it_was_on_the_wire():
    fleet = one_cluster()
    hog = fleet.client("hog", "h")
    fleet.run(0.5)
    hog.tell("h", *(msg.Join("x") for _ in range(60_000)))
    intake = fleet.head().client_intake
    until_waiting(fleet, intake)
    for _ in range(3):
        fleet.round()
    (waiting,) = intake.waiting.values()
    _, *others = waiting.frames
    assert others
    assert all(isinstance(records, bytes) and len(records) <= size for records, size in others)
    assert waiting.waiting_bytes == sum(size for _, size in waiting.frames)
