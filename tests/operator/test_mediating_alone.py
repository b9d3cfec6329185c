"""What a mediator does beside its API server, where no test can make that one answer at the right moment."""

import asyncio
from typing import Any

from plimsoll.core.spec.kinds import BrokerFleetSpec
from plimsoll.operator.mediating import EVENTS_WAITING, Mediating


def item(name: str) -> dict[str, Any]:
    return {"kind": "LoadBalancingSession", "metadata": {"namespace": "ns", "name": name, "uid": name}}


def test_more_events_than_can_wait_make_room_for_the_latest_and_end_nothing():
    class Slow:
        def __init__(self) -> None:
            self.told: list[str] = []
            self.asked, self.answers = asyncio.Event(), asyncio.Event()

        async def event(self, about: dict[str, Any], *_: str) -> None:
            self.told.append(about["metadata"]["name"])
            self.asked.set()
            await self.answers.wait()

    async def story() -> None:
        api = Slow()
        mediating = Mediating(api, "ns", "stocks", None, BrokerFleetSpec())  # type: ignore[arg-type]
        telling = asyncio.create_task(mediating._tell())
        mediating._note(item("first"), "Normal", "Planned", "")
        async with asyncio.timeout(10):
            await api.asked.wait()
            for number in range(EVENTS_WAITING):
                mediating._note(item(f"later-{number}"), "Normal", "Planned", "")
            api.answers.set()
            while not telling.done() and len(api.told) <= EVENTS_WAITING:  # noqa: ASYNC110  as long as it goes on
                await asyncio.sleep(0)
        assert not telling.done()
        assert (api.told[0], api.told[-1], len(api.told)) == (
            "first",
            f"later-{EVENTS_WAITING - 1}",
            EVENTS_WAITING + 1,
        )
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)

    asyncio.run(story())
