"""Lists for durable places as edges send them: in parts, and ahead of the RESUME that makes their link the owner."""

from __future__ import annotations

from msgspec.structs import replace

from plimsoll.core.head.ownership import OwnerEntry, OwnershipTable
from plimsoll.core.protocol import messages as msg


class PlaceLists:
    """`staged`: whole lists, by link and subscriber. One counts once that link and its epoch own the subscriber."""

    def __init__(self, owners: OwnershipTable) -> None:
        self._owners = owners
        self.staged: dict[tuple[str, str], msg.KeepPlace] = {}
        self._parts: dict[tuple[str, str], list[str]] = {}

    def receive(self, key: str, keep: msg.KeepPlace) -> bool:
        """Take a list, or a part of one; returns whether the list is complete."""
        at = key, keep.subscriber
        texts = [*self._parts.pop(at, ()), *keep.texts]
        if keep.more:
            self._parts[at] = texts
        else:
            self.staged[at] = replace(keep, texts=texts)
        return not keep.more

    def settled(self, key: str, subscriber: str) -> tuple[msg.KeepPlace, OwnerEntry] | None:
        """The list that counts from now on, with its owner; None as long as none does."""
        keep, entry = self.staged[key, subscriber], self._owners.entries.get(subscriber)
        if entry is None or entry.key != key or entry.epoch != keep.epoch:
            return None
        del self.staged[key, subscriber]
        return keep, entry

    def lost(self, key: str) -> None:
        """A link has ended."""
        for staged in [each for each in self.staged if each[0] == key]:
            del self.staged[staged]
        for part in [each for each in self._parts if each[0] == key]:
            del self._parts[part]

    def drop_refused(self) -> None:
        """Drop lists whose subscriber has a later owner by now."""
        for key, keep in list(self.staged.items()):
            if (entry := self._owners.entries.get(keep.subscriber)) is not None and entry.epoch > keep.epoch:
                del self.staged[key]
