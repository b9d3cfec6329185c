"""The subscriber of the library against real brokers."""

from __future__ import annotations

import threading
import uuid
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.client import Attached, ClientLimits, Delivery, GapNotice, Policy, Publisher, Subscriber, errors


@pytest.fixture
def topic() -> str:
    """A word that only this test's publications and subscriptions contain."""
    return uuid.uuid4().hex


def numbers(items: list[Any]) -> list[int]:
    return [item.attributes["n"] for item in items]


def publish(publisher: Publisher, topic: str, *values: int, payload: bytes = b"") -> None:
    for n in values:
        publisher.publish({"topic": topic, "n": n}, payload)


def take(subscriber: Subscriber, count: int) -> list[Any]:
    items: list[Any] = []
    while len(items) < count:
        items += subscriber.receive_many(count - len(items), 300)
    return items


def test_what_was_published_after_the_acknowledgement_arrives_in_order(fleet: Any, topic: str):
    with fleet.connection() as connection, Publisher(connection) as publisher:
        subscriber = Subscriber(connection)
        subscription = subscriber.subscribe(f"[topic,=,'{topic}'],[n,>,2]")
        assert subscription.acknowledged
        publish(publisher, topic, *range(50), payload=b"data")
        items = take(subscriber, 47)
        assert numbers(items) == list(range(3, 50))
        assert isinstance(items[0], Delivery)
        assert items[0].payload == b"data"
        assert items[0].publisher == publisher.name


def test_iterating_ends_when_the_subscriber_is_closed(fleet: Any, topic: str):
    with fleet.connection() as connection, Publisher(connection) as publisher:
        subscriber = Subscriber(connection)
        subscriber.subscribe(f"[topic,=,'{topic}']")
        seen: list[int] = []

        def read() -> None:
            for item in subscriber.deliveries(on_gap=lambda gap: None):
                seen.append(item.attributes["n"])  # type: ignore[arg-type]  # publications of this test have a number there
                if len(seen) == 5:
                    subscriber.close()

        thread = threading.Thread(target=read)
        thread.start()
        publish(publisher, topic, *range(5))
        thread.join(300)
        assert not thread.is_alive()
        assert seen == [0, 1, 2, 3, 4]


def test_gaps_go_where_the_caller_says(fleet: Any, topic: str, own_fleet: Any):
    fleet = own_fleet(queue_bytes=20_000)
    with fleet.connection() as connection, Publisher(connection, confirm="edges") as publisher:
        subscriber = Subscriber(connection, policy=Policy(slow="drop-oldest"))
        subscriber.subscribe("[topic,=,'nothing']")
        subscriber.pause()
        subscriber.subscribe(f"[topic,=,'{topic}']")  # answered behind the pause
        publish(publisher, topic, *range(300), payload=b"x" * 200)  # accepted when the edge has them
        publisher.flush(300)
        end = Publisher(connection)
        subscriber.resume()
        publish(end, topic, -1)
        gaps: list[GapNotice] = []
        seen = []
        for item in subscriber.deliveries(on_gap=gaps.append):
            seen.append(item.attributes["n"])
            if seen[-1] == -1:
                break
        assert [gap.reason for gap in gaps] == ["queue"]
        missing = gaps[0].high - gaps[0].low + 1
        assert seen == [*range(missing, 300), -1]


def test_callbacks_get_batches_without_a_thread_each(fleet: Any, topic: str, eventually: Any):
    got: dict[str, list[int]] = {}
    states: list[Any] = []
    threads = threading.active_count()
    with fleet.connection() as connection, Publisher(connection) as publisher:
        subscribers = []
        for i in range(100):
            name = f"{topic}-{i}"
            got[name] = []
            subscriber = Subscriber(
                connection,
                name=name,
                on_batch=lambda items, name=name: got[name].extend(numbers(items)),
                on_state=states.append,
            )
            subscriber.subscribe(f"[topic,=,'{topic}']", wait=False)
            subscribers.append(subscriber)
        eventually(lambda: sum(type(state).__name__ == "Acknowledged" for state in states) == 100)
        assert threading.active_count() == threads + 1
        publish(publisher, topic, *range(30))
        eventually(lambda: all(len(each) == 30 for each in got.values()))
        assert all(each == list(range(30)) for each in got.values())
        assert sum(isinstance(state, Attached) for state in states) == 100
        assert subscribers[0].statistics()["queued"] == 0


def test_a_callback_that_raises_ends_its_subscriber_alone(
    fleet: Any, topic: str, eventually: Any, caplog: pytest.LogCaptureFixture
):
    def fails(items: list[Any]) -> None:
        raise KeyError("mine")

    with fleet.connection() as connection, Publisher(connection) as publisher:
        bad = Subscriber(connection, on_batch=fails)
        bad.subscribe(f"[topic,=,'{topic}']")
        good = Subscriber(connection)
        good.subscribe(f"[topic,=,'{topic}']")
        publish(publisher, topic, 1, 2)
        assert numbers(take(good, 2)) == [1, 2]

        def has_failed() -> bool:
            try:
                bad.pause()
            except errors.CallbackError as error:
                return isinstance(error.__cause__, KeyError)
            return False

        eventually(has_failed)
        eventually(lambda: bad.statistics()["state"] == "closed")
        assert "has raised" in caplog.text


def test_a_callback_may_close_the_connection_that_calls_it(fleet: Any, topic: str, eventually: Any):
    threads = threading.active_count()
    connection = fleet.connection()
    closing = Subscriber(connection, on_batch=lambda items: connection.close())
    closing.subscribe(f"[topic,=,'{topic}']")
    publish(Publisher(connection), topic, 1)
    eventually(lambda: threading.active_count() == threads)
    with pytest.raises(errors.ClosedError):
        closing.pause()


