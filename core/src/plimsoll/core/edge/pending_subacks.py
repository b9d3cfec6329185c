"""SUBACKs that are due: sent once the tree has the subscriptions, or something acknowledged that covers them.

Every change travels upward as a numbered cover update. An acknowledgement is for that update and all before it. SUBACK
names the heads that were not reached, and is sent again without them once they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from plimsoll.core.edge.attachment import AttachmentState, EdgeAttachment
from plimsoll.core.protocol.messages import Suback
from plimsoll.core.transport.link import Link


class PendingSuback(NamedTuple):
    """A version of a subscriber's list, and the update that announced it."""

    seq: int
    attachment: EdgeAttachment
    version: int


class PendingSubacks:
    """Versions that wait for an acknowledgement, and those acknowledged with heads unreached."""

    def __init__(self) -> None:
        self._acked = 0
        self._waits: list[PendingSuback] = []
        self._incomplete: dict[EdgeAttachment, PendingSuback] = {}

    def __len__(self) -> int:
        return len(self._waits) + len(self._incomplete)

    def ask(self, seq: int, attachment: EdgeAttachment, version: int) -> None:
        self._waits.append(PendingSuback(seq, attachment, version))

    def forget(self, attachment: EdgeAttachment) -> None:
        """Drop an attachment that is closed."""
        self._incomplete.pop(attachment, None)

    def renumber(self, seq: int) -> None:
        """Make all waiting versions wait for this one: the whole cover goes to a head that knows no earlier update."""
        waits = [*self._incomplete.values(), *self._waits]
        self._waits = [PendingSuback(seq, attachment, version) for _, attachment, version in waits]
        self._incomplete, self._acked = {}, 0

    def acknowledged(self, seq: int, unreached: list[str]) -> Iterator[tuple[Link, Suback]]:
        """Take an acknowledgement; yields the SUBACKs that it makes due, with their links."""
        self._acked = max(self._acked, seq)
        for wait in [w for w in self._incomplete.values() if w.seq <= seq and not unreached]:
            del self._incomplete[wait.attachment]
            yield self._suback(wait, [])
        kept = []
        for wait in self._waits:
            if wait.attachment.state is AttachmentState.CLOSED:
                continue
            # Before RESUMED the subscriber has no place in the log from which a promise could count.
            if wait.seq <= self._acked and wait.attachment.state is not AttachmentState.RESUMING:
                if unreached:
                    self._incomplete[wait.attachment] = wait
                yield self._suback(wait, unreached)
            else:
                kept.append(wait)
        self._waits = kept

    def _suback(self, wait: PendingSuback, unreached: list[str]) -> tuple[Link, Suback]:
        return wait.attachment.link, Suback(wait.attachment.id, wait.version, unreached)
