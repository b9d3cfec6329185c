"""Publishes the results of a channel: each once, over all lives of the driver, in the order of batches and rows.

The publisher has one name for all lives of a channel, and the sequence number of a result follows from its number. A
life that follows another opens it in the same incarnation, with all results that may have been sent; the head says
which of them it has. A head that has lost its memory leaves those without an answer `unknown`: they are counted, and
not sent again, since subscribers may have got them; subscribers see a gap of that head.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from plimsoll.channels.batch import Result
from plimsoll.channels.ledger import ChannelLedger, LedgerPosition, PublishedCounts
from plimsoll.client import errors
from plimsoll.core.client import Answered, PublisherPosition
from plimsoll.core.protocol.wire import Scalar

OPEN_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.02
CLOSE_SECONDS: Final = 2.0
SAVE_SECONDS: Final = 10.0
"""How often the position is saved at least, so that the next life knows how long a head has been without this one."""
NEWER_INCARNATION: Final = "incarnation"
"""The code of a head that has this publisher in a newer incarnation than the position's."""


class PublishesResults(Protocol):
    """What it needs of a publisher; `plimsoll.client.Publisher` is one."""

    @property
    def is_open(self) -> bool: ...
    @property
    def position(self) -> PublisherPosition | None: ...
    def publish(self, attributes: Mapping[str, Scalar], payload: bytes = ...) -> object: ...
    def flush(self, timeout: float | None = ...) -> object: ...
    def close(self, timeout: float = ...) -> None: ...


OpenPublisher = Callable[
    [PublisherPosition | None, Sequence[tuple[Mapping[str, Scalar], bytes]], float, Callable[[list[Answered]], None]],
    PublishesResults,
]
"""Opens the publisher: position, results that are unanswered, seconds since the last life, where answers go."""


class ResultPublisher:
    """Publishes what a ledger has. `clock`: microseconds since 1970; `wait`: waits for some seconds.

    Raises:
        ClientError: the fleet does not take publications.
        OSError: the disk fails.

    """

    def __init__(
        self,
        ledger: ChannelLedger,
        opened: OpenPublisher,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._ledger, self._opened, self._clock, self._wait = ledger, opened, clock, wait
        self.counts = ledger.position.counts if ledger.position is not None else PublishedCounts()
        self._shift = 0  # from the publisher's numbers to those of results
        self._answers: list[Answered] = []
        self._publisher = self._open()

    def _open(self) -> PublishesResults:
        """Open it as the last life left it. The position is saved before anything is sent under a new identity."""
        ledger = self._ledger
        at, waiting = ledger.position, list(ledger.unpublished())
        if at is not None:
            away = max(0.0, (self._clock() - at.at_us) / 1e6)
            known = [(each.attributes, each.payload) for each in waiting]
            try:
                publisher = self._opened(at.of_publisher, known, away, self._answers.extend)
                self._await_open(publisher)
            except errors.FailedError as error:
                if error.code != NEWER_INCARNATION:
                    raise
            else:
                self._publisher = publisher
                self.save()
                return publisher
            # A head that lost its memory while the last life ended: nothing tells what it has of these.
            self.counts = msgspec.structs.replace(self.counts, unknown=self.counts.unknown + len(waiting))
            self._shift, waiting = at.number + len(waiting), []
        publisher = self._publisher = self._opened(None, [], 0.0, self._answers.extend)
        self._await_open(publisher)
        self.save()
        self.publish(waiting)
        return publisher

    def _await_open(self, publisher: PublishesResults) -> None:
        until = self._clock() + round(OPEN_SECONDS * 1e6)
        while publisher.position is None or not publisher.is_open:
            if self._clock() > until:
                raise errors.WaitTimeoutError(f"no head has opened the channel's publisher for {OPEN_SECONDS:g} s")
            self._wait(POLL_SECONDS)

    def publish(self, results: Sequence[Result]) -> None:
        """Publish results, which a commit has, behind all earlier ones. Waits while too many have no answer."""
        if results and not self._is_saved():
            self._save_identity()
        for each in results:
            self._publisher.publish(each.attributes, each.payload)

    def _is_saved(self) -> bool:
        """Whether the ledger has the identity under which the next result is sent."""
        at, position = self._ledger.position, self._publisher.position
        return at is not None and position is not None and at.of_publisher[:1] + at.of_publisher[3:] == (
            position.incarnation, position.head, position.epoch,
        )  # fmt: skip

    def _save_identity(self) -> None:
        until = self._clock() + round(OPEN_SECONDS * 1e6)
        while not self._is_saved():
            if self._clock() > until:
                raise errors.WaitTimeoutError(f"no head has opened the channel's publisher for {OPEN_SECONDS:g} s")
            self.save()
            self._wait(POLL_SECONDS)

    def save(self) -> None:
        """Count the answers up to the publisher's position, and save it if it has changed, or was saved long ago."""
        position = self._publisher.position
        if position is None:
            return
        number = position.number + self._shift
        counts = self._counted(position.number)
        if counts.answered != number:
            return  # an answer is under way to us; the next call has it
        self.counts, now, at = counts, self._clock(), self._ledger.position
        found = LedgerPosition(
            number, position.incarnation, position.seq, position.head, position.epoch, now, self.counts
        )  # fmt: skip
        if at is None or found != msgspec.structs.replace(at, at_us=now) or now - at.at_us > SAVE_SECONDS * 1e6:
            self._ledger.save_position(found)

    def _counted(self, through: int) -> PublishedCounts:
        """The counts with all answers to publications up to this number; those to later ones wait."""
        counts, later = self.counts, []
        while self._answers:
            answer = self._answers.pop(0)
            last = min(answer.last, through)
            if (number := last - answer.first + 1) > 0:
                counts = counts.plus(answer.answer, number)
            if answer.last > through:
                later.append(msgspec.structs.replace(answer, first=max(answer.first, through + 1)))
        self._answers[:0] = later
        self.counts = counts
        return counts

    def close(self) -> None:
        """Wait a moment for answers, and save the position; the next life asks the head for what has none."""
        with contextlib.suppress(errors.WaitTimeoutError):  # the next life asks the head
            self._publisher.flush(CLOSE_SECONDS)
        self.save()
        self._publisher.close(0.0)
