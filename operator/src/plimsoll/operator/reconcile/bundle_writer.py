"""Keeps the Bundle objects of a fleet's clusters as their statuses have them, at a rate that is bounded.

An object is written at most once in `WRITE_SECONDS`, only if there is something of note, and at most `WRITES_AT_ONCE`
are written a round, one round a second: however many bundles there are, and however fast they change. The cluster owns
its objects, so that they go with it.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

from plimsoll.mediator.bundle_objects import BUNDLE_KIND, bundle_objects, is_notable
from plimsoll.operator import names
from plimsoll.operator.api import ApiConflictError, ApiError, ApiNotFoundError
from plimsoll.operator.backoff import Backoff
from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref, is_leaving, ref
from plimsoll.operator.reconcile.fleet_client import FleetClient
from plimsoll.operator.reconcile.observed import ObservedObjects
from plimsoll.operator.reconcile.retries import RETRY_SECONDS, is_api_unavailable

log = logging.getLogger(__name__)

WRITE_SECONDS: Final = 5.0
WRITES_AT_ONCE: Final = 16


@dataclass(frozen=True)
class BundleChange:
    """An object to be written, or to be deleted."""

    item: Object
    is_deleted: bool = False


def bundle_changes(
    observed: ObservedObjects, clusters: Iterable[tuple[Object, Mapping[str, Any]]], fleet: str
) -> Iterator[BundleChange]:
    """What is to be deleted, created and changed, in this order. `clusters`: each with its present status.

    Clusters that are not named keep their objects: too little is known of them.
    """
    stored = {item["metadata"]["name"]: item for item in observed.kind(BUNDLE_KIND) if not is_leaving(item)}
    known, wanted = set[str](), dict[str, Object]()
    for cluster, status in clusters:
        known.add(cluster["metadata"]["name"])
        used = [row for row in status.get("bundles", ()) if row.get("edge") or row.get("sessions")]
        for item in bundle_objects(cluster, used):
            labels = {**names.fleet_labels(fleet), names.CLUSTER: cluster["metadata"]["name"]}
            wanted[item["metadata"]["name"]] = {**item, "metadata": {**item["metadata"], "labels": labels}}
    for name, item in sorted(stored.items()):
        if name not in wanted and item["spec"]["clusterRef"]["name"] in known:
            yield BundleChange(item, is_deleted=True)
    for name in sorted(wanted.keys() - stored.keys()):
        yield BundleChange(wanted[name])
    for name in sorted(wanted.keys() & stored.keys()):
        if _differs(stored[name], wanted[name]):
            yield BundleChange(wanted[name])


def _differs(stored: Object, wanted: Object) -> bool:
    owners = [[each.get("uid") for each in item["metadata"].get("ownerReferences", ())] for item in (stored, wanted)]
    is_other = stored.get("spec") != wanted["spec"] or owners[0] != owners[1]
    return is_other or is_notable(stored.get("status") or {}, wanted["status"])


class BundleWriter:
    """Writes what has changed, and keeps the time of each object's last write."""

    def __init__(self, client: FleetClient) -> None:
        self._client = client
        self._retries = Backoff(random.SystemRandom())
        self._written_at: dict[Ref, float] = {}

    async def write(self, clusters: Iterable[tuple[Object, Mapping[str, Any]]], fleet: str) -> None:
        """Write what is due; an object that cannot be written is tried again later."""
        now = monotonic()
        self._written_at = {key: at for key, at in self._written_at.items() if now - at < WRITE_SECONDS}
        due = [
            change for change in bundle_changes(self._client.observe(), clusters, fleet)
            if ref(change.item) not in self._written_at and self._retries.is_due(ref(change.item), now)
        ]  # fmt: skip
        for change in due[:WRITES_AT_ONCE]:
            key = ref(change.item)
            self._written_at[key] = now
            try:
                await self._carry_out(change)
                self._retries.succeeded(key)
            except (ApiError, ApiConflictError, ApiNotFoundError) as error:
                pause = self._retries.failed(key, now, RETRY_SECONDS)
                log.warning("%s: %s was not written, next try in %.1f s: %s", self._client.namespace, "/".join(key),
                            pause, error)  # fmt: skip
                if isinstance(error, ApiError) and is_api_unavailable(error):
                    return

    async def _carry_out(self, change: BundleChange) -> None:
        if change.is_deleted:
            await self._client.delete(change.item)
        else:
            await self._client.apply(change.item)
