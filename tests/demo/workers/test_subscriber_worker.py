"""Readers of the journal: a subscriber of topics is audited for each of its topics, any other as a whole."""

from types import SimpleNamespace
from typing import Any

from plimsoll.client import GapNotice
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.verify import observations as seen
from plimsoll.demo.workers.subscriber_worker import INCARNATION, JournaledReaders
from plimsoll.demo.workload import PlannedSubscriber

WHOLE = PlannedSubscriber("s", "symbol", False, (("class", "=", "STOCK"), ("symbol", "=", "IBM")), 0.0)
OF_TOPICS = PlannedSubscriber("s", "topics", False, (), 0.0, ("a", "b"))


def subscribed(plan: PlannedSubscriber) -> tuple[JournaledReaders, list[str], list[Any]]:
    asked: list[str] = []

    def subscribe(text: str, *, wait: bool) -> Any:
        asked.append(text)
        return SimpleNamespace(id=10 + len(asked))

    one: Any = SimpleNamespace(subscribe=subscribe)  # only this much of a subscriber is used
    readers = JournaledReaders(plan)
    return readers, asked, list(readers.subscribe(one, 1.0))


def test_each_topic_is_a_reader_with_its_own_subscription():
    readers, asked, noted = subscribed(OF_TOPICS)
    assert readers.names == ["s/a", "s/b"]
    assert asked == ["[topic,=,'a']", "[topic,=,'b']"]
    assert [(each.subscriber, each.id) for each in noted if isinstance(each, seen.SubscriptionObserved)] == [
        ("s/a", 11), ("s/b", 12),
    ]  # fmt: skip
    assert readers.of_ids([12, 11]) == {"s/b": [12], "s/a": [11]}
    assert readers.of_delivery(delivery({"topic": "b"})) == "s/b"
    lost = msg.Gap("h", 1, 5, 1, 6, [], "slow")
    assert readers.of_gap(GapNotice(lost, 0.0, topic_hash("b"))) == ["s/b"]
    assert readers.of_gap(GapNotice(lost, 0.0)) == ["s/a", "s/b"]


def test_a_subscriber_without_topics_is_one_reader_whose_most_selective_predicate_comes_first():
    readers, asked, noted = subscribed(WHOLE)
    assert (readers.names, asked) == (["s"], ["[class,=,'STOCK'],[symbol,=,'IBM']"])
    (found,) = noted
    assert isinstance(found, seen.SubscriptionObserved)
    assert (found.incarnation, found.predicates[0][0]) == (INCARNATION, "symbol")
    assert readers.of_delivery(delivery({})) == "s"


def delivery(attributes: dict[str, str]) -> Any:
    return SimpleNamespace(attributes=attributes)
