"""Writes the status of a fleet's objects, at a rate that the API server can bear for any size of fleet."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Mapping
from time import monotonic
from typing import Any

from plimsoll.operator import status
from plimsoll.operator.api import ApiConflictError, ApiError, ApiNotFoundError
from plimsoll.operator.backoff import Backoff
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref, ref
from plimsoll.operator.reconcile.fleet_client import FleetClient
from plimsoll.operator.reconcile.retries import CONFLICT_SECONDS, RETRY_SECONDS, is_api_unavailable

log = logging.getLogger(__name__)

LOAD_WRITE_SECONDS = 1.0
"""Load figures are written for one edge in this many seconds, so the figures of a large fleet are older."""


class StatusWriter:
    """Writes statuses that are due, and keeps the time and the result of each object's last write."""

    def __init__(self, client: FleetClient, load_seconds: float) -> None:
        self._client, self._load_seconds = client, load_seconds
        self._retries = Backoff(random.SystemRandom())
        self._written_at: dict[Ref, float] = {}

    async def write(self, statuses: Iterable[tuple[Object, Mapping[str, Any]]]) -> None:
        """Write each status that has changed, and each whose load figures are old enough.

        An object that changes meanwhile is written at the next call: a conflict never overwrites anything.
        """
        observed = self._client.observe()
        edges = sum(1 for _ in observed.kind("EdgeBroker"))
        interval = max(self._load_seconds, edges * LOAD_WRITE_SECONDS)
        self._written_at = {key: at for key, at in self._written_at.items() if key in observed.objects}
        self._retries.keep(observed.objects)
        for item, wanted in statuses:
            now, key = monotonic(), ref(item)
            age = now - self._written_at.get(key, -interval)
            if not status.is_due(item, wanted, age, interval) or not self._retries.is_due(key, now):
                continue
            self._written_at[key] = now
            try:
                await self._client.replace_status(item, wanted)
                self._retries.succeeded(key)
            except (ApiConflictError, ApiNotFoundError):  # it was changed or deleted meanwhile: the watch shows it
                self._retries.failed(key, now, CONFLICT_SECONDS, longest=interval)
                self._client.forget_write(key)
            except ApiError as error:
                pause = self._retries.failed(key, now, RETRY_SECONDS, longest=interval)
                log.warning(
                    "%s: status of %s was not written, next try in %.1f s: %s",
                    self._client.namespace, "/".join(key), pause, error,
                )  # fmt: skip
                if is_api_unavailable(error):
                    return  # the others would each wait for the same timeout
