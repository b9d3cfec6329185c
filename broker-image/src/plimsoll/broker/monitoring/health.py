"""A broker's answers to probes and scrapes, from a snapshot that its loop takes once a second.

The server's thread reads snapshots and never the machine, so the loop is neither locked nor waited for, and a stale
snapshot is itself the sign of a stuck loop. Metrics are rendered at most once per snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus

from plimsoll.broker.monitoring.metrics import CONTENT_TYPE, render_metrics
from plimsoll.broker.monitoring.process_probes import STUCK_SECONDS, probe_response
from plimsoll.broker.monitoring.snapshot import BrokerSnapshot
from plimsoll.telemetry.http_server import HttpRequest, HttpResponse


class BrokerHealth:
    """Answers of one broker. `is_leaving`: it has been asked to end, whether or not the loop has noticed."""

    def __init__(self, is_leaving: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._is_leaving, self._clock = is_leaving, clock
        self._started = clock()
        self._snapshot: BrokerSnapshot | None = None
        self._rendered: tuple[BrokerSnapshot, bytes] | None = None

    def update(self, snapshot: BrokerSnapshot) -> None:
        """Called by the loop."""
        self._snapshot = snapshot

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Called by the server's thread."""
        match request.path:
            case "/livez":
                return probe_response(self.stuck_reason())
            case "/readyz":
                return probe_response(self.unready_reason())
            case "/metrics":
                return self._metrics()
        return HttpResponse(HTTPStatus.NOT_FOUND, b"there is /livez, /readyz and /metrics\n")

    def stuck_reason(self) -> str:
        """Why this process should be restarted; an empty string if it should not."""
        seen = self._started if self._snapshot is None else self._snapshot.at
        age = self._clock() - seen
        return f"the loop has completed no round for {age:.0f} seconds" if age > STUCK_SECONDS else ""

    def unready_reason(self) -> str:
        """Why the broker is not ready for clients; an empty string if it is."""
        if self._is_leaving():
            return "leaving"
        if self._snapshot is None:
            return "starting"
        return self.stuck_reason() or self._snapshot.unready

    def _metrics(self) -> HttpResponse:
        snapshot = self._snapshot
        if snapshot is None:
            return HttpResponse(HTTPStatus.SERVICE_UNAVAILABLE, b"starting\n")
        if self._rendered is None or self._rendered[0] is not snapshot:
            self._rendered = (snapshot, render_metrics(snapshot))
        return HttpResponse(HTTPStatus.OK, self._rendered[1], CONTENT_TYPE)
