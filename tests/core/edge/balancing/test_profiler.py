"""An edge's profile: rows are requested subscriptions, bits are matches, rates are counted, answers are repeated."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.fleet import Fleet, Mediator, Publishing, resume
from tests.core.policies.hand import pair_of

from plimsoll.core.edge.balancing.profiler import KEPT_SECONDS, KEY_CHARACTERS
from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.policies.model.traffic import union_bits
from plimsoll.core.profiling.profile_codec import PARTS_AT_MOST, ProfileAssembly, decode_profile
from plimsoll.core.protocol import messages as msg


def replies(mediator: Mediator, number: int) -> list[msg.ProfileReply]:
    return [said for said in mediator.heard["h"] if isinstance(said, msg.ProfileReply) and said.id == number]


def asked(fleet: Fleet, mediator: Mediator, number: int = 9) -> SubscriptionProfile:
    mediator.say_control("h", msg.ProfileQuery(number, "e1", "e2"))
    fleet.run(1.0)
    gathering = ProfileAssembly()
    wholes = [whole for reply in replies(mediator, number) if (whole := gathering.take(reply)) is not None]
    return decode_profile(wholes[-1])


@pytest.fixture
def busy(balanced: Any) -> tuple[Fleet, Mediator]:
    """Three subscribers at e1, two with one subscription, one at e2; two publishers send 10 publications a second."""
    fleet = balanced(2)
    mediator = fleet.mediator("h")
    client = fleet.client("c", "h", "e1", "e2")
    client.tell("e1", resume(1, "s", "[n,>,0]"), resume(2, "t", "[n,>,0]"), resume(3, "u", "[odd,=,1]", "[n,<,0]"))
    client.tell("e2", resume(4, "v", "[odd,=,1]"))
    one, two = Publishing(client, "h", "one", 1), Publishing(client, "h", "two", 2)
    fleet.run(0.5)
    for _ in range(40):
        one.publish(odd=1)
        two.publish(odd=0)
        fleet.run(0.1)
    return fleet, mediator


def test_rows_bits_and_rates_are_those_of_the_traffic(busy: tuple[Fleet, Mediator]):
    fleet, mediator = busy
    profile = asked(fleet, mediator)
    rows = {row.names: row for row in profile.rows}
    assert set(rows) == {("s", "t"), ("u",)}
    all_of_them, odd = rows["s", "t"], rows["u",]
    assert (all_of_them.key, all_of_them.subscriptions) == ("{[n,>,0]}", 1)
    assert (odd.key, odd.subscriptions) == ("{[n,<,0]}, {[odd,=,1]}", 2)
    assert profile.rate(all_of_them) == pytest.approx(20.0, rel=0.3)
    assert profile.rate(odd) == pytest.approx(profile.rate(all_of_them) / 2, rel=0.1)
    assert odd.bits == profile.accepting
    assert pair_of(profile).extra_rate(odd) == 0.0
    assert odd.bits | all_of_them.bits == union_bits([(1 << profile.traffic.width) - 1])
    assert profile.rest == 0


def test_the_same_query_is_answered_with_the_same_pieces(busy: tuple[Fleet, Mediator]):
    fleet, mediator = busy
    asked(fleet, mediator)
    first = replies(mediator, 9)
    fleet.client("d", "e1").tell("e1", resume(9, "w"))
    asked(fleet, mediator)
    assert replies(mediator, 9) == [*first, *first]
    assert {name for row in asked(fleet, mediator, 10).rows for name in row.names} == {"s", "t", "u", "w"}


def test_an_older_query_and_parts_that_make_no_sense_are_ignored(busy: tuple[Fleet, Mediator]):
    fleet, mediator = busy
    asked(fleet, mediator, 10)
    answered = len(replies(mediator, 10))
    mediator.say_control("h", msg.ProfileQuery(9, "e1", "e2"))
    profiling = fleet.edge("e1").balancing_agent.profiler  # type: ignore[union-attr]  # it balances: `busy` gives it a policy
    assert profiling is not None
    for part, parts in ((0, 0), (3, 2), (0, 10**6)):
        profiling.on_query(msg.ProfileQuery(11, "e1", "e2", part, parts))
    fleet.run(0.5)
    assert not replies(mediator, 9)
    assert not replies(mediator, 11)
    assert len(replies(mediator, 10)) == answered


def test_all_parts_of_a_query_are_waited_for(busy: tuple[Fleet, Mediator]):
    fleet, mediator = busy
    profiling = fleet.edge("e1").balancing_agent.profiler  # type: ignore[union-attr]  # it balances: `busy` gives it a policy
    assert profiling is not None
    profiling.on_query(msg.ProfileQuery(11, "e1", "e2", 1, 2, ["[odd,=,1]"]))
    fleet.run(0.5)
    assert not replies(mediator, 11)
    profiling.on_query(msg.ProfileQuery(11, "e1", "e2", 0, 2, ["[odd,=,0]"]))
    fleet.run(0.5)
    [reply] = replies(mediator, 11)
    profile = decode_profile(reply.piece)
    assert profile.accepting == (1 << profile.traffic.width) - 1


def test_several_targets_are_each_told_apart(balanced: Any):
    """e2 takes odd values, e3 takes none: of the input of e1, e2 takes in half already and e3 nothing."""
    fleet = balanced(3)
    mediator = fleet.mediator("h")
    client = fleet.client("c", "h", "e1", "e2")
    client.tell("e1", resume(1, "s", "[n,>,0]"))
    client.tell("e2", resume(2, "v", "[odd,=,1]"))
    one = Publishing(client, "h", "one", 1)
    fleet.run(0.5)
    for number in range(40):
        one.publish(odd=number % 2)
        fleet.run(0.1)
    mediator.say_control("h", msg.ProfileQuery(9, "e1", "e2", targets=["e2", "e3"]))
    fleet.run(1.0)
    [reply] = replies(mediator, 9)
    profile = decode_profile(reply.piece)
    assert profile.accepting == 0
    [(name, taken)] = profile.takers
    assert name == "e2", "e3 takes in nothing"
    assert abs(taken.bit_count() - profile.traffic.width / 2) <= 1
    [row] = profile.rows
    assert profile.traffic.rate(row.bits & ~taken) == pytest.approx(profile.rate(row) / 2, rel=0.1)


def test_each_of_many_targets_may_have_a_part(busy: tuple[Fleet, Mediator]):
    fleet, mediator = busy
    names = [f"x{number}" for number in range(PARTS_AT_MOST + 20)]
    mediator.say_control("h", msg.ProfileQuery(12, "e1", names[0], targets=names))
    fleet.run(1.5)
    assert len(replies(mediator, 12)) == 1


def test_a_cover_that_cannot_be_read_is_counted(busy: tuple[Fleet, Mediator]):
    fleet, _ = busy
    edge = fleet.edge("e1")
    edge.balancing_agent.profiler.on_query(msg.ProfileQuery(11, "e1", "e2", 0, 1, ["[n,>"]))  # type: ignore[union-attr]  # it balances: `busy` gives it a policy
    fleet.run(0.5)
    assert edge.counters["profile_queries_refused"] == 1


def test_an_answer_is_forgotten_after_a_while(busy: tuple[Fleet, Mediator]):
    fleet, mediator = busy
    asked(fleet, mediator)
    profiling = fleet.edge("e1").balancing_agent.profiler  # type: ignore[union-attr]  # it balances: `busy` gives it a policy
    assert profiling is not None
    assert profiling._answer
    fleet.run(KEPT_SECONDS + 1.0)
    assert not profiling._answer


def test_long_lists_have_short_keys_that_differ(busy: tuple[Fleet, Mediator]):
    fleet, mediator = busy
    client = fleet.client("d", "e1")
    many = [f"[n,>,{i}],[class,=,'LONG']" for i in range(100)]
    client.tell("e1", resume(7, "x", *many, "[a,=,1]"), resume(8, "y", *many, "[z,=,1]"))
    fleet.run(0.5)
    keys = [row.key for row in asked(fleet, mediator).rows if row.subscriptions > 2]
    assert len(set(keys)) == 2
    assert max(map(len, keys)) < KEY_CHARACTERS + 30


def asked_for_each(fleet: Fleet, mediator: Mediator, number: int) -> SubscriptionProfile:
    mediator.say_control("h", msg.ProfileQuery(number, "e1", "e2", each=True))
    fleet.run(1.0)
    gathering = ProfileAssembly()
    wholes = [whole for reply in replies(mediator, number) if (whole := gathering.take(reply)) is not None]
    return decode_profile(wholes[-1])


def test_each_subscription_is_profiled_if_that_is_asked(busy: tuple[Fleet, Mediator]):
    """The rows are as before; beside them stand the three subscriptions, also those that no subscriber has alone."""
    fleet, mediator = busy
    profile = asked_for_each(fleet, mediator, 9)
    rows = {row.names: row for row in profile.rows}
    assert rows["s", "t"].texts == ("[n,>,0]",)
    assert rows["u",].texts == ("[n,<,0]", "[odd,=,1]")
    bits = dict(profile.each)
    assert set(bits) == {"[n,>,0]", "[n,<,0]", "[odd,=,1]"}
    assert bits["[n,<,0]"] == 0
    assert bits["[odd,=,1]"] == rows["u",].bits
    assert bits["[n,>,0]"] == rows["s", "t"].bits
    plain = asked(fleet, mediator, 10)
    assert plain.each == ()
    assert [(row.key, row.names, row.texts) for row in plain.rows] == [(row.key, row.names, ()) for row in profile.rows]


def test_back_end_subscriptions_are_counted_by_canonical_equality(busy: tuple[Fleet, Mediator]):
    """Written in another order and with other spaces it is the same subscription."""
    fleet, mediator = busy
    fleet.client("d", "e1").tell("e1", resume(9, "w", "[ odd , = , 1 ],[n,>,0]"), resume(10, "x", "[n,>,0],[odd,=,1]"))
    fleet.run(0.5)
    profile = asked_for_each(fleet, mediator, 9)
    rows = {name: row for row in profile.rows for name in row.names}
    assert rows["w"].key == rows["x"].key
    assert len(rows["w"].texts) == 1
    assert rows["w"].texts[0] in dict(profile.each)
