"""What the watches have told, by namespace, together with what was written and has not come back yet.

A watch is late by nature. What the operator has just written counts as seen until the watch shows that object, or a
later one, or too much time has passed; so one change is not written twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from plimsoll.operator.names import Object
from plimsoll.operator.objects import Ref, is_leaving, ref, uid

BELIEVED_SECONDS = 10.0
"""So long the operator goes by its own writing where no watch has confirmed it."""
Watched = Callable[[str], Iterable[Object]]
"""The objects of a namespace as the watches have them now."""


@dataclass(frozen=True)
class _Written:
    """An object as it was stored, or its deletion in one life."""

    item: Object
    at: float
    deleted: bool = False


class Cache:
    """Objects by namespace. `now` is seconds of one monotonic clock."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._written: dict[str, dict[Ref, _Written]] = defaultdict(dict)
        self._gone: dict[str, set[str]] = defaultdict(set)

    def objects(self, namespace: str, now: float) -> dict[Ref, Object]:
        """All objects of a namespace that are known, by kind and name."""
        found = self._seen(namespace)
        for key, written in list(self._written[namespace].items()):
            present = found.get(key)
            if _is_confirmed(written, present):
                del self._written[namespace][key]
            elif now - written.at > BELIEVED_SECONDS:
                continue
            elif written.deleted and present is not None:
                found[key] = _leaving(present)
            elif not written.deleted:
                found[key] = written.item
        return found

    def _seen(self, namespace: str) -> dict[Ref, Object]:
        """What the watches have, but for what is known to have gone."""
        watched = list(self._watched(namespace))
        gone = self._gone.get(namespace)
        if gone:
            gone.intersection_update([uid(item) for item in watched])
            watched = [item for item in watched if uid(item) not in gone]
        return {ref(item): item for item in watched}

    def silent(self, now: float) -> tuple[str, float]:
        """The kind of which a watch has been waited for longest, and for how long: it may be deaf."""
        found = [(key[0], now - one.at) for written in self._written.values() for key, one in written.items()]
        return max(found, key=lambda each: each[1], default=("", 0.0))

    def leave(self, namespace: str) -> None:
        """Nobody looks at a namespace any more."""
        self._written.pop(namespace, None)
        self._gone.pop(namespace, None)

    def stored(self, item: Object, now: float) -> None:
        """Take notice of an object as the API server has answered a write with it."""
        self._written[item["metadata"]["namespace"]][ref(item)] = _Written(item, now)

    def deleted(self, item: Object, now: float) -> None:
        """Take notice of a deletion that was asked for."""
        self._written[item["metadata"]["namespace"]][ref(item)] = _Written(item, now, deleted=True)

    def gone(self, item: Object) -> None:
        """Take notice that a life of an object is over, by a watch or by the API server, which knows it no more.

        A watch that had to begin anew does not tell of what went in between, and shows it for good.
        """
        namespace, key = item["metadata"].get("namespace", ""), ref(item)
        written = self._written.get(namespace, {}).get(key)
        if written is not None and uid(written.item) == uid(item):
            del self._written[namespace][key]
        self._gone[namespace].add(uid(item))

    def forget(self, namespace: str, key: Ref) -> None:
        """Go by the watch again: a write has shown that what was believed is not so."""
        self._written[namespace].pop(key, None)


def _is_confirmed(written: _Written, present: Object | None) -> bool:
    """Whether the watch has come as far as what was written."""
    if written.deleted:
        return present is None or uid(present) != uid(written.item) or is_leaving(present)
    return present is not None and _version(present) >= _version(written.item)


def _version(item: Mapping[str, Mapping[str, str]]) -> int:
    """Versions of one API server grow (Kubernetes 1.35, KEP-5504)."""
    text = item["metadata"].get("resourceVersion", "0")
    return int(text) if text.isdecimal() else 0


def _leaving(item: Object) -> Object:
    if is_leaving(item):
        return item
    time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**item, "metadata": {**item["metadata"], "deletionTimestamp": time}}
