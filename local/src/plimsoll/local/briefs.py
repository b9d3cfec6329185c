"""Sessions in brief, kept up to date by the store's changes: their objects are large, and few change at a time."""

from __future__ import annotations

from plimsoll.local.store import ExpiredError, Store
from plimsoll.mediator.balance import Brief, brief
from plimsoll.mediator.sessions import KIND


class Briefs:
    """What status says of sessions, as of the last look into the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version: int | None = None
        self._known: dict[str, Brief] = {}

    def look(self) -> list[Brief]:
        """All sessions as they are now, by name."""
        try:
            if self._version is None:
                raise ExpiredError("nothing was read yet")
            for change in self._store.changes(self._version, KIND):
                self._version = change.version
                if change.type == "DELETED":
                    self._known.pop(change.name, None)
                else:
                    self._known[change.name] = brief(change.object)
        except ExpiredError:
            self._version, items = self._store.objects(KIND)
            self._known = {item["metadata"]["name"]: brief(item) for item in items}
        return [self._known[name] for name in sorted(self._known)]