def test_many_subscriptions_are_waited_for_in_one_go(fleet: Any, topic: str):
    with fleet.connection() as connection:
        subscriber = Subscriber(connection)
        made = [subscriber.subscribe(f"[topic,=,'{topic}'],[n,=,{n}]", wait=False) for n in range(300)]
        subscriber.wait_acknowledged(300)
        assert all(each.acknowledged for each in made)


def test_unsubscribing_and_refusals(fleet: Any, topic: str):
    with fleet.connection() as connection, Publisher(connection) as publisher:
        subscriber = Subscriber(connection)
        first = subscriber.subscribe(f"[topic,=,'{topic}'],[n,<,10]")
        second = subscriber.subscribe(f"[topic,=,'{topic}'],[n,>=,10]")
        subscriber.unsubscribe(first, wait=True)
        assert first.is_withdrawn
        publish(publisher, topic, 5, 15)
        assert numbers(take(subscriber, 1)) == [15]
        with pytest.raises(errors.ParseError, match="column"):
            subscriber.subscribe("[n,>")
        with pytest.raises(KeyError, match="no subscription"):
            subscriber.unsubscribe(first)
        subscriber.unsubscribe(second)


def test_a_subscription_that_the_broker_refuses(own_fleet: Any):
    fleet = own_fleet(max_subscriptions_per_subscriber=1)
    with fleet.connection() as connection:
        subscriber = Subscriber(connection)
        subscriber.subscribe("[n,>,1]")
        with pytest.raises(errors.SubscriptionRefusedError, match="at most 1 subscriptions"):
            subscriber.subscribe("[n,>,2]")


def test_the_token_is_behind_what_was_read_and_not_what_has_arrived(fleet: Any, topic: str, eventually: Any):
    with fleet.connection() as connection, Publisher(connection) as publisher:
        subscriber = Subscriber(connection, name=f"reader-{topic}")
        subscriber.subscribe(f"[topic,=,'{topic}']")
        publish(publisher, topic, *range(10))
        eventually(lambda: subscriber.statistics()["delivered"] == 10)
        items = [subscriber.receive(300) for _ in range(4)]
        token, marks = subscriber.token, subscriber.watermarks
        assert token == items[-1].token
        subscriber.close(withdraw=False)
    with fleet.connection() as connection:
        again = Subscriber(connection, name=f"reader-{topic}", token=token, watermarks=marks)
        again.subscribe(f"[topic,=,'{topic}']", wait=False)
        assert numbers(take(again, 6)) == [4, 5, 6, 7, 8, 9]


def test_a_small_queue_is_refilled_as_it_is_read(fleet: Any, topic: str, eventually: Any):
    limits = ClientLimits(queue_records=50)
    with fleet.connection(limits=limits) as connection, Publisher(connection) as publisher:
        subscriber = Subscriber(connection)
        subscriber.subscribe(f"[topic,=,'{topic}']")
        publish(publisher, topic, *range(1000))
        eventually(lambda: subscriber.statistics()["queued"] > 50)
        assert numbers(take(subscriber, 1000)) == list(range(1000))
        eventually(lambda: subscriber.statistics()["queued"] == 0)
        publish(publisher, topic, 1000)
        assert numbers(take(subscriber, 1)) == [1000]
        assert subscriber.statistics()["pauses"] > 0


def test_nothing_delivered_in_time(fleet: Any):
    with fleet.connection() as connection:
        subscriber = Subscriber(connection)
        with pytest.raises(errors.WaitTimeoutError, match=r"nothing was delivered within 0.01 s"):
            subscriber.receive(0.01)
        subscriber.close()
        with pytest.raises(errors.ClosedError):
            subscriber.receive()
        assert list(subscriber) == []


@pytest.mark.sweep
def test_who_is_disconnected_by_policy_is_told_after_its_last_delivery(own_fleet: Any, topic: str):
    fleet = own_fleet(queue_bytes=5_000)
    with fleet.connection() as connection, Publisher(connection) as publisher:
        subscriber = Subscriber(connection, policy=Policy(slow="disconnect"))
        subscriber.subscribe(f"[topic,=,'{topic}']")
        publish(publisher, topic, 1)
        publisher.flush(300)
        assert numbers(take(subscriber, 1)) == [1]
        subscriber.pause()
        publish(publisher, topic, *range(2, 200), payload=b"x" * 200)
        publisher.flush(300)
        with pytest.raises(errors.FailedError) as caught:
            subscriber.receive(300)
        assert caught.value.code == "slow"


def test_a_new_subscriber_begins_in_the_past_and_one_with_a_lease_is_told_how_long_it_is(fleet: Any, topic: str):
    with fleet.connection() as connection, Publisher(connection) as publisher:
        publish(publisher, topic, *range(5))
        publisher.flush()
        later = Subscriber(connection, since=timedelta(minutes=5), lease=timedelta(hours=2))
        later.subscribe(f"[topic,=,'{topic}']")
        assert numbers(take(later, 5)) == list(range(5))
        assert later.statistics()["lease_seconds"] == 7200.0
        token, marks = later.token, later.watermarks
        later.close(withdraw=False)
        publish(publisher, topic, *range(5, 9))
        publisher.flush()
        back = Subscriber(connection, name=later.name, token=token, watermarks=marks, lease=timedelta(hours=2))
        back.subscribe(f"[topic,=,'{topic}']")
        assert numbers(take(back, 4)) == [5, 6, 7, 8]
