"""The topics of a subscription, and its parts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.predicates import parse
from plimsoll.core.predicates.topics import for_topic, topics_of


@pytest.mark.parametrize(
    ("text", "topics"),
    [
        ("[topic,=,'a']", {"a"}),
        ("[topic,in,('a','b')],[n,>,3]", {"a", "b"}),
        ("[topic,in,('a','b')],[topic,!=,'a']", {"b"}),
        ("[topic,=,1]", {1}),
        ("[n,>,3]", set()),
        ("[topic,prefix,'a']", set()),
        ("[topic,exists]", set()),
        ("[topic,!=,'a']", set()),
        ("[topic,>,3]", set()),
    ],
)
def test_topics_are_the_values_that_can_be_listed(text: str, topics: set[object]):
    assert set(topics_of(parse(text), "topic")) == topics


@given(st.sets(st.sampled_from("abcd"), min_size=1), st.sampled_from("abcde"), st.integers(0, 6))
def test_the_parts_select_together_what_the_whole_does(values: set[str], topic: str, number: int):
    whole = parse(f"[topic,in,({','.join(repr(each) for each in sorted(values))})],[n,>,3]")
    publication: dict[str, str | int] = {"topic": topic, "n": number}
    parts = [for_topic(whole, "topic", each).matches(publication) for each in topics_of(whole, "topic")]
    assert sum(parts) == whole.matches(publication)


def test_topics_come_in_canonical_order_in_every_process():
    """Units join in this order: with that of a set, it would be another one in each process."""
    written = ",".join(f"'{letter}'" for letter in reversed("abcdefghijklmnop"))
    assert topics_of(parse(f"[topic,in,({written})]"), "topic") == tuple("abcdefghijklmnop")
    assert topics_of(parse("[topic,in,(30,4,2.5)]"), "topic") == (2.5, 4, 30)
