"""The HTTP page of a recorder, or of a driver of channels: probes, metrics, and the figures that its operator reads.

Without figures yet, or with old ones, it is not ready; it lives for as long as it answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from plimsoll.feeds.config import FIGURES_PATH
from plimsoll.telemetry.http_server import HttpRequest, HttpResponse, HttpServer, address_of

READY_SECONDS: Final = 60.0
"""A program whose figures are older has stopped working; a batch that waits for a slow head takes some time."""


class FiguresPage(Collector):
    """Serves from the moment it is made. `endpoint`: tcp://HOST:PORT. `clock`: seconds of one monotonic clock.

    Raises:
        OSError: the address cannot be bound.
        ValueError: the endpoint has another form.

    """

    def __init__(self, endpoint: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: tuple[bytes, tuple[Metric, ...]] | None = None
        self._told_at = 0.0
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._server = HttpServer(address_of(endpoint), self.answer)
        self._server.start()

    @property
    def port(self) -> int:
        return self._server.port

    def update(self, figures: bytes, metrics: Iterable[Metric]) -> None:
        """Tell these from now on."""
        self._told, self._told_at = (figures, tuple(metrics)), self._clock()

    def close(self) -> None:
        self._server.close()

    def collect(self) -> Iterable[Metric]:
        """The last metrics; called by the registry."""
        return () if self._told is None else self._told[1]

    def answer(self, request: HttpRequest) -> HttpResponse:
        """The answer to a request; called in the server's thread."""
        if request.path == "/livez":
            return HttpResponse(HTTPStatus.OK, b"ok\n")
        if request.path == "/metrics":
            return HttpResponse(HTTPStatus.OK, generate_latest(self._registry), CONTENT_TYPE_LATEST)
        if request.path == "/readyz":
            return self._readiness()
        if request.path == FIGURES_PATH and self._told is not None:
            return HttpResponse(HTTPStatus.OK, self._told[0], "application/json")
        return HttpResponse(HTTPStatus.NOT_FOUND, b"nothing here\n")

    def _readiness(self) -> HttpResponse:
        if self._told is None:
            return HttpResponse(HTTPStatus.SERVICE_UNAVAILABLE, b"it has not started yet\n")
        age = self._clock() - self._told_at
        if age > READY_SECONDS:
            return HttpResponse(HTTPStatus.SERVICE_UNAVAILABLE, f"it has reported nothing for {age:.0f} s\n".encode())
        return HttpResponse(HTTPStatus.OK, b"ok\n")
