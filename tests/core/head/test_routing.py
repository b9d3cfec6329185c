"""Routes: covers by link, what each neighbour must know, and when an update may be acknowledged."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from plimsoll.core import predicates
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.protocol import cover_parts
from plimsoll.core.protocol.cover_parts import join_covers, split_cover
from plimsoll.core.protocol.messages import Cover, CoverItem
from plimsoll.core.protocol.wire import WireError

WIDE, NARROW, OTHER = "[class,=,'STOCK']", "[class,=,'STOCK'],[n,>,5]", "[class,=,'BOND']"


def cover(seq: int, adds: dict[int, str] | None = None, removes: list[int] | None = None) -> Cover:
    return Cover(seq, [CoverItem(i, text) for i, text in (adds or {}).items()], removes or [])


def up(table: RoutingTable, *names: str) -> None:
    for name in names:
        table.whole(name)
        table.acknowledged(name, 1, [])


# -- matching and covers


def test_a_publication_goes_to_the_links_that_need_it():
    table = RoutingTable([])
    table.apply("e1#1", cover(1, {1: WIDE}))
    table.apply("e2#1", cover(1, {1: OTHER}))
    assert table.match({"class": "STOCK"}) == {"e1#1"}
    assert table.match({"class": "BOND"}) == {"e2#1"}
    table.apply("e1#1", cover(2, {2: OTHER}, [1]))
    assert table.match({"class": "BOND"}) == {"e1#1", "e2#1"}
    table.drop("e2#1")
    assert table.match({"class": "BOND"}) == {"e1#1"}
    assert (table.size("e1#1"), table.size("e2#1")) == (1, 0)


def test_an_id_may_be_taken_out_and_put_in_again_in_one_step():
    table = RoutingTable([])
    table.apply("e", cover(1, {1: WIDE}))
    table.apply("e", cover(2, {1: OTHER}, [1]))
    assert table.match({"class": "STOCK"}) == set()
    assert table.match({"class": "BOND"}) == {"e"}


@pytest.mark.parametrize(
    "wrong",
    [cover(2, {}, [9]), cover(2, {1: WIDE}), cover(2, {2: "[n,>"}), cover(2, {2: OTHER, 1: WIDE})],
)
def test_an_update_that_does_not_fit_is_refused_whole(wrong: Cover):
    table = RoutingTable(["k"])
    table.apply("e", cover(1, {1: WIDE}))
    with pytest.raises(WireError) as caught:
        table.apply("e", wrong)
    assert caught.value.code == "cover"
    assert table.match({"class": "STOCK"}) == {"e"}
    assert table.match({"class": "BOND"}) == set()
    assert table.size("e") == 1


def test_a_neighbour_is_told_the_covering_set_of_everything_else():
    table = RoutingTable(["k", "m"])
    deltas = table.apply("e", cover(1, {1: NARROW}))
    assert set(deltas) == {"k", "m"}
    deltas = table.apply("f", cover(1, {1: WIDE}))
    assert [str(s) for _, s in deltas["k"].announce] == [str(predicates.parse(WIDE))]
    assert len(deltas["k"].withdraw) == 1
    assert table.apply("e", cover(2, {2: NARROW}, [1])) == {}, "covered before and after"
    deltas = table.apply("k", cover(1, {1: OTHER}))
    assert set(deltas) == {"m"}, "what a neighbour needs it knows itself"


@given(st.integers(0, 2**32))
@settings(max_examples=examples(30))
def test_a_neighbour_that_applies_all_it_is_told_has_what_covers_everything_else(seed: int):
    draw = random.Random(seed)
    table, mirror = RoutingTable(["k", "m"]), RoutingTable([])
    mirror.replace("h", table.whole("k"))
    seqs: dict[str, int] = {}
    held: dict[str, dict[int, str]] = {"e#1": {}, "f#1": {}, "m": {}, "k": {}}
    ids = 0
    for _ in range(30):
        key = draw.choice(list(held))
        mine = held[key]
        removes = draw.sample(sorted(mine), min(len(mine), draw.randrange(3)))
        adds = {}
        for _ in range(draw.randrange(3)):
            ids += 1
            adds[ids] = f"[n,>,{draw.randrange(4)}]" + draw.choice(["", ",[class,=,'A']", ",[class,=,'B']"])
        seqs[key] = seqs.get(key, 0) + 1
        whole = draw.random() < 0.1
        if whole:
            mine.clear()
            deltas = table.replace(key, cover(seqs[key], adds))
        else:
            deltas = table.apply(key, cover(seqs[key], adds, removes))
            for i in removes:
                del mine[i]
        mine.update(adds)
        if draw.random() < 0.1:
            mirror.replace("h", table.whole("k"))
        elif "k" in deltas:
            for part in split_cover(table.update("k", deltas["k"])):
                mirror.apply("h", part)
        for n in range(6):
            for name in ("A", "B", "C"):
                publication: dict[str, str | int | float | bool] = {"n": n, "class": name}
                wanted = {
                    k
                    for k, texts in held.items()
                    if any(predicates.parse(t).matches(publication) for t in texts.values())
                }
                assert table.match(publication) == wanted, seed
                assert (mirror.match(publication) == {"h"}) == bool(wanted - {"k"}), seed


# -- parts


@given(st.lists(st.integers(0, 400), max_size=40), st.integers(0, 60))
def test_parts_are_bounded_and_make_up_the_whole(sizes: list[int], removes: int):
    before = cover_parts.PART_CHARACTERS
    cover_parts.PART_CHARACTERS = 500
    try:
        whole = Cover(7, [CoverItem(i, "x" * size) for i, size in enumerate(sizes)], list(range(removes)))
        *first, last = split_cover(whole)
    finally:
        cover_parts.PART_CHARACTERS = before
    assert join_covers(first, last) == whole
    assert all(part.more and part.seq == 7 for part in first)
    assert not last.more
    for part in (*first, last):
        assert sum(len(item.text) for item in part.adds) <= 500 + 16 * len(part.adds)
        assert len(part.removes) <= 500 // 16


# -- acknowledgements


def test_an_update_waits_for_all_that_was_sent_onward_before_it():
    table = RoutingTable(["k", "m"])
    up(table, "k", "m")
    table.update("k", table.apply("e", cover(1, {1: WIDE}))["k"])
    table.update("m", table.apply("e", cover(2, {2: OTHER}))["m"])
    table.wait("e", 1)
    assert table.settled() == []
    table.acknowledged("k", 2, [])
    assert table.settled() == [], "m has not answered"
    table.acknowledged("m", 2, [])
    assert table.settled() == [("e", 1, [])]
    assert table.settled() == []


def test_a_covered_update_waits_for_its_coverer():
    table = RoutingTable(["k"])
    up(table, "k")
    table.update("k", table.apply("e", cover(1, {1: WIDE}))["k"])
    table.wait("e", 1)
    assert table.apply("f", cover(1, {1: NARROW})) == {}
    table.wait("f", 1)
    assert table.settled() == []
    table.acknowledged("k", 2, [])
    assert table.settled() == [("e", 1, []), ("f", 1, [])]


def test_a_neighbour_that_is_down_is_named_once_and_again_when_it_is_back():
    table = RoutingTable(["k", "m"])
    up(table, "k")
    table.apply("e", cover(1, {1: WIDE}))
    table.wait("e", 1)
    assert table.settled() == [("e", 1, ["m"])]
    assert table.settled() == []
    table.whole("m")
    assert table.settled() == [], "it is up, and has not answered"
    table.acknowledged("m", 1, [])
    assert table.settled() == [("e", 1, [])]
    assert table.waits == []


def test_neighbours_that_come_and_go_in_turn():
    table = RoutingTable(["k", "m"])
    up(table, "k", "m")
    table.update("k", table.apply("e", cover(1, {1: WIDE}))["k"])
    table.wait("e", 1)
    table.down("k")
    assert table.settled() == [("e", 1, ["k"])]
    table.down("m")
    assert table.settled() == [("e", 1, ["k", "m"])]
    up(table, "k")
    assert table.settled() == [("e", 1, ["m"])]
    table.down("k")
    up(table, "m")
    assert table.settled() == [("e", 1, ["k"])]
    up(table, "k")
    assert table.settled() == [("e", 1, [])]
    assert table.waits == []


def test_what_a_neighbour_could_not_reach_is_passed_on():
    table = RoutingTable(["k"])
    up(table, "k")
    table.update("k", table.apply("e", cover(1, {1: WIDE}))["k"])
    table.wait("e", 1)
    table.acknowledged("k", 2, ["far"])
    assert table.settled() == [("e", 1, ["far"])]
    table.update("k", table.apply("e", cover(2, {2: OTHER}))["k"])
    table.wait("e", 2)
    table.acknowledged("k", 3, ["far"])
    assert table.settled() == [("e", 2, ["far"])]
    table.acknowledged("k", 2, [])
    assert table.settled() == [], "what came later has not arrived there"
    table.acknowledged("k", 3, [])
    assert table.settled() == [("e", 2, [])]


def test_waits_for_a_neighbour_that_is_down_stay_few():
    table = RoutingTable(["k"])
    for seq in range(1, 200):
        table.apply("e", cover(seq, {seq: f"[n,=,{seq}]"}))
        table.wait("e", seq)
        assert table.settled() == [("e", seq, ["k"])]
    assert len(table.waits) == 1
    up(table, "k")
    assert table.settled() == [("e", 199, [])]


def test_a_link_that_goes_takes_its_waits_with_it():
    table = RoutingTable(["k", "m"])
    table.apply("e", cover(1, {1: WIDE}))
    table.wait("e", 1)
    table.apply("k", cover(1, {1: OTHER}))
    table.wait("k", 1)
    table.drop("e")
    table.down("k")
    assert table.waits == []


def test_a_new_link_numbers_from_one_and_old_numbers_answer_none():
    table = RoutingTable(["k"])
    up(table, "k")
    for seq in range(1, 6):
        table.update("k", table.apply("e", cover(seq, {seq: f"[n,=,{seq}]"}))["k"])
    table.wait("e", 5)
    table.down("k")
    assert table.settled() == [("e", 5, ["k"])]
    whole = table.whole("k")
    assert (whole.seq, len(whole.adds)) == (1, 5)
    assert table.settled() == []
    table.acknowledged("k", 1, [])
    assert table.settled() == [("e", 5, [])]
