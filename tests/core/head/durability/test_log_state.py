"""The state that a log says besides its entries."""

from __future__ import annotations

import pytest
from tests.core.head.durability.conftest import BEGAN, own, pub

from plimsoll.core.head.durability.log_state import EpochTable, LogState, entry_of
from plimsoll.core.head.durability.records import (
    Checkpoint,
    EpochBegan,
    GroupForgotten,
    GroupKept,
    GroupNamed,
    Logged,
    NeighborMet,
    NumberRefused,
    PublisherKnown,
    SliceKept,
    SlicesKept,
)
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import FLAG_CONFIRM_EDGES


def state(*records: object) -> LogState:
    found = LogState("h")
    found.apply([*BEGAN, *records])  # type: ignore[list-item]  # records of the test
    return found


def test_publications_raise_the_number_of_their_publisher_and_their_origin():
    found = state(own(1, 1), own(2, 2), Logged(pub(3, 7, "g", 9), "g", 9, 30))
    assert found.position == 3
    assert found.publishers["p"].last_seq == 2, "what a neighbour relays is of no publisher here"
    assert dict(found.seen()) == {("g", 9): 7}
    assert found.neighbors == {"g": (9, 30)}


def test_a_refused_number_is_used_up_and_stays_an_exception_until_the_next_incarnation():
    refused = NumberRefused("p", 1, 3, "oversized", "too large")
    found = state(own(1, 1), own(2, 2), refused)
    assert found.publishers["p"].last_seq == 3
    assert list(found.exceptions["p"]) == [refused]
    found.apply([PublisherKnown("p", 2, "id")])
    assert found.publishers["p"].last_seq == 0
    assert "p" not in found.exceptions
    found.apply([refused])
    assert found.publishers["p"].last_seq == 0, "it is of an earlier incarnation"


def test_a_publication_that_waited_for_edges_is_an_exception():
    found = state(own(1, 1), own(2, 2, FLAG_CONFIRM_EDGES))
    assert [(each.seq, each.code) for each in found.exceptions["p"]] == [(2, "")]


def test_a_checkpoint_replaces_all_but_the_position():
    found = state(own(1, 1))
    known = PublisherKnown("q", 4, "", 8)
    found.apply([Checkpoint([EpochBegan(7, 2, 1)], [("g", 1, 5)], [known], [], [("g", 1, 6)]), NeighborMet("i", 3, 2)])
    assert (found.position, found.publishers) == (1, {"q": known})
    assert found.offsets == {("g", 1): 5}
    assert found.neighbors == {"g": (1, 6), "i": (3, 2)}
    assert [each.epoch for each in found.epochs] == [7]


def test_groups_are_known_by_name_unless_the_log_did_not_note_them():
    found = state(GroupNamed("g"))
    assert found.group_names is None, "a checkpoint of an earlier version"
    found.apply([Checkpoint([], [], [], [], [], group_names=["h"]), GroupNamed("g"), GroupNamed("h", is_served=False)])
    assert found.group_names == {"g"}


def test_groups_and_how_far_their_slices_are():
    definition = msg.GroupDefinition("", 3, "Modulo", "s")
    kept, other = GroupKept("g", "h", "h", definition), GroupKept("i", "w", "w", definition, 5.0)
    first, later = (SliceKept(1, ("h", 7, at)) for at in (3, 9))
    second = SliceKept(2, ("h", 7, 3), given_to=("h", 7, 5), side=1)
    found = state(kept, other, SlicesKept("g", [first, second]), SlicesKept("g", [later]))
    assert found.groups == {"g": kept, "i": other}
    assert found.slices == {"g": {1: later, 2: second}}
    found.apply([GroupForgotten("g")])
    assert (found.groups, found.slices) == ({"i": other}, {})
    found.apply([Checkpoint([], [], [], [], [], groups=[kept], slices=[SlicesKept("g", [first])])])
    assert (found.groups, found.slices) == ({"g": kept}, {"g": {1: first}})


def test_entries_are_publications_and_gaps():
    gap = wire.encode(msg.Gap("g", 1, 1, 1, 4, [("g", 1, 3)], "log"))
    assert entry_of(Logged(gap)).last == ((("g", 1), 3),)
    assert entry_of(Logged(gap)).is_gap
    assert entry_of(own(1, 6)).last == ((("h", 1), 6),)
    with pytest.raises(TypeError, match="Progress"):
        entry_of(Logged(wire.encode(msg.Progress(3))))


def test_a_position_is_of_its_epoch():
    table = EpochTable([EpochBegan(5, 1, 5), EpochBegan(8, 11, 5, has_neighbors=True), EpochBegan(9, 14, 9)])
    assert [table.last_of(epoch, 20) for epoch in (5, 8, 9, 7)] == [10, 13, 20, None]
    assert [table.was_alone_since(epoch) for epoch in (5, 8, 9, 7)] == [False, False, True, False]
