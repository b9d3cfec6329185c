"""The publications of one publisher that have no answer yet: their numbers, and how many bytes they take.

Stamps do not count: they are there because of what others ask for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple


class SentPublication(NamedTuple):
    """A publication that waits to be sent, or for its answer. `size`: of its body without stamps."""

    number: int
    body: bytes
    sent_us: int
    flags: int
    size: int


class PublicationBuffer:
    """`sent`: by sequence number, in order; `queued`: the later ones, which are not sent yet.

    `number`: of the last publication, from 1. `base`: the number before the first of this incarnation; a publication's
    sequence number is counted from there. `progress_at`: when one was answered last, or nothing waited.
    """

    __slots__ = ("base", "number", "progress_at", "queued", "sent", "size_bytes")

    def __init__(self) -> None:
        self.number = self.base = self.size_bytes = 0
        self.progress_at = 0.0
        self.sent: dict[int, SentPublication] = {}
        self.queued: deque[SentPublication] = deque()

    def __len__(self) -> int:
        """How many publications have no answer yet."""
        return len(self.sent) + len(self.queued)

    @property
    def last_sent(self) -> int:
        """The highest sequence number of this incarnation that has been sent."""
        return self.number - len(self.queued) - self.base

    @property
    def first(self) -> int:
        """The lowest sequence number without an answer, or the next one that will be used."""
        return next(iter(self.sent), self.last_sent + 1)

    def queue(self, body: bytes, sent_us: int, flags: int, size: int) -> int:
        """Take a publication that is to be sent; returns its number."""
        self.number += 1
        self.size_bytes += size
        self.queued.append(SentPublication(self.number, body, sent_us, flags, size))
        return self.number

    def resume(self, number: int, seq: int, bodies: Iterable[bytes], sent_us: int, flags: int) -> None:
        """Go on behind this number. An earlier life may have sent these bodies behind it."""
        self.number, self.base = number, number - seq
        for body in bodies:
            self.number += 1
            self.size_bytes += len(body)
            self.sent[self.number - self.base] = SentPublication(self.number, body, sent_us, flags, len(body))

    def silent_seconds(self, now: float) -> float:
        """How long publications have waited without any of them being answered."""
        if not self.sent and not self.queued:
            self.progress_at = now
        return now - self.progress_at

    # -- what the head has

    def sent_through(self, seq: int) -> list[int]:
        """The sequence numbers up to this one that have no answer."""
        found = []
        for each in self.sent:
            if each > seq:
                break
            found.append(each)
        return found

    def sent_behind(self, seq: int) -> list[SentPublication]:
        """The publications behind this one that have been sent."""
        return [sent for sent in self.sent.values() if sent.number - self.base > seq]

    def leaves_hole(self, seq: int) -> bool:
        """Whether a head with this last number expects one that is answered and not kept, or one above all sent."""
        kept = sum(each > seq for each in self.sent)
        return kept != self.last_sent - seq

    # -- answers

    def answer(self, seqs: Iterable[int], now: float) -> Iterator[tuple[int, int]]:
        """Take publications out; yields the first and the last of each run of consecutive sequence numbers."""
        first = last = 0
        for seq in seqs:
            sent = self.sent.pop(seq, None)
            if sent is None:
                continue
            self.size_bytes -= sent.size
            self.progress_at = now
            if first and seq == last + 1:
                last = seq
                continue
            if first:
                yield first, last
            first = last = seq
        if first:
            yield first, last

    def drop_queued(self) -> tuple[int, int] | None:
        """Take out what has not been sent; returns the first and the last number of that."""
        if not self.queued:
            return None
        first, last = self.queued[0].number, self.queued[-1].number
        self.size_bytes -= sum(sent.size for sent in self.queued)
        self.queued.clear()
        return first, last

    def begin_incarnation(self) -> int:
        """The next one to be sent has the sequence number 1; returns its number."""
        self.base = self.number - len(self.queued)
        return self.base + 1
