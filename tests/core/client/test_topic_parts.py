"""A subscription is divided by the hashes of its topics, unless they cannot be listed or are too many."""

from plimsoll.core.client.topic_parts import TOPICS_AT_MOST, topic_parts
from plimsoll.core.predicates import parse
from plimsoll.core.protocol.topic_units import topic_hash


def test_each_topic_has_its_part():
    parts = topic_parts(parse("[topic,in,('a','b')],[high,>,20]"), "topic")
    assert sorted(parts) == sorted((topic_hash(t), str(parse(f"[topic,=,'{t}'],[high,>,20]"))) for t in "ab")


def test_what_cannot_be_listed_is_asked_for_by_the_rest():
    assert topic_parts(parse("[high,>,20]"), "topic") == []
    assert topic_parts(parse("[topic,=,'a']"), "symbol") == []


def test_a_list_of_topics_has_a_bound():
    def listed(count: int) -> str:
        return "[topic,in,(" + ",".join(f"'t{n}'" for n in range(count)) + ")]"

    assert len(topic_parts(parse(listed(TOPICS_AT_MOST)), "topic")) == TOPICS_AT_MOST
    assert topic_parts(parse(listed(TOPICS_AT_MOST + 1)), "topic") == []
