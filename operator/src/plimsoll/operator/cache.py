"""The objects of a namespace: those of the watches, overlaid with writes that they have not delivered yet.

A watch always lags behind. The operator's own write counts as present until the watch delivers its version or a later
one, or some time has passed. Without that every change would be written twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from plimsoll.operator.names import Object
from plimsoll.operator.objects.manifest import Ref, is_leaving, ref, uid

PENDING_WRITE_SECONDS = 10.0
"""After this time without confirmation by a watch, a write no longer counts."""
WatchedObjects = Callable[[str], Iterable[Object]]
"""The objects of a namespace as the watches have them now."""


@dataclass(frozen=True)
class _PendingWrite:
    """An object as the API server stored it, or the deletion of the one with this uid."""

    item: Object
    at: float
    deleted: bool = False


class Cache:
    """Objects by namespace. `now` is seconds of one monotonic clock."""

    def __init__(self, watched: WatchedObjects) -> None:
        self._watched = watched
        self._pending: dict[str, dict[Ref, _PendingWrite]] = defaultdict(dict)
        self._ended: dict[str, set[str]] = defaultdict(set)

    def objects(self, namespace: str, now: float) -> dict[Ref, Object]:
        """All known objects of a namespace, by kind and name."""
        found = self._watched_objects(namespace)
        for key, written in list(self._pending[namespace].items()):
            present = found.get(key)
            if _is_confirmed(written, present):
                del self._pending[namespace][key]
            elif now - written.at > PENDING_WRITE_SECONDS:
                continue
            elif written.deleted and present is not None:
                found[key] = _marked_deleted(present)
            elif not written.deleted:
                found[key] = written.item
        return found

    def _watched_objects(self, namespace: str) -> dict[Ref, Object]:
        """The objects of the watches, without those known to be deleted."""
        watched = list(self._watched(namespace))
        gone = self._ended.get(namespace)
        if gone:
            gone.intersection_update([uid(item) for item in watched])
            watched = [item for item in watched if uid(item) not in gone]
        return {ref(item): item for item in watched}

    def oldest_pending(self, now: float, without: Collection[str] = ()) -> tuple[str, float]:
        """The kind of the oldest unconfirmed write, and its age in seconds; empty and 0 without one.

        `without`: namespaces whose watches cannot confirm any; empty: none can.
        """
        counted = [written for namespace, written in self._pending.items() if not {namespace, ""}.intersection(without)]
        found = [(key[0], now - one.at) for written in counted for key, one in written.items()]
        return max(found, key=lambda each: each[1], default=("", 0.0))

    def drop_namespace(self, namespace: str) -> None:
        """Forget a namespace whose fleet is gone."""
        self._pending.pop(namespace, None)
        self._ended.pop(namespace, None)

    def note_write(self, item: Object, now: float) -> None:
        """Note an object as the API server returned it after a write."""
        self._pending[item["metadata"]["namespace"]][ref(item)] = _PendingWrite(item, now)

    def note_deletion(self, item: Object, now: float) -> None:
        """Note that the deletion of an object was requested."""
        self._pending[item["metadata"]["namespace"]][ref(item)] = _PendingWrite(item, now, deleted=True)

    def drop_life(self, item: Object) -> None:
        """Note that the object with this uid is deleted, as a watch or the API server reported.

        A restarted watch never delivers deletions that it missed, and would show the object for good.
        """
        namespace, key = item["metadata"].get("namespace", ""), ref(item)
        written = self._pending.get(namespace, {}).get(key)
        if written is not None and uid(written.item) == uid(item):
            del self._pending[namespace][key]
        self._ended[namespace].add(uid(item))

    def forget(self, namespace: str, key: Ref) -> None:
        """Go by the watch again, as after a conflict."""
        self._pending[namespace].pop(key, None)


def _is_confirmed(written: _PendingWrite, present: Object | None) -> bool:
    """Whether the watch has caught up with a write."""
    if written.deleted:
        return present is None or uid(present) != uid(written.item) or is_leaving(present)
    return present is not None and _version(present) >= _version(written.item)


def _version(item: Mapping[str, Mapping[str, str]]) -> int:
    """Resource versions of one API server can be compared as numbers (Kubernetes 1.35, KEP-5504)."""
    text = item["metadata"].get("resourceVersion", "0")
    return int(text) if text.isdecimal() else 0


def _marked_deleted(item: Object) -> Object:
    if is_leaving(item):
        return item
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**item, "metadata": {**item["metadata"], "deletionTimestamp": time}}
