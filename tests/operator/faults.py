"""An HTTP proxy on loopback between a client and the API server, which fails as a test plans."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import load_kube_config

Fault = int | str
"""The fate of a request: an HTTP code; `drop`: closed, not forwarded; `lose`: carried out, and closed unanswered."""

MESSAGES = {409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


@dataclass
class Seen:
    """One request as it came."""

    method: str
    path: str
    query: dict[str, str]
    body: Any


@dataclass
class Faults:
    """A proxy to `upstream` (the API server of KUBECONFIG, or None: it answers `answers` in turn).

    `plan` returns the fate of each request; None lets it through. Requests are kept in `seen`.
    """

    upstream: str | None = None
    answers: list[tuple[int, Any]] = field(default_factory=list)
    plan: Iterator[Fault | None] | None = None
    when: Callable[[Seen], Fault | None] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    port: int = 0

    async def __aenter__(self) -> Faults:
        self._session: aiohttp.ClientSession | None = None
        if self.upstream is not None:
            configuration = Configuration()
            await load_kube_config(config_file=self.upstream, client_configuration=configuration)
            self._host = configuration.host
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=RESTClientObject(configuration).ssl_context)
            )
        await self.up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.away()
        if self._session is not None and self._session.connector is not None:
            await self._session.connector.close(abort_ssl=True)
            await self._session.close()

    async def up(self) -> None:
        """Listen (again, on the same port)."""
        app = web.Application(client_max_size=16 << 20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def away(self) -> None:
        """Refuse connections, and close the open ones."""
        await self._runner.cleanup()

    @property
    def configuration(self) -> Configuration:
        return Configuration(host=f"http://127.0.0.1:{self.port}")

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        data = await request.read()
        body = msgspec.json.decode(data) if data else None
        seen = Seen(request.method, request.path, dict(request.query), body)
        self.seen.append(seen)
        fault = next(self.plan, None) if self.plan is not None else None
        if fault is None and self.when is not None:
            fault = self.when(seen)
        if isinstance(fault, int):
            text = MESSAGES.get(fault, "Refused")
            return web.json_response(
                {"kind": "Status", "code": fault, "message": text}, status=fault, headers=self.headers
            )
        if fault == "drop":
            return self._hang_up(request)
        answer = await self._forward(request, data) if self._session is not None else self._next_answer()
        return self._hang_up(request) if fault == "lose" else answer

    def _hang_up(self, request: web.Request) -> web.Response:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    def _next_answer(self) -> web.Response:
        code, body = self.answers.pop(0)
        return web.json_response(body, status=code, headers=self.headers)

    async def _forward(self, request: web.Request, data: bytes) -> web.Response:
        assert self._session is not None
        kept = {name: value for name, value in request.headers.items() if name in ("Accept", "Content-Type")}
        url = f"{self._host}{request.raw_path}"
        async with self._session.request(request.method, url, data=data, headers=kept) as answer:
            return web.Response(
                status=answer.status,
                body=await answer.read(),
                headers={name: answer.headers[name] for name in ("Content-Type",) if name in answer.headers},
            )


async def cancelled(task: asyncio.Task[Any]) -> None:
    """End a task that goes on; any other end of it fails the test."""
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def eventually(condition: Callable[[], Any], what: str, seconds: float = 300.0) -> Any:
    """Wait until a condition is true and raises no LookupError; fail with its name otherwise."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        with suppress(LookupError):  # what is looked for is not there yet
            found = condition()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
        assert asyncio.get_running_loop().time() < deadline, f"not within {seconds:g} s: {what}"
        await asyncio.sleep(0.05)
