"""Compares the watches with fresh lists: a restarted watch does not deliver the deletions that it missed.

Such an object would stay in the indexes for good. So each kind is listed now and then, and at once when its watch
seems to have been restarted. An object counts as deleted if it was in the index before the list was asked for and is
not in the list; what the watch delivers later is never stale. A watch is stalled if it misses an object that two lists,
some seconds apart, both contain.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from plimsoll.operator.api import Api, ApiError, ApiNotFoundError
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import uid
from plimsoll.operator.refusals import RefusedWatches
from plimsoll.operator.watch import Watches, watch_selector

log = logging.getLogger(__name__)

RELIST_SECONDS = 120.0
STALLED_RECHECK_SECONDS = 10.0
"""A stalled watch is compared again after this time: it may only have been late."""
SETTLE_SECONDS = 2.0
"""A restarted watch takes a while to deliver everything again; it is compared with a list after that."""


def stale_objects(held: Iterable[Object], listed: Iterable[Mapping[str, Any]]) -> list[Object]:
    """Objects, by uid, that an index held before the list was requested and that the list lacks."""
    there = {uid(item) for item in listed}
    return [item for item in held if uid(item) not in there]


def missed_objects(listed: Iterable[Object], held: Iterable[Object]) -> list[Object]:
    """Listed objects that an index lacks, or has in an older generation."""
    known = {uid(item): int(item["metadata"].get("generation", 0)) for item in held}
    return [item for item in listed if known.get(uid(item), -1) < int(item["metadata"].get("generation", 0))]


class WatchRelist:
    """Finds objects that the watches still hold after their deletion, and calls `on_deleted` with each.

    Without `namespaces` all are listed. `stalled`: by kind, an object that its watch misses.
    """

    def __init__(
        self,
        api: Api,
        watches: Watches,
        namespaces: Sequence[str],
        on_deleted: Callable[[str, Object], None],
        refused: RefusedWatches | None = None,
    ) -> None:
        self._refused = refused or RefusedWatches()
        self._api, self._watches, self._namespaces, self._on_deleted = api, watches, namespaces, on_deleted
        self.stalled: dict[str, str] = {}
        self._requested: set[str] = set()
        self._request = asyncio.Event()

    def request(self, kind: str) -> None:
        """Ask for a comparison soon: the watch of a kind may have been restarted."""
        self._requested.add(kind)
        self._request.set()

    async def run(self) -> None:
        while True:
            kinds = await self._due()
            for kind in kinds:
                try:
                    await self.compare(kind)
                except (ApiError, ApiNotFoundError) as error:
                    log.warning("watch of %s could not be compared with a list: %s", kind, error)

    async def _due(self) -> Sequence[str]:
        """The kinds to compare now: the requested ones, else the stalled ones, else in time all of them."""
        try:
            async with asyncio.timeout(STALLED_RECHECK_SECONDS if self.stalled else RELIST_SECONDS):
                await self._request.wait()
        except TimeoutError:  # nothing was requested for that long
            return sorted(self.stalled) or self._watches.kinds
        await asyncio.sleep(SETTLE_SECONDS)
        found, self._requested = sorted(self._requested), set()
        self._request.clear()
        return found

    async def compare(self, kind: str) -> None:
        """Compare one kind with a list."""
        held = self._watches.all_of_kind(kind)
        listed, skipped = await self._list(kind)
        for item in stale_objects((each for each in held if _namespace(each) not in skipped), listed):
            metadata = item["metadata"]
            log.warning(
                "deletion of %s %s/%s was missed by its watch", kind, metadata.get("namespace", ""), metadata["name"]
            )
            self._watches.drop(kind, item)
            self._on_deleted(kind, item)
        await self._check_stalled(kind, missed_objects(listed, self._watches.all_of_kind(kind)))

    async def _list(self, kind: str) -> tuple[list[Object], set[str]]:
        """All objects of a kind, and the namespaces that could not be listed: one that is refused hides no other."""
        listed: list[Object] = []
        skipped = set()
        for namespace in self._namespaces or ("",):
            try:
                listed += await self._api.list(kind, namespace, watch_selector(kind))
            except (ApiError, ApiNotFoundError) as error:
                if not namespace:
                    raise
                skipped.add(namespace)
                if namespace not in self._refused.namespaces:
                    log.warning("watch of %s in %s could not be compared with a list: %s", kind, namespace, error)
        return listed, skipped

    async def _check_stalled(self, kind: str, late: Sequence[Object]) -> None:
        """Note whether a watch is stalled: it still misses an object that a second list contains, too."""
        refused = self._refused.namespaces
        late = [item for item in late if _namespace(item) not in refused and "" not in refused]
        if late:
            await asyncio.sleep(SETTLE_SECONDS)
            there = {uid(item) for item in (await self._list(kind))[0]}
            late = [item for item in missed_objects(late, self._watches.all_of_kind(kind)) if uid(item) in there]
        if not late:
            self.stalled.pop(kind, None)
            return
        metadata = late[0]["metadata"]
        self.stalled[kind] = f"{kind} {metadata.get('namespace', '')}/{metadata['name']}"
        log.error("a watch is stalled: %s exists and was not delivered", self.stalled[kind])


def _namespace(item: Object) -> str:
    return str(item["metadata"].get("namespace", ""))
