"""The asyncio twins against real brokers: what differs from the synchronous library is how they wait."""

from __future__ import annotations

import asyncio
import threading
import uuid
from typing import Any

import pytest

from plimsoll.client import Answered, ClientLimits, Delivery, GapNotice, Policy, errors
from plimsoll.client.aio import AsyncConnection, AsyncPublisher, AsyncSubscriber

TOPIC = uuid.uuid4().hex


def run(make: Any) -> None:
    async def within() -> None:
        async with asyncio.timeout(500):
            await make()

    asyncio.run(within())


def connect(fleet: Any, **options: Any) -> AsyncConnection:
    return AsyncConnection(fleet.head, security=fleet.curve() if fleet.pairs else "plain", **options)


async def publish(publisher: AsyncPublisher, *values: int, payload: bytes = b"") -> None:
    for n in values:
        await publisher.publish({"topic": TOPIC, "n": n}, payload)


def test_what_is_published_arrives_and_is_answered_without_a_thread(fleet: Any):
    async def main() -> None:
        threads = set(threading.enumerate())
        async with connect(fleet) as connection, AsyncPublisher(connection) as publisher:
            await connection.wait_open(300)
            subscriber = AsyncSubscriber(connection)
            assert (await subscriber.subscribe(f"[topic,=,'{TOPIC}'],[n,>,2]")).acknowledged
            receipt = await publisher.publish({"topic": TOPIC, "n": 1})
            assert (await receipt.wait(300)).answer == "accepted"
            await publish(publisher, *range(200))
            assert (await publisher.flush(300)).accepted == 201
            items = [await subscriber.receive(300) for _ in range(197)]
            assert [item.attributes["n"] for item in items if isinstance(item, Delivery)] == list(range(3, 200))
            assert set(threading.enumerate()) <= threads
            assert connection.status()["head"] == "h"

    run(main)


def test_iterating_and_the_end(fleet: Any):
    async def main() -> None:
        async with connect(fleet) as connection:
            publisher, subscriber = AsyncPublisher(connection), AsyncSubscriber(connection)
            await subscriber.subscribe(f"[topic,=,'{TOPIC}']")
            await publish(publisher, *range(5))
            seen = []
            async for item in subscriber.deliveries(on_gap=lambda gap: None):
                seen.append(item.attributes["n"])
                if len(seen) == 5:
                    await subscriber.close()
            assert seen == [0, 1, 2, 3, 4]
            with pytest.raises(errors.ClosedError):
                await subscriber.receive()

    run(main)


def test_callbacks_batches_and_answers(fleet: Any):
    async def main() -> None:
        got: list[Any] = []
        answers: list[Answered] = []
        states: list[Any] = []
        async with connect(fleet) as connection:
            subscribers = [AsyncSubscriber(connection, on_batch=got.extend, on_state=states.append) for _ in range(20)]
            for each in subscribers:
                await each.subscribe(f"[topic,=,'{TOPIC}']", wait=False)
            for each in subscribers:
                await each.wait_acknowledged(300)
            async with AsyncPublisher(connection, on_answer=answers.extend) as publisher:
                await publish(publisher, *range(10))
            while len(got) < 200:
                await connection.changed.wait(1.0)
            assert sum(each.last - each.first + 1 for each in answers) == 10
            assert {type(state).__name__ for state in states} == {"Attached", "Acknowledged"}
            assert subscribers[0].statistics()["queued"] == 0

    run(main)


def test_a_callback_that_raises_ends_its_subscriber_alone(fleet: Any, caplog: pytest.LogCaptureFixture):
    def fails(items: list[Any]) -> None:
        raise KeyError("mine")

    async def main() -> None:
        async with connect(fleet) as connection, AsyncPublisher(connection) as publisher:
            bad, good = AsyncSubscriber(connection, on_batch=fails), AsyncSubscriber(connection)
            for each in (bad, good):
                await each.subscribe(f"[topic,=,'{TOPIC}']")
            await publish(publisher, 1, 2)
            assert [await good.receive(300) is not None for _ in range(2)] == [True, True]
            await connection.wait_for(lambda: bad.statistics()["state"] == "closed", 300.0, "closed")
            with pytest.raises(errors.CallbackError):
                bad.pause()
            assert bad.token is not None
            assert good.token is not None
            assert bad.token[2] < good.token[2]
        assert "has raised" in caplog.text

    run(main)


def test_waiting_has_an_end(fleet: Any):
    async def main() -> None:
        async with connect(fleet) as connection:
            subscriber = AsyncSubscriber(connection)
            with pytest.raises(errors.WaitTimeoutError, match="nothing was delivered"):
                await subscriber.receive(0.01)
        async with AsyncConnection("tcp://127.0.0.1:1", security="plain") as away:
            with pytest.raises(errors.WaitTimeoutError, match="no head answers"):
                await away.wait_open(0.02)
            publisher = AsyncPublisher(away)
            receipt = await publisher.publish({"n": 1})
            await publisher.close(timeout=0.01)
            with pytest.raises(errors.NotAcceptedError):
                await receipt.wait(1)

    run(main)


