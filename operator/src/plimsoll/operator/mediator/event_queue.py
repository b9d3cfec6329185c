"""Writes the mediator's Events in the background, so that they never delay it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from typing import Final, Literal

from plimsoll.core.session import EmitEvent
from plimsoll.operator.api import Api, ApiConflictError, ApiError, ApiNotFoundError, Object

log = logging.getLogger(__name__)

EVENT_QUEUE_LIMIT = 500
EVENT_PAUSE_SECONDS = 1.0
RETRYABLE_CODES: Final = frozenset({0, 429, 500, 502, 503, 504})
"""HTTP codes (0: no answer) after which the same Event may be accepted later."""


class KubernetesEventQueue:
    """Events that wait to be written; of more than `EVENT_QUEUE_LIMIT` the oldest are dropped."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._waiting: deque[tuple[Object, EmitEvent]] = deque(maxlen=EVENT_QUEUE_LIMIT)
        self._filled = asyncio.Event()

    def put(self, about: Object, event: EmitEvent) -> None:
        self._waiting.append((about, event))
        self._filled.set()

    def emit(self, about: Object, type_: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Queue an Event about an object."""
        metadata = about["metadata"]
        self.put(about, EmitEvent(metadata["uid"], metadata["name"], type_, reason, message))

    async def run(self) -> None:
        """Write Events as they come, until cancelled."""
        while True:
            await self._filled.wait()
            self._filled.clear()
            while self._waiting:
                await self._write(*self._waiting[0])

    async def _write(self, about: Object, event: EmitEvent) -> None:
        """Write the first Event. It stays queued while the API server is away."""
        try:
            await self._api.event(about, event.type, event.reason, event.message)
        except (ApiError, ApiConflictError, ApiNotFoundError) as error:
            if isinstance(error, ApiError) and error.code in RETRYABLE_CODES:
                await asyncio.sleep(EVENT_PAUSE_SECONDS)
                return
            log.warning("event %s about %s was not written: %s", event.reason, event.name, error)
        with contextlib.suppress(ValueError):  # a full queue dropped it while it was being written
            self._waiting.remove((about, event))
