"""Clients' requests in turns: bounded work in a round, order on a link, and none held up for long by another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from msgspec import Raw
from tests.core.fleet import STOCK, Fleet, Publishing, one_cluster, resume

from plimsoll.core import predicates
from plimsoll.core.edge import list_change
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.transport import client_intake
from plimsoll.core.transport.client_intake import ROUND_UNITS, ClientIntake
from plimsoll.core.transport.link import NEVER, Link


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


class Endless:
    """A host whose clients' records are work of 1,000 units each time, without an end if it is the hog."""

    def __init__(self) -> None:
        self.now, self.units = 0.0, dict[str, int]()
        self.config = mock.Mock()
        self.config.limits.inbox_bytes = 10**9
        self.counters, self.handshakes, self.say = mock.Mock(), mock.Mock(), mock.Mock()
        self.took = mock.Mock()

    def handle(self, link: Any, message: msg.FromClient) -> Iterator[int]:
        for _ in range(10**6 if link == "hog" else 1):
            self.units[link] = self.units.get(link, 0) + 1_000
            yield 1_000


def frame(number: int) -> wire.Data:
    return wire.Data(1, 1, 1, 0, number, 0, 0, [Raw(wire.encode(msg.Pause(1)))])


def test_a_link_with_endless_work_has_half_of_the_time_after_its_burst():
    host: Any = Endless()
    intake = ClientIntake(host, host.handle)
    intake.on_frame("hog", frame(1), 100)  # type: ignore[arg-type]  # any key will do
    early, step = 0, client_intake.UNIT_SECONDS * client_intake.TURN_UNITS
    for _ in range(2_000):
        host.now += step  # as long as a turn takes
        intake.tick()
        early = early or (host.units["hog"] if host.now >= 0.04 else 0)
    seconds = host.units["hog"] * client_intake.UNIT_SECONDS
    assert early * client_intake.UNIT_SECONDS == pytest.approx(0.04, abs=2 * step), "no pause in the burst"
    assert seconds == pytest.approx((host.now + client_intake.BURST_SECONDS) / 2, abs=2 * step)
    assert host.now < intake.wake_at() + step
    assert intake.wake_at() < host.now + 2 * step


def test_others_do_not_wait_for_the_pauses_of_a_link():
    host: Any = Endless()
    intake = ClientIntake(host, host.handle)
    intake.on_frame("hog", frame(1), 100)  # type: ignore[arg-type]  # any key will do
    while intake.wake_at() <= host.now:
        intake.tick()
    asked = host.units["hog"]
    intake.tick()
    assert host.units["hog"] == asked, "it has a pause"
    intake.on_frame("other", frame(1), 100)  # type: ignore[arg-type]  # any key will do
    assert host.took.call_args_list == [mock.call("other")]
    host.now = intake.wake_at()
    intake.tick()
    assert host.units["hog"] > asked
    intake.drop("hog")  # type: ignore[arg-type]  # any key will do
    assert intake.wake_at() == NEVER


def test_clients_of_a_head_have_no_pauses():
    """Credit bounds what they publish."""
    host: Any = Endless()
    intake = ClientIntake(host, host.handle, is_paced=False)
    intake.on_frame("hog", frame(1), 100)  # type: ignore[arg-type]  # any key will do
    for _ in range(1_000):
        intake.tick()
    assert intake.wake_at() == host.now
    assert host.units["hog"] >= 1_000 * client_intake.TURN_UNITS


def long_text(number: int) -> str:
    return "[class,=,'x']," + ",".join(f"[z{i},>,{number}]" for i in range(200))


def test_a_long_subscription_is_read_in_one_turn_and_installed_in_another():
    fleet = one_cluster()
    client = fleet.client("c", "e1")
    client.tell("e1", resume(1, "s", STOCK))
    fleet.run(0.5)
    edge, done = fleet.edge("e1"), [list[str]()]
    turn, read, install = ClientIntake._turn, predicates.parse, type(edge.attachments).install_part

    def watched(self: ClientIntake, link: Link, intake: client_intake.LinkIntake) -> bool:
        done.append([])
        return turn(self, link, intake)

    def reading(text: str) -> predicates.Subscription:
        done[-1].append("read")
        return read(text)

    def installing(*given: Any) -> list[msg.Cover]:
        done[-1].append("installed")
        return install(*given)

    subs = msg.Subs(1, 2, [msg.SubscriptionItem(2 + n, long_text(n)) for n in range(4)], [1])
    with (
        mock.patch.object(ClientIntake, "_turn", watched),
        mock.patch.object(list_change, "predicates", mock.Mock(parse=reading)),
        mock.patch.object(type(edge.attachments), "install_part", installing),
    ):
        client.tell("e1", subs)
        for _ in range(40):
            fleet.round()
    assert [each for each in done if each] == [["read"], *[["installed"], ["read"]] * 3]
    assert client.of("e1", msg.Suback)[-1].version == 2