def test_a_full_buffer_holds_the_task_alone(fleet: Any):
    limits = ClientLimits(publisher_buffer_bytes=20_000)

    async def main() -> None:
        async with AsyncConnection("tcp://127.0.0.1:1", security="plain", limits=limits) as away:
            publisher = AsyncPublisher(away)
            await publish(publisher, *range(19), payload=b"x" * 1000)
            with pytest.raises(errors.BufferFullError, match="its buffer takes 20000 bytes"):
                await publisher.publish({}, b"x" * 1000, timeout=0.02)
            await publisher.close(timeout=0.0)
        async with connect(fleet, limits=limits) as connection, AsyncPublisher(connection) as publisher:
            await asyncio.gather(*(publish(publisher, *range(50), payload=b"x" * 1000) for _ in range(4)))
        assert publisher.statistics()["accepted"] == 200

    run(main)


def test_leaving_the_block_reports_what_was_not_accepted():
    async def main() -> None:
        publisher = AsyncPublisher("tcp://127.0.0.1:1", security="plain")
        await publisher.publish({"n": 1})
        await publisher.close(timeout=0.01)
        with pytest.raises(errors.NotAcceptedError, match="1 publications were not accepted"):
            await publisher.__aexit__(None, None, None)
        with pytest.raises(ValueError, match="security='plain'"):
            AsyncPublisher("tcp://127.0.0.1:1")

    run(main)


def test_pausing_and_going_on(fleet: Any):
    async def main() -> None:
        async with connect(fleet) as connection, AsyncPublisher(connection) as publisher:
            subscriber = AsyncSubscriber(connection)
            await subscriber.subscribe(f"[topic,=,'{TOPIC}']")
            subscriber.pause()
            await publish(publisher, *range(20))
            await publisher.flush(300)
            subscriber.resume()
            got: list[Any] = []
            while len(got) < 20:
                got += await subscriber.receive_many(20 - len(got), 300)
            assert [item.attributes["n"] for item in got] == list(range(20))

    run(main)


def test_subscriptions_come_and_go(fleet: Any):
    async def main() -> None:
        async with connect(fleet) as connection, AsyncPublisher(connection) as publisher:
            subscriber = AsyncSubscriber(connection)
            first = await subscriber.subscribe(f"[topic,=,'{TOPIC}'],[n,<,10]")
            await subscriber.subscribe(f"[topic,=,'{TOPIC}'],[n,>=,10]")
            await subscriber.unsubscribe(first, wait=True)
            await publish(publisher, 5, 15)
            item = await subscriber.receive(300)
            assert isinstance(item, Delivery)
            assert item.attributes["n"] == 15
            with pytest.raises(errors.ParseError):
                await subscriber.subscribe("[n")
            token = subscriber.token
            assert token is not None
            assert token[2] >= item.token[2]
            assert subscriber.watermarks

    run(main)


def test_a_pause_meets_the_policy(own_fleet: Any):
    fleet = own_fleet(queue_bytes=20_000)

    async def main() -> None:
        async with connect(fleet) as connection, AsyncPublisher(connection, confirm="edges") as publisher:
            subscriber = AsyncSubscriber(connection, policy=Policy(slow="drop-oldest"))
            await subscriber.subscribe("[topic,=,'nothing']", timeout=300)
            subscriber.pause()
            await subscriber.subscribe(f"[topic,=,'{TOPIC}']", timeout=300)  # answered behind the pause
            await publish(publisher, *range(300), payload=b"x" * 200)  # accepted when the edge has them
            await publisher.flush(300)
            subscriber.resume()
            assert isinstance(await subscriber.receive(300), GapNotice)

    run(main)


def test_with_keys(own_fleet: Any):
    fleet = own_fleet(curve=True)

    async def main() -> None:
        async with connect(fleet) as connection:
            await connection.wait_open(300)
            async with AsyncPublisher(connection) as publisher, AsyncSubscriber(connection) as subscriber:
                await subscriber.subscribe(f"[topic,=,'{TOPIC}']")
                await publish(publisher, 1)
                assert isinstance(await subscriber.receive(300), Delivery)

    run(main)


def test_a_fault_reaches_everyone(fleet: Any, caplog: pytest.LogCaptureFixture):
    async def main() -> None:
        connection = connect(fleet)
        await connection.wait_open(300)
        subscriber = AsyncSubscriber(connection)
        waiting = asyncio.ensure_future(subscriber.receive())

        def broken() -> Any:
            raise RuntimeError("broken")

        connection.engine.round = broken
        connection.wake()
        with pytest.raises(errors.ConnectionFailedError, match="broken"):
            await waiting
        await connection.close()
        assert "has failed" in caplog.text

    run(main)


def test_a_lone_surrogate_is_an_error_of_its_caller_and_hurts_no_other(fleet: Any):
    bad = "x\udcffy"

    async def main() -> None:
        async with connect(fleet) as connection, AsyncPublisher(connection) as publisher:
            subscriber = AsyncSubscriber(connection)
            await subscriber.subscribe(f"[topic,=,'{TOPIC}'],[kind,=,'good']")
            for make in (AsyncSubscriber, AsyncPublisher):
                with pytest.raises(ValueError, match="surrogates not allowed"):
                    make(connection, name=bad)
            with pytest.raises(ValueError, match="surrogates not allowed"):
                connect(fleet, name=bad)
            with pytest.raises(ValueError, match="surrogates not allowed"):
                await subscriber.subscribe(f"[topic,=,'{bad}']")
            for attributes in ({bad: 1}, {"topic": bad}):
                with pytest.raises(errors.PublicationError, match="not valid Unicode"):
                    await publisher.publish(attributes)
            await publisher.publish({"topic": TOPIC, "kind": "good", "n": 7})
            item = await subscriber.receive(300)
            assert isinstance(item, Delivery)
            assert item.attributes["n"] == 7

    run(main)
