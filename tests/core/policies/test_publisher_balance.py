"""Publishers are placed heaviest first, each at the head that accepts least; and few move where few do."""

from __future__ import annotations

import random

from plimsoll.core.policies.publisher_balance import PublisherPlacement, even_out, spread


def test_all_are_spread_over_the_heads_that_accept_least():
    placed = spread({"a": 5.0, "b": 30.0, "c": 20.0, "d": 0.0}, {"x": 10.0, "y": 0.0})
    assert placed == [
        PublisherPlacement("b", "y"), PublisherPlacement("c", "x"), PublisherPlacement("a", "x"),
        PublisherPlacement("d", "y"),
    ]  # fmt: skip


def test_those_whose_rate_is_not_known_are_spread_by_number():
    placed = spread(dict.fromkeys("abcd", 0.0), {"x": 0.0, "y": 0.0})
    assert [each.head for each in placed] == ["x", "y", "x", "y"]


def test_only_what_lowers_the_higher_of_two_heads_moves():
    assert even_out({"a": 60.0, "b": 30.0, "c": 10.0}, 100.0, {"x": 0.0}) == [PublisherPlacement("a", "x")]
    assert even_out({"a": 60.0}, 60.0, {"x": 0.0}) == [], "it would only exchange the two"
    assert even_out({"a": 0.0}, 5.0, {"x": 0.0}) == [], "nothing is gained by a publisher that is silent"


def test_no_head_gets_more_than_the_source_had_and_a_second_look_finds_nothing():
    draw = random.Random(7)
    for _ in range(200):
        rates = {f"p{n}": draw.choice([0.0, 1.0, 3.0, 10.0, 50.0]) for n in range(draw.randrange(12))}
        heads = {name: draw.uniform(0, 100) for name in "xyz"[: draw.randrange(1, 4)]}
        own = sum(rates.values())
        placed = even_out(rates, own, heads)
        after = dict(heads)
        for name, head in placed:
            after[head] += rates[name]
        assert all(after[name] <= max(own, heads[name]) for name in heads)
        left = {name: rate for name, rate in rates.items() if name not in {each.publisher for each in placed}}
        again = even_out(left, sum(left.values()), after)
        assert not again


def test_a_given_order_is_kept():
    placed = spread({"a": 5.0, "b": 30.0, "c": 20.0}, {"x": 10.0, "y": 0.0}, ["c", "a", "b"])
    assert [(each.publisher, each.head) for each in placed] == [("c", "y"), ("a", "x"), ("b", "x")]
