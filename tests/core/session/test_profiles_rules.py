"""When a profile is asked for, and which pieces belong to it."""

from __future__ import annotations

from plimsoll.core import records as r
from plimsoll.core.balancing.pieces import encoded, pieces
from plimsoll.core.policies.profile import Profile, Row
from plimsoll.core.policies.traffic import Block, Traffic
from plimsoll.core.session import Send, Settings
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
