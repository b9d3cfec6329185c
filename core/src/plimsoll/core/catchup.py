"""The cursor of an edge in its head's log: one for all its subscribers that are behind, read in bounded slices.

Members join with the position up to which they have everything. A slice begins at the lowest of them; a member takes
what lies above its own position. When the head says `done`, what follows in the stream is what follows in the log, and
members go live. Who joins while a slice is under way waits for the next one. A member that is cut over to another edge
takes nothing from behind its cut.
"""

from __future__ import annotations

from collections.abc import Iterable

from plimsoll.core.attachment import Attachment, State
from plimsoll.core.records import Fetch, Fetched

FILTERS_AT_MOST = 32
FILTER_CHARACTERS = 32 * 1024
"""With so few and so short subscriptions the head is told them; else it reads for the edge's whole cover."""


class Cursor:
    """At most one FETCH is under way at a time."""

    def __init__(self) -> None:
        self.id = 0
        self.reading = False
        self.members: dict[Attachment, None] = {}
        self._joining: dict[Attachment, None] = {}

    def __len__(self) -> int:
        return len(self.members) + len(self._joining)

    def join(self, attachment: Attachment) -> None:
        attachment.state = State.CATCHUP
        self._joining[attachment] = None

    def leave(self, attachment: Attachment) -> None:
        self.members.pop(attachment, None)
        self._joining.pop(attachment, None)

    def begin(self) -> Fetch | None:
        """The next slice to ask for, if one is needed and none is under way."""
        if self.reading or not (self.members or self._joining):
            return None
        self.members.update(self._joining)
        self._joining = {}
        self.id += 1
        self.reading = True
        texts = [str(subscription) for member in self.members for subscription, _ in member.subscriptions.values()]
        filters = sorted(set(texts)) if len(texts) <= FILTERS_AT_MOST else []
        if sum(map(len, filters)) > FILTER_CHARACTERS:
            filters = []
        return Fetch(self.id, min(member.position for member in self.members), filters)

    def end(self, fetched: Fetched) -> Iterable[Attachment]:
        """A slice has ended; returns those that have caught up, with the stream or with their cut."""
        self.reading = False
        done = []
        for member in list(self.members):
            member.position = max(member.position, fetched.to)
            if fetched.done or (member.end is not None and member.position >= member.end[0]):
                done.append(member)
                del self.members[member]
        return done

    def reset(self) -> None:
        """The stream is over: a new one begins with nobody in it."""
        self.reading = False
        self.members, self._joining = {}, {}
