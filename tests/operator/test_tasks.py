"""What comes of a fault at the end of a task that no caller awaits."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from plimsoll.operator.tasks import cancel_tasks


async def ends_well() -> None:
    await asyncio.Event().wait()


async def fails_at_its_end() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise OSError("the socket is already closed")


async def fails_at_once() -> None:
    raise OSError("no address")


def ended(work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
    """The end of a task that has begun."""

    async def run() -> asyncio.Task[None]:
        task = asyncio.create_task(work(), name="watches")
        await asyncio.sleep(0)
        await cancel_tasks(task)
        return task

    return asyncio.run(run())


def test_a_task_that_ends_as_it_should_is_not_logged(caplog: pytest.LogCaptureFixture):
    assert ended(ends_well).cancelled()
    assert caplog.records == []


@pytest.mark.parametrize(("work", "why"), [(fails_at_its_end, "already closed"), (fails_at_once, "no address")])
def test_a_fault_is_logged_with_its_reason(
    work: Callable[[], Coroutine[Any, Any, None]], why: str, caplog: pytest.LogCaptureFixture
):
    assert ended(work).done()
    assert [(each.levelno, each.message) for each in caplog.records] == [
        (logging.ERROR, "watches was to end and has failed")
    ]
    assert why in caplog.text


def test_the_fault_that_is_being_raised_is_not_logged_beside_it(caplog: pytest.LogCaptureFixture):
    async def run() -> None:
        task = asyncio.create_task(fails_at_once())
        try:
            await task
        finally:
            await cancel_tasks(task, asyncio.create_task(ends_well()))

    with pytest.raises(OSError, match="no address"):
        asyncio.run(run())
    assert caplog.records == []
