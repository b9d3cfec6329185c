"""Signals that end a command which would run on, and has work to finish before it ends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """Whether SIGINT or SIGTERM has come; the handlers of before are back afterwards."""
    received: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        received.append(number)

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
