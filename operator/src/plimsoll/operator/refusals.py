"""Watches that are refused: of a namespace that was deleted, or for which a right is missing.

kopf asks again for good, silently, and shows no object of any namespace before all have been listed. Here such a watch
counts as listed, is said, and is tried again after a pause, which doubles; all others go on. Once it is allowed it
lists its objects as after any break. Until then nothing is reconciled there: what cannot be seen is not missing.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from typing import Any

from kopf._cogs.clients import errors, watching

from plimsoll.operator.backoff import backoff_pauses

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 30.0
SETTLE_SECONDS = 2.0
_IN_WATCH: ContextVar[bool] = ContextVar("in_watch", default=False)


class _WatchRefusedError(errors.APIClientError):
    """As `APIForbiddenError`, which kopf would meet by asking again for good."""


class RefusedWatches:
    """The watches that are refused now, by namespace (empty: everywhere) and plural of the kind, and why."""

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._on_change = on_change
        self._found: dict[tuple[str, str], str] = {}
        self._settling: dict[tuple[str, str], asyncio.TimerHandle] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def namespaces(self) -> Collection[str]:
        """Namespaces that are not served, or not in full."""
        return sorted({namespace for namespace, _ in self._found})

    def reason(self, namespace: str) -> str:
        """Why a namespace is not served in full, and what to do; empty if it is."""
        found = [(plural, why) for (where, plural), why in sorted(self._found.items()) if where in (namespace, "")]
        if not found:
            return ""
        plurals = ", ".join(plural for plural, _ in found)
        return (
            f"the operator may not list and watch {plurals} {f'in namespace {namespace}' if namespace else 'anywhere'}:"
            f" {found[0][1]}; have the chart create the rights, or take a namespace that is gone off the chart's list"
        )

    def note(self, namespace: str, plural: str, why: str) -> None:
        """Note a refusal, and say the first one."""
        if (waiting := self._settling.pop((namespace, plural), None)) is not None:
            waiting.cancel()
        if (namespace, plural) not in self._found:
            log.error("%s of namespace %s are not served until they may be read: %s", plural, namespace or "any", why)
            self._found[namespace, plural] = why
            self._on_change()

    def clear(self, namespace: str, plural: str) -> None:
        """Note that a watch is allowed."""
        self._settling.pop((namespace, plural), None)
        if self._found.pop((namespace, plural), None) is not None:
            log.warning("%s of namespace %s are served again", plural, namespace or "any")
            self._on_change()

    @contextmanager
    def outlived(self) -> Iterator[None]:
        """For the length of a `with`, no watch of kopf ends by a refusal."""
        real, real_check = watching.continuous_watch, errors.check_response
        pauses: dict[tuple[str, str], Iterator[float]] = {}

        async def check_response(response: Any) -> None:
            try:
                await real_check(response)
            except errors.APIForbiddenError as error:
                if not _IN_WATCH.get():
                    raise
                raise _WatchRefusedError(
                    str(error.message or error), status=error.status, headers=error.headers
                ) from error

        async def continuous_watch(**asked: Any) -> AsyncIterator[Any]:
            where = str(asked["namespace"] or ""), str(asked["resource"].plural)
            _IN_WATCH.set(True)  # each watch is a task
            try:
                async with aclosing(real(**asked)) as stream:  # type: ignore[type-var]  # it is a generator
                    async for each in stream:
                        if each is watching.Bookmark.LISTED and where in self._found:
                            pauses.pop(where, None)
                            self._settle(where)
                        yield each
            except (_WatchRefusedError, errors.APIForbiddenError, errors.APINotFoundError) as error:
                self.note(*where, str(error.args[0] if error.args else error))
                yield watching.Bookmark.LISTED  # kopf shows nothing to anyone before all have been listed
                pause = pauses.setdefault(where, backoff_pauses(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, _RANDOM))
                await asyncio.sleep(next(pause))

        watching.continuous_watch, errors.check_response = continuous_watch, check_response
        try:
            yield
        finally:
            watching.continuous_watch, errors.check_response = real, real_check
            for each in self._settling.values():
                each.cancel()

    def _settle(self, where: tuple[str, str]) -> None:
        """Serve it a little later: kopf takes what was listed into its indexes one by one."""
        if where not in self._settling:
            self._settling[where] = asyncio.get_running_loop().call_later(SETTLE_SECONDS, self.clear, *where)


_RANDOM = random.SystemRandom()
