"""Consumer groups with asyncio against real brokers."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

from plimsoll.client import SlicesChanged, errors
from plimsoll.client.aio import AsyncConnection, AsyncPublisher

WAIT = 300.0


def run(make: Any) -> None:
    async def within() -> None:
        async with asyncio.timeout(500):
            await make()

    asyncio.run(within())


def connect(fleet: Any) -> AsyncConnection:
    return AsyncConnection(fleet.head, security=fleet.curve() if fleet.pairs else "plain")


def test_two_members_share_a_stream_and_one_leaves(fleet: Any) -> None:
    word = f"g{uuid.uuid4().hex}"

    async def main() -> None:
        changes: list[SlicesChanged] = []
        async with connect(fleet) as one, connect(fleet) as two, AsyncPublisher(one) as publisher:
            group = one.group(word, slices=4, filter=f"[topic,=,'{word}']", function="Modulo", by="n")
            first = await group.subscribe(name="first", on_change=changes.append, timeout=WAIT)
            assert list(first.slices) == [0, 1, 2, 3]
            second = await two.group(word).subscribe(name="second", timeout=WAIT)
            while len(second.slices) < 2:  # noqa: ASYNC110  # polled, within a deadline
                await asyncio.sleep(0.01)  # a beat of the head
            for n in range(20):
                await publisher.publish({"topic": word, "n": n})
            own = [await first.receive(300) for _ in range(10)]
            others = [await second.receive(300) for _ in range(10)]
            assert sorted(item.attributes["n"] for item in own + others) == list(range(20))
            await second.close()
            assert list(second.slices) == []
            with pytest.raises(errors.ClosedError):
                await second.receive(0.1)
            while len(first.slices) < 4:  # noqa: ASYNC110  # polled, within a deadline
                await asyncio.sleep(0.01)  # the head assigns them
            with pytest.raises(errors.WaitTimeoutError):
                await first.receive(0.05)
            assert {change.why for change in changes} == {"assigned", "revoked"}
            await first.close()

    run(main)


def test_manual_acknowledgement_and_the_end_of_an_iteration(fleet: Any) -> None:
    word = f"g{uuid.uuid4().hex}"

    async def main() -> None:
        async with connect(fleet) as connection, AsyncPublisher(connection) as publisher:
            group = connection.group(word, slices=1, filter=f"[topic,=,'{word}']", function="Publisher")
            member = await group.subscribe(manual_ack=True)
            for n in range(3):
                await publisher.publish({"topic": word, "n": n})
            seen = []
            async for item in member:
                seen.append(item.attributes["n"])
                item.ack()
                if len(seen) == 3:
                    await member.close()
            assert seen == [0, 1, 2]

    run(main)


def test_one_that_is_told_to_stop_while_it_waits_ends_at_once(fleet: Any) -> None:
    word = f"g{uuid.uuid4().hex}"

    async def main() -> None:
        async with connect(fleet) as connection:
            async with await connection.group(word, slices=1, function="Publisher").subscribe(timeout=WAIT) as member:
                asyncio.get_running_loop().call_later(0.05, member.stop)
                assert [item async for item in member] == []
            assert member.slices == ()

    run(main)


def test_a_callback_that_raises_ends_its_member(fleet: Any) -> None:
    word = f"g{uuid.uuid4().hex}"

    def fail(change: SlicesChanged) -> None:
        raise ValueError(change)

    async def main() -> None:
        async with connect(fleet) as connection:
            group = connection.group(word, slices=1, function="Publisher")
            with pytest.raises(errors.CallbackError):
                await group.subscribe(on_change=fail)

    run(main)
