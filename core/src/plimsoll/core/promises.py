"""What an edge has been asked to promise: SUBACK, once the tree has a subscription or its acknowledged coverer.

Every change travels upward as a numbered cover update; the acknowledgement of an update answers for it and for all
before it. Heads that are not reached are named, and the promise is made again without them when they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from plimsoll.core.attachment import Attachment, State
from plimsoll.core.link import Link
from plimsoll.core.records import Suback


class Wait(NamedTuple):
    """A version of a subscriber's list, and the update that announced it."""

    seq: int
    attachment: Attachment
    version: int


class Promises:
    """The versions that wait for an acknowledgement, and those that were acknowledged with heads unreached."""

    def __init__(self) -> None:
        self._acked = 0
        self._waits: list[Wait] = []
        self._incomplete: dict[Attachment, Wait] = {}

    def __len__(self) -> int:
        return len(self._waits) + len(self._incomplete)

    def ask(self, seq: int, attachment: Attachment, version: int) -> None:
        self._waits.append(Wait(seq, attachment, version))

    def forget(self, attachment: Attachment) -> None:
        """The attachment is closed."""
        self._incomplete.pop(attachment, None)

    def renumber(self, seq: int) -> None:
        """The whole cover is announced anew, with this number: what waits, waits for it."""
        waits = [*self._incomplete.values(), *self._waits]
        self._waits = [Wait(seq, attachment, version) for _, attachment, version in waits]
        self._incomplete, self._acked = {}, 0

    def acknowledged(self, seq: int, unreached: list[str]) -> Iterator[tuple[Link, Suback]]:
        """The head has acknowledged updates; yields what can be promised now, and to whom."""
        self._acked = max(self._acked, seq)
        for wait in [w for w in self._incomplete.values() if w.seq <= seq and not unreached]:
            del self._incomplete[wait.attachment]
            yield self._suback(wait, [])
        kept = []
        for wait in self._waits:
            if wait.attachment.state is State.CLOSED:
                continue
            # Nothing is promised to a subscriber that has no place in the log yet.
            if wait.seq <= self._acked and wait.attachment.state is not State.RESUMING:
                if unreached:
                    self._incomplete[wait.attachment] = wait
                yield self._suback(wait, unreached)
            else:
                kept.append(wait)
        self._waits = kept

    def _suback(self, wait: Wait, unreached: list[str]) -> tuple[Link, Suback]:
        return wait.attachment.link, Suback(wait.attachment.id, wait.version, unreached)
