"""What a broker answers to probes and scrapes, from a snapshot that its loop leaves once a second.

The server's thread reads snapshots and never the machine, so the loop is neither locked nor waited for, and a snapshot
that grows old is itself the sign that the loop is stuck. Metrics are written out at most once per snapshot, however
often they are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from plimsoll.broker.http import Answer
from plimsoll.broker.metrics import CONTENT_TYPE, render
from plimsoll.broker.snapshot import Snapshot

STUCK_SECONDS: Final = 15.0
"""The loop leaves a snapshot every second; compiling the matching loop on a slow processor may hold it up for some."""


class Health:
    """Answers of one broker. `is_leaving`: asked to end; known before the loop has come to it."""

    def __init__(self, is_leaving: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._is_leaving, self._clock = is_leaving, clock
        self._started = clock()
        self._snapshot: Snapshot | None = None
        self._rendered: tuple[Snapshot, bytes] | None = None

    def show(self, snapshot: Snapshot) -> None:
        """Called by the loop."""
        self._snapshot = snapshot

    def answer(self, path: str) -> Answer | None:
        """Called by the server's thread."""
        match path:
            case "/livez":
                return _verdict(self.stuck())
            case "/readyz":
                return _verdict(self.unready())
            case "/metrics":
                return self._metrics()
        return None

    def stuck(self) -> str:
        """Why this process should be started anew; an empty string if it should not."""
        seen = self._started if self._snapshot is None else self._snapshot.at
        age = self._clock() - seen
        return f"the loop has not come round for {age:.0f} seconds" if age > STUCK_SECONDS else ""

    def unready(self) -> str:
        """Why nobody should be sent here; an empty string if everybody may come."""
        if self._is_leaving():
            return "leaving"
        if self._snapshot is None:
            return "starting"
        return self.stuck() or self._snapshot.unready

    def _metrics(self) -> Answer:
        snapshot = self._snapshot
        if snapshot is None:
            return Answer(HTTPStatus.SERVICE_UNAVAILABLE, b"starting\n")
        if self._rendered is None or self._rendered[0] is not snapshot:
            self._rendered = (snapshot, render(snapshot))
        return Answer(HTTPStatus.OK, self._rendered[1], CONTENT_TYPE)


def _verdict(trouble: str) -> Answer:
    if trouble:
        return Answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{trouble}\n".encode())
    return Answer(HTTPStatus.OK, b"ok\n")
