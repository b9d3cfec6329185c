"""Sessions in brief, kept up to date by the store's changes: their objects are large, and few change at a time."""

from __future__ import annotations

from plimsoll.local.storage.object_store import ChangesExpiredError, ObjectStore
from plimsoll.mediator.balance import SessionOutline, session_outline
from plimsoll.mediator.session_objects import SESSION_KIND


class SessionBriefCache:
    """Summaries of sessions for statuses, as of the last read of the store."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._version: int | None = None
        self._known: dict[str, SessionOutline] = {}

    def refresh(self) -> list[SessionOutline]:
        """All sessions as they are now, by name."""
        try:
            if self._version is None:
                raise ChangesExpiredError("nothing was read yet")
            for change in self._store.changes(self._version, SESSION_KIND):
                self._version = change.version
                if change.type == "DELETED":
                    self._known.pop(change.name, None)
                else:
                    self._known[change.name] = session_outline(change.object)
        except ChangesExpiredError:  # read all of them
            self._version, items = self._store.objects(SESSION_KIND)
            self._known = {item["metadata"]["name"]: session_outline(item) for item in items}
        return [self._known[name] for name in sorted(self._known)]
