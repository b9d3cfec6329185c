"""Publish and subscribe in one event loop: `python asynchronous.py app.json`."""

import asyncio
import sys

from plimsoll.client.aio import AsyncConnection, AsyncPublisher, AsyncSubscriber


async def main(file: str) -> None:
    async with AsyncConnection.from_file(file) as connection:
        subscriber, publisher = AsyncSubscriber(connection), AsyncPublisher(connection)
        await subscriber.subscribe("[n,>=,7]")
        for n in range(10):
            await publisher.publish({"n": n})
        print([(await subscriber.receive(timeout=10)) for _ in range(3)])


asyncio.run(main(sys.argv[1]))
