"""Whether the operator is alive, and the HTTP endpoint that says so: /livez, /readyz, /metrics.

It is alive as long as its event loop comes round, each fleet is looked at, and the watches hear of what it writes
itself. The endpoint is served by that same loop: where the loop is stuck, nobody answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from plimsoll.operator.metrics import Metrics

log = logging.getLogger(__name__)

STUCK_SECONDS = 180.0
"""A fleet that has not been looked at for so long is stuck: requests to the API server give up much sooner."""
LAG_SECONDS = 0.25
LAG_ROUNDS = 20


@dataclass
class Health:
    """What is known of the process itself. Times are of one monotonic clock."""

    silent_seconds: float
    ready: bool = False
    beats: dict[str, float] = field(default_factory=dict)
    silence: Callable[[float], tuple[str, float]] = lambda now: ("", 0.0)
    """The kind of which nothing has come back that was written, and for how long."""
    deaf: Mapping[str, str] = field(default_factory=dict)
    """By kind, what is there and its watch has not told of."""
    canary_written: float | None = None
    canary_heard: float = field(default_factory=monotonic)

    def beat(self, fleet: str) -> None:
        """A fleet's task has come round."""
        self.beats[fleet] = monotonic()

    def gone(self, fleet: str) -> None:
        """A fleet is not served any more."""
        self.beats.pop(fleet, None)

    def trouble(self, now: float) -> str:
        """Why the process should be started again; empty if it should not."""
        stuck = sorted(name for name, at in self.beats.items() if now - at > STUCK_SECONDS)
        if stuck:
            return f"nobody has looked at {', '.join(stuck[:3])} for {STUCK_SECONDS:.0f} s"
        kind, seconds = self.silence(now)
        if seconds > self.silent_seconds:
            return f"the watch of {kind} has not told of what was written {seconds:.0f} s ago"
        if self.deaf:
            return f"a watch has not told of {next(iter(self.deaf.values()))}"
        written = self.canary_written
        if written is not None and written > self.canary_heard and now - self.canary_heard > self.silent_seconds:
            return f"the watches have not told of the operator's own writing for {now - self.canary_heard:.0f} s"
        return ""


class Endpoint:
    """The HTTP server; use it in an `async with`."""

    def __init__(self, health: Health, metrics: Metrics, port: int, clock: Callable[[], float] = monotonic) -> None:
        self._health, self._metrics, self._port, self._clock = health, metrics, port, clock
        self._runner: web.AppRunner | None = None
        self.port = port

    async def __aenter__(self) -> Endpoint:
        application = web.Application()
        application.add_routes([
            web.get("/livez", self._livez), web.get("/readyz", self._readyz), web.get("/metrics", self._get_metrics),
        ])  # fmt: skip
        self._runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, port=self._port).start()
        # With port 0 each family of addresses has a port of its own: IPv4's is told, which every machine has.
        self.port = next(int(port) for _, port, *more in self._runner.addresses if not more)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _livez(self, request: web.Request) -> web.Response:
        trouble = self._health.trouble(self._clock())
        if trouble:
            log.error("not alive: %s", trouble)
        return web.Response(status=503 if trouble else 200, text=f"{trouble or 'ok'}\n")

    async def _readyz(self, request: web.Request) -> web.Response:
        ready = self._health.ready
        return web.Response(status=200 if ready else 503, text="ok\n" if ready else "the watches are not complete\n")

    async def _get_metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


async def measure_lag(metrics: Metrics) -> None:
    """Keep the greatest lateness of the event loop of the last seconds, until cancelled."""
    recent: list[float] = []
    while True:
        begun = monotonic()
        await asyncio.sleep(LAG_SECONDS)
        recent = [*recent, max(0.0, monotonic() - begun - LAG_SECONDS)][-LAG_ROUNDS:]
        metrics.lag_seconds.set(max(recent))
