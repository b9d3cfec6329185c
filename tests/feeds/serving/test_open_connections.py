"""The table of connections: bounds of an identity, of an address and of all, and who has to go."""

from __future__ import annotations

import random

import pytest

from plimsoll.feeds.serving.open_connections import ConnectionBounds, ConnectionEnd, OpenConnections

BOUNDS = ConnectionBounds(of_identity=3, total=5, silent=6, silent_of_address=2)


def opened(table: OpenConnections, *numbers: int, address: str = "a", now: float = 0.0) -> list[ConnectionEnd]:
    return [end for number in numbers for end in table.opened(number, address, now)]


def asked(table: OpenConnections, identity: str, *numbers: int, now: float = 0.0) -> list[ConnectionEnd]:
    """Opened, each from an address of its own, and heard of."""
    opened_too = [end for number in numbers for end in table.opened(number, f"a{number}", now)]
    return opened_too + [end for number in numbers for end in table.asked(number, identity, now)]


def test_one_too_many_of_an_identity_is_ended_and_others_are_not() -> None:
    table = OpenConnections(BOUNDS)
    assert asked(table, "eve", 1, 2, 3) == []
    assert asked(table, "eve", 4) == [ConnectionEnd(4, "a4", "eve", "identity")]
    assert 4 not in table
    assert asked(table, "ann", 5) == []
    table.ended(2)
    assert asked(table, "eve", 6) == []
    assert table.numbers == [1, 3, 5, 6]


def test_one_that_is_idle_makes_room_for_another_of_its_identity() -> None:
    table = OpenConnections(BOUNDS)
    asked(table, "eve", 1, 2, 3)
    table.asked(1, "eve", 50.0)
    assert asked(table, "eve", 4, now=59.0)[0].number == 4
    assert asked(table, "eve", 5, now=60.0) == [ConnectionEnd(2, "a2", "eve", "identity")]
    assert 5 in table


def test_of_all_together_the_one_that_was_idle_for_longest_goes() -> None:
    table = OpenConnections(BOUNDS)
    for number, identity in enumerate("abcde"):
        asked(table, identity, number, now=float(number))
    table.asked(0, "a", 10.0)
    assert asked(table, "f", 9, now=11.0) == [ConnectionEnd(1, "a1", "b", "total")]
    assert table.numbers == [2, 3, 4, 0, 9]


def test_silent_ones_are_few_of_an_address_and_in_all_and_do_not_stay() -> None:
    table = OpenConnections(BOUNDS)
    assert opened(table, 1, 2) == []
    assert opened(table, 3) == [ConnectionEnd(1, "a", "", "silent")], "the newest may be one that asks at once"
    assert opened(table, 4, 5, 6, 7, address="b", now=1.0) == [
        ConnectionEnd(4, "b", "", "silent"), ConnectionEnd(5, "b", "", "silent"),
    ]  # fmt: skip
    assert opened(table, 8, 9, address="c", now=2.0) == []
    (end,) = opened(table, 10, address="d", now=3.0)
    assert end.address in ("a", "b", "c"), "one of an address with most"
    assert len(table) == 6
    assert {each.address for each in table.due(31.5)} <= {"a", "b"}
    assert {each.reason for each in table.due(34.0)} == {"silent"}
    assert len(table) == 0


def test_one_that_asks_stays_for_an_hour() -> None:
    table = OpenConnections(BOUNDS)
    asked(table, "ann", 1)
    assert table.due(3600.0) == []
    assert table.due(3601.0) == [ConnectionEnd(1, "a1", "ann", "silent")]


def test_a_message_that_does_not_end_is_noticed_by_its_bytes() -> None:
    table = OpenConnections(BOUNDS)
    asked(table, "eve", 1)
    opened(table, 2)
    mib = 2**20
    assert table.received(1, 5 * mib) == [], "it has asked meanwhile"
    assert table.received(1, 6 * mib) == []
    table.asked(1, "eve", 1.0)
    assert table.received(1, 9 * mib) == []
    assert table.received(1, 10 * mib + 1) == [ConnectionEnd(1, "a1", "eve", "unfinished")]
    assert table.received(2, mib + 1) == [ConnectionEnd(2, "a", "", "unfinished")]
    assert table.received(3, 99 * mib) == [], "it is gone"


def test_a_key_whose_name_has_changed_counts_for_the_new_name() -> None:
    table = OpenConnections(BOUNDS)
    asked(table, "old", 1, 2, 3)
    assert table.asked(1, "new", 1.0) == []
    assert asked(table, "old", 4) == []
    assert asked(table, "old", 5)[0].reason == "identity"
    assert asked(table, "new", 6) == []


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_and_nothing_is_forgotten(seed: int) -> None:
    """Against a plain list of what is open."""
    chance, table, now = random.Random(seed), OpenConnections(BOUNDS), 0.0
    identity_of: dict[int, str] = {}
    address_of: dict[int, str] = {}
    for number in range(400):
        now += chance.choice((0.0, 1.0, 40.0))
        address = chance.choice("xyz")
        address_of[number] = address
        ends = [*table.due(now), *table.opened(number, address, now)]
        for other in chance.sample(sorted(address_of), min(3, len(address_of))):
            identity_of.setdefault(other, chance.choice(["ann", "bob", "eve"]))
            ends += table.asked(other, identity_of[other], now) if other in address_of else []
        if chance.random() < 0.3:
            gone = chance.choice(sorted(address_of))
            table.ended(gone)
            del address_of[gone]
        for end in ends:
            address_of.pop(end.number, None)
        assert sorted(table.numbers) == sorted(address_of)
        asking = [each for each in table.numbers if each in table._asking]
        for identity in ("ann", "bob", "eve"):
            assert sum(identity_of[each] == identity for each in asking) <= BOUNDS.of_identity
        assert len(asking) <= BOUNDS.total
        silent = [address_of[each] for each in table.numbers if each not in asking]
        assert len(silent) <= BOUNDS.silent
        assert all(silent.count(each) <= BOUNDS.silent_of_address for each in silent)
