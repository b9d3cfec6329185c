"""What a mediator says again, and what it learns page by page."""

from __future__ import annotations

from plimsoll.core import records as r
from plimsoll.core.session import Send, Settings
from plimsoll.core.session.turn import Turn


def turn_at(now: float) -> Turn:
    turn = Turn(3, Settings())
    turn.now = now
    return turn


def asked(turn: Turn) -> list[r.Serving]:
    found = [effect.record for effect in turn.effects if isinstance(effect, Send)]
    turn.effects = []
    return [record for record in found if isinstance(record, r.Serving)]


def answer(turn: Turn, query: r.Serving, names: list[str], more: bool = False, head_epoch: int = 1) -> None:
    turn.served("h", r.Served(query.id, query.edge, head_epoch, names, more))


def test_pages_make_a_listing():
    turn = turn_at(1.0)
    assert turn.listing("u", "a", "h") is None
    [first] = asked(turn)
    assert (first.edge, first.after) == ("a", "")
    answer(turn, first, ["a1", "a2"], more=True)
    assert turn.listing("u", "a", "h") is None
    [second] = asked(turn)
    assert (second.after, second.id != first.id) == ("a2", True)
    answer(turn, second, ["a3"])
    assert turn.listing("u", "a", "h") == ["a1", "a2", "a3"]
    assert not asked(turn)


def test_a_page_is_asked_for_until_it_comes():
    turn = turn_at(1.0)
    counts = []
    for now in (1.0, 1.1, 1.5, 1.6, 2.0):
        turn.now = now
        turn.listing("u", "a", "h")
        counts.append(len(asked(turn)))
    assert counts == [1, 0, 1, 0, 1]


def test_answers_to_other_questions_are_no_pages():
    turn = turn_at(1.0)
    turn.listing("u", "a", "h")
    [query] = asked(turn)
    turn.served("h", r.Served(query.id + 1, "a", 1, ["x"], False))
    turn.served("h", r.Served(query.id, "b", 1, ["x"], False))
    turn.served("other", r.Served(query.id, "a", 1, ["x"], False))
    assert turn.listing("u", "a", "h") is None
    answer(turn, query, ["a1"], more=True)
    answer(turn, query, ["a1", "a2"], more=False)
    assert turn.listing("u", "a", "h") is None, "a page that comes twice is one page"


def test_a_page_that_begins_with_the_last_name_of_the_one_before_adds_it_once():
    turn = turn_at(1.0)
    turn.listing("u", "a", "h")
    answer(turn, asked(turn)[0], ["a1", "a2"], more=True)
    turn.listing("u", "a", "h")
    answer(turn, asked(turn)[0], ["a3", "a2"])
    assert turn.listing("u", "a", "h") == ["a1", "a2", "a3"]


def test_a_head_that_starts_anew_between_two_pages_is_asked_from_the_start():
    turn = turn_at(1.0)
    turn.listing("u", "a", "h")
    answer(turn, asked(turn)[0], ["a1"], more=True)
    turn.listing("u", "a", "h")
    answer(turn, asked(turn)[0], ["a2"], head_epoch=2)
    assert turn.listing("u", "a", "h") is None
    [again] = asked(turn)
    assert again.after == ""
    answer(turn, again, ["a0", "a2"], head_epoch=2)
    assert turn.listing("u", "a", "h") == ["a0", "a2"]


def test_a_head_that_promises_more_and_has_nothing_does_not_keep_it_going():
    turn = turn_at(1.0)
    turn.listing("u", "a", "h")
    answer(turn, asked(turn)[0], [], more=True)
    assert turn.listing("u", "a", "h") == []


def test_questions_of_two_lives_differ():
    ids = set()
    for epoch in (3, 4):
        turn = Turn(epoch, Settings())
        turn.listing("u", "a", "h")
        ids.add(asked(turn)[0].id)
    assert len(ids) == 2
    assert all(0 < one < 2**63 for one in ids)


def test_several_edges_are_known_when_all_are():
    turn = turn_at(1.0)
    edges = [("a", "h"), ("b", "h")]
    assert turn.listings("u", edges) is None
    first, second = asked(turn)
    answer(turn, first, ["x"])
    assert turn.listings("u", edges) is None
    answer(turn, second, [])
    assert turn.listings("u", edges) == {"a": ["x"], "b": []}
    turn.unlist("u")
    assert turn.listings("u", edges) is None


def test_nothing_is_due_twice_within_its_interval():
    turn = turn_at(1.0)
    assert turn.is_due("x/1", 1.0)
    turn.now = 1.9
    assert not turn.is_due("x/1", 1.0)
    assert turn.is_due("x/2", 1.0)
    turn.hush("x/")
    assert turn.is_due("x/1", 1.0)


def test_ids_are_named_after_the_epoch():
    turn = turn_at(1.0)
    assert [turn.next_id(), turn.next_id()] == ["3.1", "3.2"]
