"""Waiting, with threads and with asyncio. All code that waits is written once, as coroutines that wait for signals.

An event loop suspends them. With threads a signal blocks instead, so that such a coroutine runs to its end in one step,
in the thread that has called `run`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Signal(Protocol):
    """Says that something has changed. Those that wait for it check their own condition again."""

    async def wait(self, seconds: float | None) -> None:
        """Wait for the next `notify`, at most for these seconds."""

    def notify(self) -> None:
        """Wake all that wait now."""


class ThreadSignal:
    """Blocks the thread. The lock of the condition is held by the caller, and released while it waits."""

    def __init__(self, condition: threading.Condition) -> None:
        self._condition = condition

    async def wait(self, seconds: float | None) -> None:
        self._condition.wait(seconds)

    def notify(self) -> None:
        self._condition.notify_all()


class TaskSignal:
    """Suspends the task. Used in one event loop."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    async def wait(self, seconds: float | None) -> None:
        self._event.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return  # the caller looks at its own timeout

    def notify(self) -> None:
        self._event.set()


class Timeout:
    """A time to wait, which runs from now on. None: without end."""

    __slots__ = ("_end",)

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds

    def left(self) -> float | None:
        """The seconds that are left; 0 if there are none."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    @property
    def is_over(self) -> bool:
        return self._end is not None and time.monotonic() >= self._end


def run(steps: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine whose signals block the thread.

    Raises:
        RuntimeError: it waits for something else, which needs an event loop.

    """
    try:
        steps.send(None)
    except StopIteration as end:
        found: T = end.value
        return found
    steps.close()
    raise RuntimeError(f"{steps!r} has suspended itself in a thread without an event loop")
