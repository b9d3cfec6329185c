"""The operator's health, and the HTTP endpoint for it: /livez, /readyz, /metrics.

The operator is alive while its event loop runs, every fleet is reconciled, and the watches deliver what it writes. The
endpoint is served by that same loop, so a loop that is stuck fails the probe, too.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from plimsoll.core.printable import printable
from plimsoll.operator.metrics import OperatorMetrics

log = logging.getLogger(__name__)

STUCK_SECONDS = 180.0
"""A fleet that was not reconciled for this long is stuck: requests to the API server time out much sooner."""
LAG_SECONDS = 0.25
LAG_ROUNDS = 20


@dataclass
class OperatorHealth:
    """The state behind the probes. Times are of one monotonic clock."""

    stalled_seconds: float
    ready: bool = False
    last_reconciled: dict[str, float] = field(default_factory=dict)
    pending_write: Callable[[float], tuple[str, float]] = lambda now: ("", 0.0)
    """The kind of the oldest write that no watch has delivered yet, and its age in seconds."""
    stalled_watches: Mapping[str, str] = field(default_factory=dict)
    """By kind, an object that exists and that its watch did not deliver."""
    unserved: Callable[[str], str] = lambda namespace: ""
    """Why a namespace is not served in full; empty if it is."""
    unserved_namespaces: Callable[[], Collection[str]] = tuple
    canary_written: float | None = None
    canary_seen: float = field(default_factory=monotonic)

    def beat(self, fleet: str) -> None:
        """Note that a fleet's task runs."""
        self.last_reconciled[fleet] = monotonic()

    def forget(self, fleet: str) -> None:
        """Note that a fleet's task has ended."""
        self.last_reconciled.pop(fleet, None)

    def trouble(self, now: float) -> str:
        """Why the process should be restarted; empty if it should not."""
        stuck = sorted(name for name, at in self.last_reconciled.items() if now - at > STUCK_SECONDS)
        if stuck:
            return f"the fleet of {', '.join(stuck[:3])} was not reconciled for {STUCK_SECONDS:.0f} s"
        kind, seconds = self.pending_write(now)
        if seconds > self.stalled_seconds:
            return f"watch of {kind} is stalled: a write of {seconds:.0f} s ago was not delivered"
        if self.stalled_watches:
            return f"a watch is stalled: {next(iter(self.stalled_watches.values()))} exists and was not delivered"
        written = self.canary_written
        if written is not None and written > self.canary_seen and now - self.canary_seen > self.stalled_seconds:
            return f"watches are stalled: the canary ConfigMap was last delivered {now - self.canary_seen:.0f} s ago"
        return ""


@asynccontextmanager
async def http_server(
    health: OperatorHealth,
    metrics: OperatorMetrics,
    port: int,
    clock: Callable[[], float] = monotonic,
    more_routes: Iterable[web.RouteDef] = (),
) -> AsyncIterator[int]:
    """Serve /livez, /readyz, /metrics and more for the length of an `async with`; yields the port that was bound."""

    async def livez(_: web.Request) -> web.Response:
        trouble = health.trouble(clock())
        if trouble:
            log.error("liveness probe fails, the kubelet will restart this process: %s", trouble)
        return web.Response(status=503 if trouble else 200, text=f"{trouble or 'ok'}\n")

    async def readyz(_: web.Request) -> web.Response:
        if not health.ready:
            return web.Response(status=503, text="watches are not synced\n")
        reasons = [health.unserved(each) for each in health.unserved_namespaces()]  # others are served all the same
        return web.Response(text="".join(f"{printable(each)}\n" for each in ("ok", *reasons)))

    async def get_metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    application = web.Application()
    application.add_routes([web.get("/livez", livez), web.get("/readyz", readyz), web.get("/metrics", get_metrics)])
    application.add_routes(more_routes)
    async with listening(application, port) as bound:
        yield bound


@asynccontextmanager
async def listening(application: web.Application, port: int, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve an application for the length of an `async with`; yields the port that was bound."""
    runner = web.AppRunner(application, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, port=port, ssl_context=tls).start()
        # Port 0 binds another port for each family of addresses: IPv4's is returned, which every machine has.
        yield next(int(bound) for _, bound, *more in runner.addresses if not more)
    finally:
        await runner.cleanup()


async def measure_lag(metrics: OperatorMetrics) -> None:
    """Measure how late the event loop wakes a task, at most in the last seconds, until cancelled."""
    recent: list[float] = []
    while True:
        begun = monotonic()
        await asyncio.sleep(LAG_SECONDS)
        recent = [*recent, max(0.0, monotonic() - begun - LAG_SECONDS)][-LAG_ROUNDS:]
        metrics.lag_seconds.set(max(recent))
