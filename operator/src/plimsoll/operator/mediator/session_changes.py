"""Sessions that a watch has shown and the engine has not seen yet: the last change of each, and in which order they go.

A change of the status alone is none: the mediator has written it itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from plimsoll.core.session import Session
from plimsoll.core.session.queue_order import Turn
from plimsoll.mediator import session_objects
from plimsoll.operator.api import Object


@dataclass(frozen=True)
class SessionChange:
    """A session as a watch has shown it."""

    type: Literal["MODIFIED", "DELETED"]
    item: Object


class SessionChanges:
    """`waiting`: by uid. `known` finds the session of a uid in the engine."""

    def __init__(self, known: Callable[[str], Session | None]) -> None:
        self._known = known
        self.waiting: dict[str, SessionChange] = {}
        self._taken: dict[str, tuple[int, bool]] = {}

    def put(self, type_: str, item: Object) -> None:
        """Note a session that a watch has shown; what is deleted stays deleted, whatever a late watch shows."""
        uid = item["metadata"]["uid"]
        if type_ == "DELETED":
            self.waiting[uid] = SessionChange("DELETED", item)
        elif (before := self.waiting.get(uid)) is None or (
            before.type != "DELETED" and _version(item) >= _version(before.item)
        ):
            self.waiting[uid] = SessionChange("MODIFIED", item)

    def in_turn(self) -> list[str]:
        """The uids of those that wait, in the order of their turns; deleted ones first, as they cost no write."""
        return sorted(self.waiting, key=self._turn_of)

    def _turn_of(self, uid: str) -> tuple[bool, Turn]:
        change = self.waiting[uid]
        known, parent = self._known(uid), self._known(session_objects.parent_uid(change.item))
        first = session_objects.first_turn(change.item, parent) if known is None else known.turn
        return change.type != "DELETED", first

    def is_news(self, item: Object) -> bool:
        """Whether this generation of a session has not been taken yet; it counts as taken from now on."""
        uid, version = item["metadata"]["uid"], _version(item)
        if version <= self._taken.get(uid, (-1, False)):
            return False
        self._taken[uid] = version
        return True

    def forget(self, uid: str) -> None:
        """The session is deleted."""
        self._taken.pop(uid, None)

    def restart(self) -> None:
        """A new engine has seen none of them."""
        self._taken.clear()


def _version(item: Object) -> tuple[int, bool]:
    return int(item["metadata"]["generation"]), "deletionTimestamp" in item["metadata"]
