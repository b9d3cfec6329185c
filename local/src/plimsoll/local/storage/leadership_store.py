"""Which process of a head leads, in the local store: changed by compare-and-set, before anything follows from it."""

from __future__ import annotations

from typing import Any

from plimsoll.core.head.standby.leadership import (
    HeadLeadership,
    LeadershipConflictError,
    leadership_status,
    stored_leadership,
)
from plimsoll.local.storage.object_store import ObjectMissingError, ObjectStore
from plimsoll.mediator.known_log import KnownLog, known_log


class LeadershipStore:
    """Of the head of one cluster."""

    def __init__(self, store: ObjectStore, cluster: str) -> None:
        self._store, self._cluster = store, cluster

    def load(self) -> HeadLeadership:
        """The stored value.

        Raises:
            ObjectMissingError: the cluster has been deleted.

        """
        return stored_leadership(self._store.get("BrokerCluster", self._cluster).get("status", {}))

    def known_log(self) -> KnownLog:
        """How far the log of the head is known to have been safe, whichever of its processes led."""
        try:
            return known_log(self._store.get("BrokerCluster", self._cluster))
        except ObjectMissingError:  # deleted by a user meanwhile; the next round notices
            return KnownLog()

    def change(self, before: HeadLeadership, after: HeadLeadership) -> HeadLeadership:
        """Store `after` in place of `before`.

        Raises:
            LeadershipConflictError: it is not `before` any more.
            ObjectMissingError: the cluster has been deleted.
            StateWriteError: it cannot be written.

        """

        def with_leadership(item: dict[str, Any]) -> dict[str, Any]:
            return {**item.get("status", {}), "leadership": leadership_status(after)}

        with self._store.transaction():
            present = self.load()
            if present != before:
                raise LeadershipConflictError(f"{self._cluster}: {present} has been stored in place of {before}")
            self._store.set_status("BrokerCluster", self._cluster, with_leadership)
        return after
