"""When a profile is asked for, and which pieces belong to it."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core import records as r
from plimsoll.core.balancing.pieces import encoded, pieces
from plimsoll.core.policies.profile import Profile, Row
from plimsoll.core.policies.traffic import Block, Traffic
from plimsoll.core.session import EdgeView, Send, Settings, View
from plimsoll.core.session.profiles import COVER_LOOKS
from plimsoll.core.session.turn import Turn


def turn_at(now: float) -> Turn:
    turn = Turn(3, Settings())
    turn.now = now
    return turn


def get(turn: Turn, uid: str = "u", edge: str = "a") -> Profile | None:
    return turn.profiles.get(turn, uid, edge, "b", "h")


def asked(turn: Turn) -> list[r.ProfileQuery]:
    found = [effect.record for effect in turn.effects if isinstance(effect, Send)]
    turn.effects = []
    return [record for record in found if isinstance(record, r.ProfileQuery)]


def profile_of(*names: str) -> bytes:
    return encoded(Profile(Traffic([Block(8, 2.0, 100.0)]), (Row("{k}", 255, names),), 0))


def answer(turn: Turn, query: r.ProfileQuery, *names: str) -> None:
    for piece in pieces(query, 7, profile_of(*names)):
        turn.profiles.heard(turn, piece)


def names(profile: Profile | None) -> list[str]:
    return [] if profile is None else [name for row in profile.rows for name in row.names]


def test_it_is_asked_for_in_intervals_until_it_is_there():
    turn = turn_at(1.0)
    queries: list[r.ProfileQuery] = []
    counts = []
    for now in (1.0, 1.1, 1.9, 2.0, 2.5, 3.0):
        turn.now = now
        assert get(turn) is None
        queries += (found := asked(turn))
        counts.append(len(found))
    assert counts == [1, 0, 0, 1, 0, 1]
    answer(turn, queries[-1], "a1")
    for now in (3.1, 4.0, 10.0):
        turn.now = now
        assert names(get(turn)) == ["a1"]
        assert not asked(turn)


def test_each_session_has_the_answer_to_its_own_question():
    turn = turn_at(1.0)
    get(turn, "one")
    get(turn, "two")
    first, second = asked(turn)
    answer(turn, second, "late")
    assert get(turn, "one") is None
    assert names(get(turn, "two")) == ["late"]
    answer(turn, first, "early")
    assert (names(get(turn, "one")), names(get(turn, "two"))) == (["early"], ["late"])


def test_neither_another_question_nor_another_edge_is_an_answer():
    turn = turn_at(1.0)
    get(turn)
    [query] = asked(turn)
    answer(turn, r.ProfileQuery(query.id + 1, "a", "b"), "x")
    answer(turn, r.ProfileQuery(query.id, "c", "b"), "x")
    assert get(turn) is None
    answer(turn, query, "a1")
    answer(turn, query, "other")
    assert names(get(turn)) == ["a1"], "what is whole does not change"


def test_a_session_that_turns_to_other_edges_asks_anew():
    turn = turn_at(1.0)
    get(turn)
    [first] = asked(turn)
    assert get(turn, edge="c") is None
    [second] = asked(turn)
    assert (second.edge, second.target, second.id != first.id) == ("c", "b", True)
    turn.profiles.get(turn, "u", "c", "d", "h")
    [third] = asked(turn)
    assert (third.edge, third.target, third.id != second.id) == ("c", "d", True)


def test_what_a_session_was_told_is_forgotten_with_whom_its_edges_serve():
    turn = turn_at(1.0)
    get(turn)
    answer(turn, asked(turn)[0], "a1")
    assert names(get(turn)) == ["a1"]
    turn.unlist("another")
    assert names(get(turn)) == ["a1"]
    turn.unlist("u")
    assert get(turn) is None
    assert len(asked(turn)) == 1


# ---------------------------------------------------------------- edges of other heads


def joined_at(now: float) -> Turn:
    """Edges a and b of the head h, w and v of the head west."""
    turn = turn_at(now)
    heads = {"a": "h", "b": "h", "w": "west", "v": "west"}
    turn.view = View({}, {name: EdgeView(name, head, head) for name, head in heads.items()})
    return turn


def sent(turn: Turn, kind: type) -> list[tuple[str, Any]]:
    return [
        (each.head, each.record) for each in turn.effects if isinstance(each, Send) and isinstance(each.record, kind)
    ]


def test_what_an_edge_of_another_head_takes_in_is_asked_of_that_head_and_goes_with_the_question():
    turn = joined_at(1.0)
    assert turn.profiles.get(turn, "u", "a", "w", "h") is None
    [(head, query)] = sent(turn, r.CoverQuery)
    assert (head, query.edge) == ("west", "w")
    assert not sent(turn, r.ProfileQuery)
    turn.profiles.told(r.CoverTold(query.id, "w", 1, 2, ["[n,>,9]"]))
    assert turn.profiles.get(turn, "u", "a", "w", "h") is None
    assert not sent(turn, r.ProfileQuery), "half of it is not enough"
    turn.profiles.told(r.CoverTold(query.id, "w", 0, 2, ["[n,>,5]"]))
    assert turn.profiles.get(turn, "u", "a", "w", "h") is None
    found = sent(turn, r.ProfileQuery)
    assert {head for head, _ in found} == {"h"}
    parts = [(each.target, each.part, each.parts, each.accepting) for _, each in found]
    assert parts == [("w", 0, 2, ["[n,>,5]"]), ("w", 1, 2, ["[n,>,9]"])]
    answer(turn, found[0][1], "a1")
    assert names(turn.profiles.get(turn, "u", "a", "w", "h")) == ["a1"]


def test_of_several_targets_all_are_asked_for_if_one_is_of_another_head():
    turn = joined_at(1.0)
    turn.profiles.get(turn, "u", "a", "b", "h", ["b", "w"])
    queries = sent(turn, r.CoverQuery)
    assert [(head, query.edge) for head, query in queries] == [("h", "b"), ("west", "w")]
    for _, query in queries:
        turn.profiles.told(r.CoverTold(query.id, query.edge, 0, 1, [query.edge]))
    turn.profiles.get(turn, "u", "a", "b", "h", ["b", "w"])
    found = [each for _, each in sent(turn, r.ProfileQuery)]
    assert [(each.target, each.accepting, each.targets) for each in found] == [
        ("b", ["b"], ["b", "w"]), ("w", ["w"], ["b", "w"]),
    ]  # fmt: skip


def test_edges_of_one_session_share_what_a_target_takes_in():
    """Each edge of a shuffle is asked about all others: what one takes in is asked for once, and not once for each."""
    turn = joined_at(1.0)
    for edge, head in (("a", "h"), ("b", "h"), ("w", "west"), ("v", "west")):
        turn.profiles.get(turn, "u", edge, "x", head, [other for other in "abwv" if other != edge])
    assert sorted(query.edge for _, query in sent(turn, r.CoverQuery)) == ["a", "b", "v", "w"]
    turn.profiles.get(turn, "another", "a", "w", "h")
    assert len(sent(turn, r.CoverQuery)) == 5, "another session asks anew: loads are others by then"
    turn.profiles.forget("u")
    turn.profiles.get(turn, "u", "a", "w", "h")
    assert len(sent(turn, r.CoverQuery)) == 6


def test_edges_of_one_head_are_not_asked_about():
    turn = joined_at(1.0)
    turn.profiles.get(turn, "u", "w", "v", "west")
    assert not sent(turn, r.CoverQuery)
    assert [each.parts for _, each in sent(turn, r.ProfileQuery)] == [0]


def test_a_head_that_does_not_say_is_asked_again_and_then_done_without():
    turn = joined_at(1.0)
    for step in range(4 * COVER_LOOKS):
        turn.now = 1.0 + step / 4
        turn.profiles.get(turn, "u", "a", "w", "h")
    assert len(sent(turn, r.CoverQuery)) == COVER_LOOKS
    assert not sent(turn, r.ProfileQuery)
    turn.now = 1.0 + COVER_LOOKS
    turn.profiles.get(turn, "u", "a", "w", "h")
    [(head, query)] = sent(turn, r.ProfileQuery)
    assert (head, query.target, query.part, query.parts, query.accepting) == ("h", "w", 0, 1, [])


@pytest.mark.parametrize("told", [(0, 0), (2, 2), (0, 65)])
def test_parts_that_cannot_be_are_ignored(told: tuple[int, int]):
    turn = joined_at(1.0)
    turn.profiles.get(turn, "u", "a", "w", "h")
    [(_, query)] = sent(turn, r.CoverQuery)
    turn.profiles.told(r.CoverTold(query.id, "w", *told, ["x"]))
    turn.profiles.told(r.CoverTold(query.id + 1, "w", 0, 1, ["of another question"]))
    turn.profiles.get(turn, "u", "a", "w", "h")
    assert not sent(turn, r.ProfileQuery)
