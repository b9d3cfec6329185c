"""How one fleet's task reads and writes its namespace: reads come from the watches, writes go to the API server.

Each write is noted in the cache at once. Without that, the next reconciliation would find the object as it was before,
and write it a second time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, Literal

from plimsoll.mediator.fleet_resources import FLEET_KINDS
from plimsoll.operator.api import Api, ApiConflictError, ApiError, ApiNotFoundError
from plimsoll.operator.cache import Cache
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref, is_leaving, ref, uid
from plimsoll.operator.reconcile.observed import ObservedObjects, with_departed_edges

log = logging.getLogger(__name__)

EventType = Literal["Normal", "Warning"]


class FleetClient:
    """The objects of one namespace. `nodes` returns the nodes by name, or None if the operator may not read nodes.

    Every method that writes raises what `Api` raises, unless it says otherwise.
    """

    def __init__(
        self, namespace: str, api: Api, cache: Cache, nodes: Callable[[], Mapping[str, Object] | None]
    ) -> None:
        self.namespace = namespace
        self._api, self._cache, self._nodes = api, cache, nodes

    def observe(self) -> ObservedObjects:
        """All objects of the namespace as the watches and the latest writes have them."""
        return ObservedObjects(with_departed_edges(self._cache.objects(self.namespace, monotonic())), self._nodes())

    def note_write(self, item: Object) -> Object:
        """Take a stored object, as the API server returned it, for the present one until the watch catches up."""
        self._cache.note_write(item, monotonic())
        return item

    def forget_write(self, key: Ref) -> None:
        """Go by the watch again, as after a conflict: the stored object is not the one written here."""
        self._cache.forget(self.namespace, key)

    async def get(self, kind: str, name: str) -> Object | None:
        """An object as the API server has it now; None if there is none."""
        try:
            return await self._api.get(kind, self.namespace, name)
        except ApiNotFoundError:
            return None

    async def create(self, item: Object) -> None:
        namespaced = {**item, "metadata": {**item["metadata"], "namespace": self.namespace}}
        self.note_write(await self._api.create(namespaced))

    async def apply(self, item: Object) -> None:
        self.note_write(await self._api.apply(item))

    async def patch(self, item: Object, patch: Mapping[str, Any]) -> None:
        """Patch a stored object; one that is gone needs no patch."""
        kind, name = ref(item)
        try:
            changed = await self._api.patch(kind, self.namespace, name, patch)
        except ApiNotFoundError:  # the cache forgets it, as its watch will say
            self._cache.note_deletion(item, monotonic())
            return
        if is_leaving(changed) and not changed["metadata"].get("finalizers"):
            self._cache.note_deletion(changed, monotonic())  # the patch took the last finalizer away
        else:
            self.note_write(changed)

    async def delete(self, item: Object, grace_seconds: int | None = None) -> bool:
        """Delete an object if it is still the one that was observed; whether it was there."""
        kind, name = ref(item)
        try:
            await self._api.delete(kind, self.namespace, name, uid=uid(item), grace_seconds=grace_seconds)
        except ApiNotFoundError:
            # 404 is also the answer where the CRD itself is missing, which proves nothing about a custom object.
            if kind in FLEET_KINDS:
                self._cache.note_deletion(item, monotonic())
            else:
                self._cache.drop_life(item)
            return False
        self._cache.note_deletion(item, monotonic())
        return True

    async def replace_status(self, item: Object, status: Mapping[str, Any]) -> None:
        self.note_write(await self._api.replace_status({**item, "status": status}))

    async def emit_event(self, about: Object | None, type_: EventType, reason: str, message: str) -> None:
        """Write an Event about an object, if there is one; raises nothing, since an Event is not worth a retry."""
        if about is None:
            return
        try:
            await self._api.event(about, type_, reason, message)
        except (ApiError, ApiConflictError, ApiNotFoundError) as error:
            log.info("%s: event %s was not written: %s", self.namespace, reason, error)
