"""A cordoned head takes no new publishers: clients are told another head, and those that cannot follow what to do."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.client.test_publisher_moves import CHAIN, LIMITS, Moves
from tests.core.fleet import Fleet, Publishing, tree

from plimsoll.core.client import Address, Client
from plimsoll.core.head.head_cordon import HeadCordon
from plimsoll.core.protocol import messages as msg

OTHERS = [msg.HeadAddress("b", "mem://b", ""), msg.HeadAddress("c", "mem://c", "")]


def cordon(moves: Moves, head: str = "a", *, others: list[msg.HeadAddress] = OTHERS, epoch: int | None = None) -> None:
    through = moves.fleet.head(head).epoch if epoch is None else epoch
    moves.mediator.say_control(head, msg.ClusterMembers([f"{head}1"], [], through, others))
    moves.fleet.run(0.1)


@pytest.fixture
def moves() -> Moves:
    return Moves(tree(CHAIN))


def newcomer(moves: Moves, name: str = "late", home: str = "a") -> Client:
    client = Client(f"app-{name}", 7, moves.fleet.ids(), [Address(f"mem://{home}")], LIMITS)
    client.now = moves.fleet.now
    moves.fleet.nodes[client.info.name] = client
    return client


def test_new_publishers_open_elsewhere_and_those_that_are_open_stay(moves: Moves):
    cordon(moves)
    client = newcomer(moves)
    late = [client.publisher(f"late{number}") for number in range(8)]
    for each in late:
        each.publish({"n": 1, "by": each.name}, sent_us=0)
    moves.run(1.0)
    assert {each.head for each in late} == {"b", "c"}, "their names are spread"
    assert [len(each.buffer) for each in late] == [0] * 8
    assert {each.statistics()["accepted"] for each in late} == {1}
    assert moves.heads() == {"a"}
    assert moves.fleet.head("a").counters["publishers_sent_elsewhere"] == 8
    assert all(moves.received("s-a", each.name) == [1] for each in late)
    moves.check()


def test_a_head_that_has_replaced_it_takes_them_again(moves: Moves):
    cordon(moves, epoch=moves.fleet.head("a").epoch - 1)
    client = newcomer(moves)
    late = client.publisher("late")
    moves.run(0.5)
    assert late.head == "a"
    assert not moves.fleet.head("a").head_cordon.is_cordoned


def test_one_that_was_open_here_opens_again(moves: Moves):
    moves.run(0.2)
    cordon(moves)
    moves.fleet.cut("app", "a")
    moves.run(3.0)
    moves.fleet.mend("app", "a")
    moves.run(1.0)
    assert moves.heads() == {"a"}
    moves.check()


def test_without_another_head_they_are_taken(moves: Moves):
    cordon(moves, others=[])
    late = newcomer(moves).publisher("late")
    moves.run(0.5)
    assert late.head == "a"


def test_a_drained_head_takes_none_back_and_can_be_replaced(moves: Moves):
    moves.run(0.2)
    cordon(moves)
    session = moves.command("a", "b")
    moves.run(0.5)
    assert moves.outcome(session) == {"p": "moved", "q": "moved"}
    late = newcomer(moves).publisher("late")
    moves.run(0.3)
    assert late.head in ("b", "c")
    moves.fleet.crash("a")
    moves.run(0.5)
    assert [moves.count(name, "unknown") for name in ("p", "q")] == [0, 0]
    assert all(len(publisher.buffer) < 5 for publisher in moves.publishers.values()), "they go on"


def test_a_client_that_ignores_the_record_is_told_in_words():
    fleet: Fleet = tree(CHAIN)
    client, mediator = fleet.client("app", "a"), fleet.mediator("a")
    fleet.run(0.2)
    mediator.say_control("a", msg.ClusterMembers(["a1"], [], fleet.head("a").epoch, OTHERS[:1]))
    fleet.run(0.1)
    Publishing(client, "a")
    fleet.run(0.2)
    assert client.of("a", msg.PublisherElsewhere) == [msg.PublisherElsewhere(1, "b", "mem://b", "")]
    (refused,) = client.of("a", msg.Refused)
    assert (refused.seq, refused.code) == (0, "cordoned")
    assert refused.text == "a takes no new publishers, since it is to be replaced: connect to b at mem://b"
    assert not client.of("a", msg.Opened)


def test_heads_that_send_it_round_in_circles_end_it(moves: Moves):
    cordon(moves, "a", others=OTHERS[:1])
    cordon(moves, "b", others=[msg.HeadAddress("a", "mem://a", "")])
    late = newcomer(moves).publisher("late")
    moves.run(1.0)
    assert late.failed is not None
    assert late.failed.code == "cordoned"


def test_one_that_its_head_has_forgotten_begins_anew_elsewhere(moves: Moves):
    moves.run(0.2)
    cordon(moves)
    moves.fleet.cut("app", "a")
    moves.run(0.1)
    table = moves.fleet.head("a").publishers
    moves.fleet.run(3.0)
    for name in ("p", "q"):
        table.credits.forget(table.by_name.pop(name))
    moves.fleet.mend("app", "a")
    moves.run(2.0)
    assert moves.heads() <= {"b", "c"}
    assert {publisher.incarnation for publisher in moves.publishers.values()} == {8}
    moves.check(may_lose=True)


def test_only_heads_that_can_be_reached_are_named():
    found: Any = HeadCordon(5, lambda head: head == "c")
    found.take(msg.ClusterMembers([], [], 5, OTHERS))
    assert {found.elsewhere(f"p{number}").head for number in range(9)} == {"c"}
    found.take(msg.ClusterMembers([], [], 4, OTHERS))
    assert found.elsewhere("p") is None
