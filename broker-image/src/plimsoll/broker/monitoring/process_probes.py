"""Probes of a broker process from its start on: before its machine is there, and while it waits or follows a head.

Until then it is alive as long as its loop makes rounds, and ready once it may be promoted. This needs no more than the
standard library: a broker that serves no probes is spared Prometheus'.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from plimsoll.telemetry.http_server import HttpRequest, HttpResponse

STUCK_SECONDS: Final = 15.0
"""The loop takes a snapshot every second; compiling the matching loop on a slow processor may delay it by a few."""


class ProcessProbes:
    """`answer` is called by the server's thread, all else by the loop's."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at, self._unready = clock(), "starting"
        self._machine: Callable[[HttpRequest], HttpResponse] | None = None

    def note(self, unready: str) -> None:
        """The loop makes rounds. `unready`: why this process may not be promoted; empty if it may."""
        self._at, self._unready = self._clock(), unready

    def answer_by(self, machine: Callable[[HttpRequest], HttpResponse]) -> None:
        """From here on, answer from the broker's own snapshots."""
        self._machine = machine

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer a probe or a scrape."""
        if self._machine is not None:
            return self._machine(request)
        age = self._clock() - self._at
        stuck = f"the loop has completed no round for {age:.0f} seconds" if age > STUCK_SECONDS else ""
        match request.path:
            case "/livez":
                return probe_response(stuck)
            case "/readyz":
                return probe_response(stuck or self._unready)
            case "/metrics":
                return HttpResponse(HTTPStatus.OK, b"")
        return HttpResponse(HTTPStatus.NOT_FOUND, b"there is /livez, /readyz and /metrics\n")


def probe_response(trouble: str) -> HttpResponse:
    """The answer to a probe: why it fails, or that all is well."""
    if trouble:
        return HttpResponse(HTTPStatus.SERVICE_UNAVAILABLE, f"{trouble}\n".encode())
    return HttpResponse(HTTPStatus.OK, b"ok\n")
