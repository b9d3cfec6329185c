"""The cursor of an edge in its head's log: one for all its subscribers that are behind, read in bounded slices.

Members join with the position up to which they have everything. A slice begins at the lowest of these; a member takes
what lies above its own. Every other slice begins at the position of the member whose turn it is, and those below wait
for the next one: else one that comes back again and again with an old token would hold up all others. When the head
answers `done`, the stream continues where the log ends, and members go live. An attachment that joins during a slice
waits for the next one. A member that is cut over to another edge takes nothing beyond its cut.
"""

from __future__ import annotations

from collections.abc import Iterable

from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment
from plimsoll.core.protocol.messages import Fetch, Fetched

FILTERS_AT_MOST = 32
FILTER_CHARACTERS = 32 * 1024
"""Up to these bounds FETCH lists the members' subscriptions; beyond them the head reads for the edge's whole cover."""


class CatchupCursor:
    """At most one FETCH is under way at a time. `members`: those that take part in the present slice."""

    def __init__(self) -> None:
        self.id = 0
        self.reading = False
        self.members: dict[EdgeAttachment, None] = {}
        self._joining: dict[EdgeAttachment, None] = {}
        self._turns: dict[EdgeAttachment, None] = {}

    def __len__(self) -> int:
        return len(self.members) + len(self._joining)

    def join(self, attachment: EdgeAttachment) -> None:
        attachment.state = AttachmentState.CATCHUP
        self._joining[attachment] = None
        self._turns[attachment] = None

    def leave(self, attachment: EdgeAttachment) -> None:
        self.members.pop(attachment, None)
        self._joining.pop(attachment, None)
        self._turns.pop(attachment, None)

    def begin(self) -> Fetch | None:
        """The next slice to ask for, if one is needed and none is under way."""
        if self.reading or not (self.members or self._joining):
            return None
        self.members.update(self._joining)
        self._joining = {}
        self.id += 1
        self.reading = True
        after = self._first_position()
        for member in [member for member in self.members if member.position < after]:
            del self.members[member]
            self._joining[member] = None
        return Fetch(self.id, after, self._filters())

    def _filters(self) -> list[str]:
        """What the members ask for, if it is little: long lists are counted, and not written out for each slice."""
        if sum(len(member.subscriptions) for member in self.members) > FILTERS_AT_MOST:
            return []
        filters = {str(subscription) for member in self.members for subscription, _ in member.subscriptions.values()}
        return sorted(filters) if sum(map(len, filters)) <= FILTER_CHARACTERS else []

    def _first_position(self) -> int:
        """Where the next slice begins: at the lowest position, or at that of the member whose turn it is."""
        lowest = min(member.position for member in self.members)
        if self.id % 2 or (member := next(iter(self._turns), None)) is None:
            return lowest
        self._turns[member] = self._turns.pop(member)  # last in turn from here on
        return member.position

    def end(self, fetched: Fetched) -> Iterable[EdgeAttachment]:
        """A slice has ended; returns those that have caught up, with the stream or with their cut."""
        self.reading = False
        done = []
        for member in list(self.members):
            member.position = max(member.position, fetched.to)
            if fetched.done or (member.pending_end is not None and member.position >= member.pending_end.position):
                done.append(member)
                self.leave(member)
        return done

    def reset(self) -> None:
        """Forget all members: the stream is over, and with it every attachment that was behind."""
        self.reading = False
        self.members, self._joining, self._turns = {}, {}, {}
