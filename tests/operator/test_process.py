"""What ends the process. How it serves fleets is in `reconcile/test_fleet.py`, which runs it against a cluster."""

import asyncio
from typing import Any

import pytest

from plimsoll.operator.process import OperatorProcess
from plimsoll.operator.settings import OperatorSettings


class Server:
    """An API server without any request so far."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str, int], int] = {}


class Watching(OperatorProcess):
    """A process whose watches show nothing, and end when they are asked to."""

    async def _await_kinds(self) -> None:
        return

    async def _watch(self, stop: asyncio.Event, ready: asyncio.Event) -> None:
        await stop.wait()


def test_a_fault_of_what_checks_the_watches_ends_the_process(monkeypatch: pytest.MonkeyPatch):
    async def run() -> None:
        server: Any = Server()
        process = Watching(server, OperatorSettings(http_port=0))

        async def compare() -> None:
            raise KeyError("resourceVersion")

        monkeypatch.setattr(process.relist, "run", compare)
        async with asyncio.timeout(300):
            await process.run()

    with pytest.raises(KeyError, match="resourceVersion"):
        asyncio.run(run())


def test_what_is_beside_the_watches_ends_with_them(caplog: pytest.LogCaptureFixture):
    class Ending(Watching):
        async def _watch(self, stop: asyncio.Event, ready: asyncio.Event) -> None:
            return

    async def run() -> int:
        server: Any = Server()
        await Ending(server, OperatorSettings(http_port=0)).run()
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1, "no task but that of the test is left"
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []
