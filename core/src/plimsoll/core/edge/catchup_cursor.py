"""The cursor of an edge in its head's log: one for all its subscribers that are behind, read in bounded slices.

Members join with the position up to which they have everything. A slice begins at the lowest of these; a member takes
what lies above its own. When the head answers `done`, the stream continues where the log ends, and members go live. An
attachment that joins during a slice waits for the next one. A member that is cut over to another edge takes nothing
beyond its cut.
"""

from __future__ import annotations

from collections.abc import Iterable

from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment
from plimsoll.core.protocol.messages import Fetch, Fetched

FILTERS_AT_MOST = 32
FILTER_CHARACTERS = 32 * 1024
"""Up to these bounds FETCH lists the members' subscriptions; beyond them the head reads for the edge's whole cover."""


class CatchupCursor:
    """At most one FETCH is under way at a time."""

    def __init__(self) -> None:
        self.id = 0
        self.reading = False
        self.members: dict[EdgeAttachment, None] = {}
        self._joining: dict[EdgeAttachment, None] = {}

    def __len__(self) -> int:
        return len(self.members) + len(self._joining)

    def join(self, attachment: EdgeAttachment) -> None:
        attachment.state = AttachmentState.CATCHUP
        self._joining[attachment] = None

    def leave(self, attachment: EdgeAttachment) -> None:
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

    def end(self, fetched: Fetched) -> Iterable[EdgeAttachment]:
        """A slice has ended; returns those that have caught up, with the stream or with their cut."""
        self.reading = False
        done = []
        for member in list(self.members):
            member.position = max(member.position, fetched.to)
            if fetched.done or (member.pending_end is not None and member.position >= member.pending_end.position):
                done.append(member)
                del self.members[member]
        return done

    def reset(self) -> None:
        """Forget all members: the stream is over, and with it every attachment that was behind."""
        self.reading = False
        self.members, self._joining = {}, {}
