"""Consumers join, leave and go: every slice has a consumer that stays, and newcomers get their even share."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from tests.core.policies.consumer_groups.small import applied, consumer, drawn

from plimsoll.core.policies.consumer_groups.membership import settle, unowned
from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, SliceLoad, SliceMove, SlicePlan, owners
from plimsoll.core.verify.slice_plan_checker import slice_plan_faults


def test_the_first_member_gets_all_slices() -> None:
    plan = settle([consumer("a")], range(4))
    assert plan.sessions == (tuple(SliceMove("", "a", number) for number in range(4)),)


def test_a_newcomer_gets_its_even_share_and_the_costliest() -> None:
    plan = settle([consumer("a", 0.1, 0.4, 0.2, 0.3), consumer("b")])
    assert {move.number for move in plan.moves} == {1, 3}
    assert {(move.giver, move.taker) for move in plan.moves} == {("a", "b")}


def test_with_more_consumers_than_slices_the_rest_is_idle_with_a_reason() -> None:
    # DPSLB 2014, 3.1: the number of slices bounds that of nodes
    consumers = [consumer("a", 1, 1, 1), consumer("b"), consumer("c"), consumer("d")]
    plan = settle(consumers)
    assert plan.idle == (("d", "there are 3 slices and 4 consumers"),)
    assert sorted(len(c.slices) for c in applied(consumers, plan)) == [0, 1, 1, 1]


def test_one_that_leaves_gives_all_and_takes_nothing() -> None:
    consumers = [consumer("a", 1, 1), consumer("b", 3, first=2), consumer("c", is_leaving=True)]
    leaving = replace(consumers[0], is_leaving=True)
    plan = settle([leaving, *consumers[1:]])
    assert {move.taker for move in plan.moves} == {"b"}
    assert not applied([leaving, *consumers[1:]], plan)[0].slices


def test_the_last_one_cannot_give() -> None:
    plan = settle([consumer("a", 1, is_leaving=True)])
    assert (plan.moves, plan.reason) == ((), "there is no consumer that stays")


def test_slices_without_a_consumer_go_to_the_cheapest() -> None:
    consumers = [consumer("a", 0.9), consumer("b", 0.1, first=1)]
    assert unowned(4, consumers) == (2, 3)
    assert {move.taker for move in settle(consumers, (2, 3)).moves} == {"b"}


def test_a_slice_of_unknown_cost_is_not_free() -> None:
    # a newcomer that has yet to report its load does not get all that the next one leaves
    has = [consumer("a", 0.1, 0.1), consumer("b", 0.1, 0.1, first=2), consumer("c", 0.1, 0.1, first=4, is_leaving=True)]
    newcomer = ConsumerLoad("d", (SliceLoad(6, is_known=False), SliceLoad(7, is_known=False)), has_measured=False)
    plan = settle([*has, newcomer], (8,))
    assert Counter(move.taker for move in plan.moves) == {"a": 1, "b": 1, "d": 1}


def test_numbers_that_cannot_be_divided_differ_by_one() -> None:
    plan = settle([consumer("a", *[0.1] * 11), consumer("b"), consumer("c"), consumer("d")])
    assert sorted(Counter(move.taker for move in plan.moves).values()) == [2, 3, 3]


def test_shares_are_even_after_joins_however_plans_were_cut_short() -> None:
    for seed in range(500):
        source = random.Random(seed)
        count, is_known = source.randint(1, 60), source.random() < 0.5
        slices = tuple(SliceLoad(number, 0.2 * is_known, 0.1, is_known=is_known) for number in range(count))
        consumers, newcomers = [ConsumerLoad("c00", slices)], set[str]()
        for i in range(1, source.randint(2, 12)):
            consumers.append(ConsumerLoad(f"c{i:02}"))
            newcomers |= {c.name for c in consumers if not c.slices}
            plan = settle(consumers, (), newcomers)
            begun = plan.sessions[: source.randint(0, len(plan.sessions))]
            consumers = applied(consumers, SlicePlan(begun))
        consumers = applied(consumers, settle(consumers, (), newcomers))
        many = [len(c.slices) for c in consumers]
        assert max(many) - min(many) <= 1, (seed, many)
        assert settle(consumers, (), newcomers).moves == (), seed


def test_thousands_of_small_groups_are_settled_at_once_and_stay_so() -> None:
    for seed in range(3000):
        source, consumers = random.Random(seed), drawn(seed)
        consumers = [replace(c, is_leaving=source.random() < 0.2) for c in consumers]
        count = sum(len(c.slices) for c in consumers) + source.randint(0, 3)
        plan = settle(consumers, unowned(count, consumers))
        staying = {c.name for c in consumers if not c.is_leaving}
        assert slice_plan_faults(plan.sessions, owners(consumers), staying, count) == [], seed
        after = applied(consumers, plan)
        if staying:
            assert set(owners(after).values()) <= staying, seed
            assert sorted(owners(after)) == list(range(count)), seed
            idle = {c.name for c in after if not c.slices and c.name in staying}
            assert not idle or all(len(c.slices) <= 1 for c in after), seed
            assert {name for name, _ in plan.idle} == idle, seed
        assert settle(after, unowned(count, after)).moves == () or not staying, seed
        shuffled = [*consumers]
        source.shuffle(shuffled)
        assert settle(shuffled, unowned(count, shuffled)) == plan, seed


def test_ten_thousand_slices_are_shared_out_evenly_at_once_and_when_all_join_one() -> None:
    names = [f"c{i:04}" for i in range(1000)]
    found = settle([ConsumerLoad(name) for name in names], range(10_000))
    assert set(Counter(move.taker for move in found.moves).values()) == {10}
    whole = ConsumerLoad("c0000", tuple(SliceLoad(number, 1.0, 0.001) for number in range(10_000)))
    found = settle([whole, *(ConsumerLoad(name) for name in names[1:])])
    assert set(Counter(move.taker for move in found.moves).values()) == {10}
    assert len(found.moves) == 9_990
