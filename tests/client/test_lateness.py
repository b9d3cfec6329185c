"""Deliveries that came late, by the clock of this process."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.test_subscriber import take

from plimsoll.client import Publisher, Subscriber
from plimsoll.client.lateness import UNITS_REMEMBERED, Lateness
from plimsoll.core.client import Delivery, GapNotice
from plimsoll.core.protocol import messages as msg


class List:
    """The list of subscriptions of a unit."""

    def __init__(self, *seconds: float | None) -> None:
        options = [{} if one is None else {"latency_seconds": one} for one in seconds]
        self.items = {number: msg.SubscriptionItem(number, "", each) for number, each in enumerate(options)}  # type: ignore[arg-type]  # values are scalars
        self.version = 1


class Asking:
    """A subscriber or one of its units, as far as lateness looks at it."""

    def __init__(self, *seconds: float | None, topics: dict[str, Asking] | None = None) -> None:
        self.subscription_list = List(*seconds)
        self.topics = None if topics is None else self
        self._topics = topics or {}

    def unit_of(self, item: Delivery) -> Asking | None:
        return self._topics.get(str(item.attributes.get("topic")))


def delivery(sent_seconds: float, topic: str = "t") -> Delivery:
    body = msg.Body({"topic": topic})
    return Delivery(msg.PubOpen(1, "h", 1, 1, "p", 1, 1, 0, int(sent_seconds * 1e6), body), ("h", 1), 0.0)


def counts(asking: Any, *sent: Delivery, at: float = 100.0) -> dict[str, Any]:
    found = Lateness(asking, lambda: int(at * 1e6))
    found.expect({"latency_seconds": 1.0})
    found.note(list(sent))
    return found.statistics()


def test_deliveries_later_than_required_are_counted():
    found = counts(Asking(0.5, None, 2.0), delivery(99.8), delivery(99.4), delivery(98.0))
    assert (found["timed_deliveries"], found["late_deliveries"]) == (3, 2), "the least of all subscriptions counts"
    assert found["delay_max_seconds"] == pytest.approx(2.0)


def test_each_topic_has_what_its_unit_requires():
    asking = Asking(None, topics={"fast": Asking(0.1), "slow": Asking(9.0)})
    found = counts(asking, delivery(99.0, "fast"), delivery(99.0, "slow"), delivery(99.0, "other"))
    assert (found["timed_deliveries"], found["late_deliveries"]) == (2, 1), "a delivery without a deadline is not timed"


def test_clocks_that_are_apart_are_seen_if_the_publishers_is_ahead():
    found = counts(Asking(0.5), delivery(101.0), delivery(99.9))
    assert (found["delays_below_zero"], found["late_deliveries"]) == (1, 0)


def test_a_change_of_the_list_is_noticed():
    asking: Any = Asking(5.0)
    found = Lateness(asking, lambda: 100_000_000)
    found.expect({"latency_seconds": 5.0})
    found.note([delivery(99.0)])
    asking.subscription_list = List(0.5)
    asking.subscription_list.version = 2
    found.note([delivery(99.0)])
    assert found.statistics()["late_deliveries"] == 1


def test_without_a_required_latency_nothing_is_looked_at():
    def never() -> int:
        raise AssertionError("no clock is read")

    asking: Any = Asking(None)
    found = Lateness(asking, never)
    found.expect({})
    found.note([delivery(1.0)])
    assert found.statistics()["timed_deliveries"] == 0


def test_gaps_are_not_timed_and_units_are_remembered_within_a_bound():
    topics = {f"t{number}": Asking(0.5) for number in range(2 * UNITS_REMEMBERED)}
    asking: Any = Asking(None, topics=topics)
    found = Lateness(asking, lambda: 100_000_000)
    found.expect({"latency_seconds": 0.5})
    gap = GapNotice(msg.Gap("h", 1, 1, 1, 2, [], "log"), 0.0)
    found.note([gap, *(delivery(99.0, topic) for topic in topics)])
    assert found.measured == len(topics)
    assert len(found._required) <= UNITS_REMEMBERED


def test_a_subscriber_of_a_fleet_counts_them(fleet: Any):
    with fleet.connection() as connection, Publisher(connection) as publisher:
        subscriber = Subscriber(connection)
        subscriber.subscribe("[late,=,'now']", latency_seconds=60.0)
        publisher.publish({"late": "now"})
        take(subscriber, 1)
        found = subscriber.statistics()
        assert (found["timed_deliveries"], found["late_deliveries"]) == (1, 0)
        with pytest.raises(ValueError, match="latency_seconds"):
            subscriber.subscribe("[late,=,'now']", latency_seconds=0.0)
