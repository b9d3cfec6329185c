"""When a profile is asked for, and which pieces belong to it."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic
from plimsoll.core.profiling.profile_codec import encode_profile, split_reply
from plimsoll.core.protocol import messages as msg
from plimsoll.core.session import EdgeView, EngineSettings, FleetView, SendMessage
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.context.profile_queries import COVER_ATTEMPTS


def context_at(now: float) -> EngineContext:
    context = EngineContext(3, EngineSettings())
    context.outbox.now = now
    context.fleet = FleetView({}, {name: EdgeView(name, "h", "h") for name in "abcd"})
    return context


def get(context: EngineContext, uid: str = "u", edge: str = "a") -> SubscriptionProfile | None:
    return context.profile_queries.profile_of(context.fleet, uid, edge, "b")


def asked(context: EngineContext) -> list[msg.ProfileQuery]:
    found = [effect.message for effect in context.outbox.effects if isinstance(effect, SendMessage)]
    context.outbox.effects = []
    return [record for record in found if isinstance(record, msg.ProfileQuery)]


def profile_of(*names: str) -> bytes:
    return encode_profile(
        SubscriptionProfile(SampledTraffic([SampleBlock(8, 2.0, 100.0)]), (ProfileRow("{k}", 255, names),), 0)
    )


def answer(context: EngineContext, query: msg.ProfileQuery, *names: str) -> None:
    for piece in split_reply(query, 7, profile_of(*names)):
        context.profile_queries.receive_profile(piece)


def names(profile: SubscriptionProfile | None) -> list[str]:
    return [] if profile is None else [name for row in profile.rows for name in row.names]


def test_it_is_asked_for_in_intervals_until_it_is_there():
    context = context_at(1.0)
    queries: list[msg.ProfileQuery] = []
    counts = []
    for now in (1.0, 1.1, 1.9, 2.0, 2.5, 3.0):
        context.outbox.now = now
        assert get(context) is None
        queries += (found := asked(context))
        counts.append(len(found))
    assert counts == [1, 0, 0, 1, 0, 1]
    answer(context, queries[-1], "a1")
    for now in (3.1, 4.0, 10.0):
        context.outbox.now = now
        assert names(get(context)) == ["a1"]
        assert not asked(context)


def test_each_session_has_the_answer_to_its_own_question():
    context = context_at(1.0)
    get(context, "one")
    get(context, "two")
    first, second = asked(context)
    answer(context, second, "late")
    assert get(context, "one") is None
    assert names(get(context, "two")) == ["late"]
    answer(context, first, "early")
    assert (names(get(context, "one")), names(get(context, "two"))) == (["early"], ["late"])


def test_neither_another_question_nor_another_edge_is_an_answer():
    context = context_at(1.0)
    get(context)
    [query] = asked(context)
    answer(context, msg.ProfileQuery(query.id + 1, "a", "b"), "x")
    answer(context, msg.ProfileQuery(query.id, "c", "b"), "x")
    assert get(context) is None
    answer(context, query, "a1")
    answer(context, query, "other")
    assert names(get(context)) == ["a1"], "what is whole does not change"


def test_a_session_that_turns_to_other_edges_queries_again():
    context = context_at(1.0)
    get(context)
    [first] = asked(context)
    assert get(context, edge="c") is None
    [second] = asked(context)
    assert (second.edge, second.target, second.id != first.id) == ("c", "b", True)
    context.profile_queries.profile_of(context.fleet, "u", "c", "d")
    [third] = asked(context)
    assert (third.edge, third.target, third.id != second.id) == ("c", "d", True)


def test_profiles_of_a_session_are_forgotten_with_its_listings():
    context = context_at(1.0)
    get(context)
    answer(context, asked(context)[0], "a1")
    assert names(get(context)) == ["a1"]
    context.forget_answers("another")
    assert names(get(context)) == ["a1"]
    context.forget_answers("u")
    assert get(context) is None
    assert len(asked(context)) == 1


# ---------------------------------------------------------------- edges of other heads


def joined_at(now: float) -> EngineContext:
    """Edges a and b of the head h, w and v of the head west."""
    context = context_at(now)
    heads = {"a": "h", "b": "h", "w": "west", "v": "west"}
    context.fleet = FleetView({}, {name: EdgeView(name, head, head) for name, head in heads.items()})
    return context


def sent(context: EngineContext, kind: type) -> list[tuple[str, Any]]:
    return [
        (each.head, each.message)
        for each in context.outbox.effects
        if isinstance(each, SendMessage) and isinstance(each.message, kind)
    ]


def test_what_an_edge_of_another_head_takes_in_is_asked_of_that_head_and_goes_with_the_question():
    context = joined_at(1.0)
    assert context.profile_queries.profile_of(context.fleet, "u", "a", "w") is None
    [(head, query)] = sent(context, msg.CoverQuery)
    assert (head, query.edge) == ("west", "w")
    assert not sent(context, msg.ProfileQuery)
    context.profile_queries.receive_cover(msg.CoverReply(query.id, "w", 1, 2, ["[n,>,9]"]))
    assert context.profile_queries.profile_of(context.fleet, "u", "a", "w") is None
    assert not sent(context, msg.ProfileQuery), "half of it is not enough"
    context.profile_queries.receive_cover(msg.CoverReply(query.id, "w", 0, 2, ["[n,>,5]"]))
    assert context.profile_queries.profile_of(context.fleet, "u", "a", "w") is None
    found = sent(context, msg.ProfileQuery)
    assert {head for head, _ in found} == {"h"}
    parts = [(each.target, each.part, each.parts, each.accepting) for _, each in found]
    assert parts == [("w", 0, 2, ["[n,>,5]"]), ("w", 1, 2, ["[n,>,9]"])]
    answer(context, found[0][1], "a1")
    assert names(context.profile_queries.profile_of(context.fleet, "u", "a", "w")) == ["a1"]


def test_of_several_targets_all_are_asked_for_if_one_is_of_another_head():
    context = joined_at(1.0)
    context.profile_queries.profile_of(context.fleet, "u", "a", "b", ["b", "w"])
    queries = sent(context, msg.CoverQuery)
    assert [(head, query.edge) for head, query in queries] == [("h", "b"), ("west", "w")]
    for _, query in queries:
        context.profile_queries.receive_cover(msg.CoverReply(query.id, query.edge, 0, 1, [query.edge]))
    context.profile_queries.profile_of(context.fleet, "u", "a", "b", ["b", "w"])
    found = [each for _, each in sent(context, msg.ProfileQuery)]
    assert [(each.target, each.accepting, each.targets) for each in found] == [
        ("b", ["b"], ["b", "w"]), ("w", ["w"], ["b", "w"]),
    ]  # fmt: skip


def test_edges_of_one_session_share_what_a_target_takes_in():
    """Each edge of a shuffle is asked about all others: the covering set of each is queried once in all."""
    context = joined_at(1.0)
    for edge in "abwv":
        context.profile_queries.profile_of(context.fleet, "u", edge, "x", [other for other in "abwv" if other != edge])
    assert sorted(query.edge for _, query in sent(context, msg.CoverQuery)) == ["a", "b", "v", "w"]
    context.profile_queries.profile_of(context.fleet, "another", "a", "w")
    assert len(sent(context, msg.CoverQuery)) == 5, "another session asks again: loads have changed by then"
    context.profile_queries.forget_session("u")
    context.profile_queries.profile_of(context.fleet, "u", "a", "w")
    assert len(sent(context, msg.CoverQuery)) == 6


def test_edges_of_one_head_are_not_asked_about():
    context = joined_at(1.0)
    context.profile_queries.profile_of(context.fleet, "u", "w", "v")
    assert not sent(context, msg.CoverQuery)
    assert [each.parts for _, each in sent(context, msg.ProfileQuery)] == [0]


def test_a_head_that_does_not_say_is_asked_again_and_then_done_without():
    context = joined_at(1.0)
    for step in range(4 * COVER_ATTEMPTS):
        context.outbox.now = 1.0 + step / 4
        context.profile_queries.profile_of(context.fleet, "u", "a", "w")
    assert len(sent(context, msg.CoverQuery)) == COVER_ATTEMPTS
    assert not sent(context, msg.ProfileQuery)
    context.outbox.now = 1.0 + COVER_ATTEMPTS
    context.profile_queries.profile_of(context.fleet, "u", "a", "w")
    [(head, query)] = sent(context, msg.ProfileQuery)
    assert (head, query.target, query.part, query.parts, query.accepting) == ("h", "w", 0, 1, [])


@pytest.mark.parametrize("told", [(0, 0), (2, 2), (0, 65)])
def test_parts_that_cannot_be_are_ignored(told: tuple[int, int]):
    context = joined_at(1.0)
    context.profile_queries.profile_of(context.fleet, "u", "a", "w")
    [(_, query)] = sent(context, msg.CoverQuery)
    context.profile_queries.receive_cover(msg.CoverReply(query.id, "w", *told, ["x"]))
    context.profile_queries.receive_cover(msg.CoverReply(query.id + 1, "w", 0, 1, ["of another question"]))
    context.profile_queries.profile_of(context.fleet, "u", "a", "w")
    assert not sent(context, msg.ProfileQuery)
