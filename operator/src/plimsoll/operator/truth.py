"""What is really there, asked of the API server: a watch that had to begin anew does not tell of what went meanwhile.

Such an object would stay in the indexes for good. So what they hold is held against a list now and then, and as soon as
a watch has told again of what it has told before. Only what the indexes held before a list was asked for can be missing
in it: whatever comes later is no ghost. A watch that has not told of what is listed twice, some time apart, is deaf.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from plimsoll.operator.api import Api, ApiError, MissingError
from plimsoll.operator.names import Object
from plimsoll.operator.objects import uid
from plimsoll.operator.watching import Watches, selector

log = logging.getLogger(__name__)

TRUTH_SECONDS = 120.0
AGAIN_SECONDS = 10.0
"""A watch that seems to be deaf is looked at again after so long: it may only have been late."""
SETTLE_SECONDS = 2.0
"""A watch that tells of everything again does so for a while; it is held against a list after that."""


def ghosts(held: Iterable[Object], listed: Iterable[Mapping[str, Any]]) -> list[Object]:
    """What an index held before a list was asked for, and the list has not, in the life that the index knows."""
    there = {uid(item) for item in listed}
    return [item for item in held if uid(item) not in there]


def unheard(listed: Iterable[Object], held: Iterable[Object]) -> list[Object]:
    """What is listed and an index does not have, or has in an older form."""
    known = {uid(item): int(item["metadata"].get("generation", 0)) for item in held}
    return [item for item in listed if known.get(uid(item), -1) < int(item["metadata"].get("generation", 0))]


class Truth:
    """Finds what the watches hold and is not there, and says so to `gone`. No namespaces: all of them.

    `deaf`: by kind, what its watch has not told of, as far as it was looked for last.
    """

    def __init__(
        self, api: Api, watches: Watches, namespaces: Sequence[str], gone: Callable[[str, Object], None]
    ) -> None:
        self._api, self._watches, self._namespaces, self._gone = api, watches, namespaces, gone
        self.deaf: dict[str, str] = {}
        self._suspects: set[str] = set()
        self._suspected = asyncio.Event()

    def suspect(self, kind: str) -> None:
        """A watch tells again of what it has told before: it may have begun anew."""
        self._suspects.add(kind)
        self._suspected.set()

    async def run(self) -> None:
        while True:
            kinds = await self._due()
            for kind in kinds:
                try:
                    await self.check(kind)
                except (ApiError, MissingError) as error:
                    log.warning("%s could not be held against what is there: %s", kind, error)

    async def _due(self) -> Sequence[str]:
        """The kinds to be held against a list: suspected ones, those that seem deaf, or in time all of them."""
        try:
            async with asyncio.timeout(AGAIN_SECONDS if self.deaf else TRUTH_SECONDS):
                await self._suspected.wait()
        except TimeoutError:
            return sorted(self.deaf) or self._watches.kinds
        await asyncio.sleep(SETTLE_SECONDS)
        found, self._suspects = sorted(self._suspects), set()
        self._suspected.clear()
        return found

    async def check(self, kind: str) -> None:
        """Hold one kind against a list."""
        held, listed = self._watches.everywhere(kind), await self._list(kind)
        for item in ghosts(held, listed):
            metadata = item["metadata"]
            log.warning("%s %s/%s went unseen", kind, metadata.get("namespace", ""), metadata["name"])
            self._watches.gone(kind, item)
            self._gone(kind, item)
        await self._listen(kind, unheard(listed, self._watches.everywhere(kind)))

    async def _list(self, kind: str) -> list[Object]:
        listed: list[Object] = []
        for namespace in self._namespaces or ("",):
            listed += await self._api.list(kind, namespace, selector(kind))
        return listed

    async def _listen(self, kind: str, late: Sequence[Object]) -> None:
        """Whether what a watch has not told of is still there, and still not told of, some time later."""
        if late:
            await asyncio.sleep(SETTLE_SECONDS)
            there = {uid(item) for item in await self._list(kind)}
            late = [item for item in unheard(late, self._watches.everywhere(kind)) if uid(item) in there]
        if not late:
            self.deaf.pop(kind, None)
            return
        metadata = late[0]["metadata"]
        self.deaf[kind] = f"{kind} {metadata.get('namespace', '')}/{metadata['name']}"
        log.error("the watch has not told of %s", self.deaf[kind])
