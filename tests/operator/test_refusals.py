"""Watches that are refused, and the others."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from kopf._cogs.clients import errors, watching

from plimsoll.operator import refusals
from plimsoll.operator.refusals import RefusedWatches


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(refusals, "SETTLE_SECONDS", 0.0)


async def watched(namespace: str | None, plural: str = "pods") -> list[Any]:
    resource = SimpleNamespace(plural=plural)
    return [each async for each in watching.continuous_watch(namespace=namespace, resource=resource)]  # type: ignore[call-arg, arg-type]  # as far as it is asked


@pytest.mark.parametrize("kind", [errors.APIForbiddenError, errors.APINotFoundError])
def test_a_watch_that_is_refused_ends_no_other_and_goes_on_once_it_is_allowed(
    kind: type[errors.APIError], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    refused, changes = {"gone"}, []
    listed = ["object", watching.Bookmark.LISTED]

    async def real(**asked: Any) -> AsyncIterator[Any]:
        if asked["namespace"] in refused:
            raise kind("not here", status=403, headers={})
        yield "object"
        yield watching.Bookmark.LISTED

    async def story() -> None:
        found = RefusedWatches(lambda: changes.append(1))
        with found.outlived():
            for _ in range(3):
                assert await watched("gone") == [watching.Bookmark.LISTED]
            assert await watched("there") == listed
            assert found.namespaces == ["gone"]
            assert found.reason("there") == ""
            assert found.reason("gone").startswith(
                "the operator may not list and watch pods in namespace gone: not here; have the chart create the rights"
            )
            refused.clear()
            assert await watched("gone") == listed
            assert found.namespaces == ["gone"], "what was listed is taken in first"
            async with asyncio.timeout(300):
                while found.namespaces:  # noqa: ASYNC110  # until it is served
                    await asyncio.sleep(0)
            assert (list(found.namespaces), found.reason("gone")) == ([], "")
        assert watching.continuous_watch is real, "what was changed for a while is as it was"

    monkeypatch.setattr(watching, "continuous_watch", real)
    asyncio.run(story())
    assert len(changes) == 2, "told once, not at each try"
    assert [each.levelname for each in caplog.records] == ["ERROR", "WARNING"]


def test_a_watch_of_everything_that_is_refused_concerns_every_namespace():
    found = RefusedWatches()
    found.note("", "pods", "forbidden")
    assert "pods in namespace a: forbidden" in found.reason("a")
    assert "pods anywhere: forbidden" in found.reason("")


def test_another_fault_of_a_watch_is_raised(monkeypatch: pytest.MonkeyPatch):
    async def real(**_: Any) -> AsyncIterator[Any]:
        yield "object"
        raise errors.APIServerError("broken", status=500, headers={})

    async def story() -> None:
        with RefusedWatches().outlived():
            await watched("a")

    monkeypatch.setattr(watching, "continuous_watch", real)
    with pytest.raises(errors.APIServerError):
        asyncio.run(story())


def test_kopf_does_not_ask_a_watch_that_is_refused_again_for_good():
    async def check(response: Any) -> str:
        try:
            await errors.check_response(response)
        except errors.APIError as error:
            return type(error).__name__
        return ""

    class Response:
        status, headers = 403, {"Content-Type": "application/json"}

        async def json(self) -> dict[str, Any]:
            return {"kind": "Status", "code": 403, "message": "no"}

        async def text(self) -> str:
            return ""

        def raise_for_status(self) -> None:
            request: Any = None
            raise aiohttp.ClientResponseError(request, (), status=403)

    async def story() -> None:
        with RefusedWatches().outlived():
            assert await check(Response()) == "APIForbiddenError", "elsewhere it does, as during an upgrade"
            refusals._IN_WATCH.set(True)
            assert await check(Response()) == "_WatchRefusedError"

    asyncio.run(story())
