"""Turns at starting queries, of which only few start at a time.

Each query has a Python of its own, for which Spark waits ten seconds. A dozen that begin together on two cores take
longer, and then all fail, and begin together again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

STARTS: Final = 2
"""How many queries of this process start at a time."""
LOOK_SECONDS: Final = 0.1

_turns: Final = threading.BoundedSemaphore(STARTS)


class StartTurn:
    """The turn of one channel, which may be given back twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_held = False

    def take(self, is_over: Callable[[], bool]) -> bool:
        """Wait for a turn; returns whether there is one before `is_over`."""
        while not is_over():
            if _turns.acquire(timeout=LOOK_SECONDS):
                self._is_held = True
                return True
        return False

    def give_back(self) -> None:
        """Let another channel start, if this one has its turn."""
        with self._lock:
            if self._is_held:
                self._is_held = False
                _turns.release()
