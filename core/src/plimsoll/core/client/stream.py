"""A subscriber's stream: its deliveries so far, and its position.

Rules of the place:
- The token (head, head epoch, position) is where to go on: it rises with each item, gap and progress of the current
  attachment, and with nothing else.
- Per origin, offsets only rise: an item at or below the watermark has been seen; it is suppressed and counted.
- A gap is reported unless the watermarks have all of it. It raises them, and the token.
- The queue of an application that holds its items is bounded (`application_queue`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from plimsoll.core.client.application_queue import RECORD_BYTES, ApplicationQueue
from plimsoll.core.client.attachment import ClientAttachment
from plimsoll.core.client.delivery_tally import DeliveryTally, PublisherTally
from plimsoll.core.client.events import Delivery, GapNotice, SubscriberEvent
from plimsoll.core.client.limits import ClientLimits
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.origins import Origin
from plimsoll.core.protocol.wire import Token

PUBLISHER_TALLIES_AT_MOST = 4
"""Moves of publishers that a subscriber counts at a time; the one that began first goes first."""
ORIGINS_AT_MOST = 1024
"""Origins that have a watermark; the one that was met first goes first."""

Attachment = ClientAttachment[Any]
Overlap = Callable[["SubscriberStream", msg.PubOpen], bool]


class StreamOwner(Protocol):
    """The stream's interface to the subscriber."""

    current: Attachment | None

    def mark_ready(self) -> None:
        """There are events to be taken."""

    def tell(self, event: SubscriberEvent) -> None: ...

    def steer(self) -> None:
        """The queue has become full, or has room again."""

    def retake(self) -> None:
        """Another `taker` is meant from here on."""


def _same_log(before: Origin, after: Origin) -> None:
    """Most subscribers keep no position but their token."""


class SubscriberStream:
    """The stream of one subscriber. `origin` and `position`: of the log that it is served from, None before the first.

    `events` is the owner's list, and stays the same object. `holds`: items count as queued until
    `queue.consumed`. `log_goes_on`: is told of two epochs of a head whose positions are of one log. `overlap`: whether
    the application has not had an item from another unit, None without others.
    """

    __slots__ = (
        "_owner", "counts", "duplicates", "even_version", "events", "holds", "items", "log_goes_on", "origin",
        "overlap", "position", "publisher_tallies", "queue", "rising", "tallied_from", "tally", "watermarks",
    )  # fmt: skip

    def __init__(
        self, owner: StreamOwner, events: list[SubscriberEvent], counts: Counter[str], limits: ClientLimits,
        token: Token | None,
    ) -> None:  # fmt: skip
        self._owner, self.events, self.counts = owner, events, counts
        self.origin: Origin | None = (token[0], token[1]) if token else None
        self.position = token[2] if token else 0
        self.watermarks: dict[Origin, int] = {}
        self.items = self.duplicates = 0
        self.queue = ApplicationQueue(limits, owner.steer)
        self.holds = False
        self.overlap: Overlap | None = None
        self.tally: DeliveryTally | None = None
        self.publisher_tallies: dict[str, PublisherTally] = {}
        self.tallied_from = self.even_version = 0
        self.rising = (0, 0)
        self.log_goes_on: Callable[[Origin, Origin], object] = _same_log

    # -- position

    @property
    def token(self) -> Token | None:
        """Where to go on; None before the first attachment."""
        return None if self.origin is None else (*self.origin, self.position)

    def set_token(self, token: Token) -> None:
        self._goes_on_in((token[0], token[1]))
        self.position = token[2]

    def _goes_on_in(self, origin: Origin) -> None:
        """Of another log, or another epoch: questions about publishers may come ahead of what they are about."""
        if origin != self.origin and self.publisher_tallies:
            self.publisher_tallies.clear()
            self._owner.retake()
        self.origin = origin

    def marks(self) -> list[Token]:
        """The watermarks as triples (head, head epoch, offset)."""
        return [(head, epoch, offset) for (head, epoch), offset in self.watermarks.items()]

    def start_from(self, marks: Iterable[Token]) -> None:
        """Take over the watermarks of an earlier life."""
        self.watermarks.clear()
        self.watermarks.update({(head, epoch): offset for head, epoch, offset in marks})

    # -- items

    def take(self, attachment: Attachment, item: msg.PubOpen | msg.Gap, size: int, now: float) -> None:
        """An item of the stream. Hot path: the case of a publication comes first."""
        if type(item) is not msg.PubOpen:
            self.on_gap(attachment, item, now)  # type: ignore[arg-type]  # the other kind of item: `is not` narrows no type
            return
        origin = (item.head, item.epoch)
        seen = self.watermarks.get(origin, 0)
        # After a hand-over across clusters the target repeats what the source has delivered: docs/handover.md, 4.
        if item.offset > seen:
            self.watermarks[origin] = item.offset
            if not seen:
                self._bound_watermarks()
            if self.overlap is not None and not self.overlap(self, item):
                self._given_already(item)
            else:
                if not self.events:
                    self._owner.mark_ready()
                self.events.append(Delivery(item, attachment.stream, now))
                self.items += 1
                if self.holds:
                    self.queue.grow(size)
        else:
            self.duplicates += 1
        if item.position > self.position and attachment is self._owner.current:
            self.position = item.position

    @property
    def taker(self) -> Callable[[Attachment, msg.PubOpen | msg.Gap, int, float], None]:
        """`take`, or `take_tallied` while its deliveries are counted: two functions instead of a check per delivery."""
        is_counted = self.tally is not None or self.publisher_tallies
        return self.take_tallied if is_counted else self.take

    def _given_already(self, item: msg.PubOpen) -> None:
        """Another unit of the subscriber has brought it: the application has it, and an audit counts it as given."""
        self._count(item)

    def take_tallied(self, attachment: Attachment, item: msg.PubOpen | msg.Gap, size: int, now: float) -> None:
        """The same during a move: what the application is given is also counted."""
        before, again = self.items, self.duplicates
        self.take(attachment, item, size, now)
        if not isinstance(item, msg.PubOpen):
            return
        if self.items != before:
            self._count(item)
        elif self.duplicates != again:
            for tally in self.publisher_tallies.values():
                tally.passed_over(item)

    def _count(self, item: msg.PubOpen) -> None:
        if self.tally is not None and not self.tally.saw(item):
            self.end_tally()
        for session, tally in list(self.publisher_tallies.items()):
            if not tally.saw(item):
                self.end_publisher_tally(session)

    def on_gap(self, attachment: Attachment, gap: msg.Gap, now: float) -> None:
        """Something between here and the gap's end may be missing."""
        marks = self.watermarks
        if gap.low_epoch == gap.epoch and gap.low > gap.high:
            # The head has a new epoch and has lost nothing: only the token changes.
            self._go_on(attachment, gap)
            return
        if gap.last and all(marks.get((head, epoch), 0) >= offset for head, epoch, offset in gap.last):
            self.counts["gaps_known"] += 1
        else:
            self.counts["gaps"] += 1
            self.items += 1
            self._owner.tell(GapNotice(gap, now))
            if self.holds:
                self.queue.grow(RECORD_BYTES * len(gap.last))
        for head, epoch, offset in gap.last:
            if offset > marks.get((head, epoch), 0):
                marks[head, epoch] = offset
        self._bound_watermarks()
        if attachment is self._owner.current:
            self._place(attachment, (gap.head, gap.epoch), gap.high)

    def _go_on(self, attachment: Attachment, gap: msg.Gap) -> None:
        self.counts["epochs"] += 1
        if attachment is self._owner.current:
            if self.origin is not None:
                self.log_goes_on(self.origin, (gap.head, gap.epoch))
            attachment.stream = (gap.head, gap.epoch)
            self._goes_on_in(attachment.stream)

    def on_progress(self, attachment: Attachment, position: int) -> None:
        """Everything up to this position has been delivered, whether or not any of it was for this subscriber."""
        if attachment is not self._owner.current:
            return
        if position > self.position:
            self.position = position
        if self.even_version < attachment.acked:
            self._rise(attachment.acked, position)

    def _rise(self, version: int, position: int) -> None:
        """A changed list takes effect at a place that only the head knows, ahead of SUBACK.

        A second PROGRESS after SUBACK lies behind that place: from there on everything that matches the list is due.
        """
        known, before = self.rising
        if version != known:
            self.rising = (version, position)
        elif position > before:
            self.even_version = version

    def _place(self, attachment: Attachment, origin: Origin, position: int) -> None:
        # Positions of two logs are not comparable: in another log this one counts, even if it is lower.
        self.position = position if origin != self.origin else max(self.position, position)
        attachment.stream = origin
        self._goes_on_in(origin)

    def _bound_watermarks(self) -> None:
        while len(self.watermarks) > ORIGINS_AT_MOST:
            del self.watermarks[next(iter(self.watermarks))]

    def cached(self, items: Iterable[Delivery]) -> None:
        """The giver of a slice has had these, from the same log: they are not taken again."""
        marks = self.watermarks
        for item in items:
            head, epoch, offset = item.origin
            marks[head, epoch] = max(offset, marks.get((head, epoch), 0))
            if item.stream == self.origin:
                self.position = max(self.position, item.position)
        self._bound_watermarks()

    # -- a move

    def begin_tally(self, session: str, version: int | None) -> None:
        """Count the application's deliveries from here on. `version`: of the list, None unless all of it counts.

        Without a list that counts from a known place on, it cannot be said what is due.
        """
        self.tally = None
        is_even = version is not None and self.even_version == version
        if self.token is not None and is_even and len(self.watermarks) <= msg.COUNTED_MARKS_AT_MOST:
            self.tally = DeliveryTally(session, self.token, self.marks(), self.even_version)
            self.tallied_from = self.duplicates
        self._owner.retake()

    def end_tally(self, session: str = "") -> None:
        """End the count of a move, of this session if one is named."""
        if not session or (self.tally is not None and self.tally.session == session):
            self.tally = None
            self._owner.retake()

    def begin_publisher_tally(self, asked: msg.CountPublishers, version: int) -> PublisherTally | None:
        """Count what comes of some publishers from here on; None if it cannot be said what is due."""
        marks = [(head, epoch, offset) for head, epoch, offset in self.marks() if head in asked.heads]
        if self.token is None or self.even_version != version or len(marks) > msg.COUNTED_MARKS_AT_MOST:
            return None
        tally = PublisherTally(asked, self.token, marks, version)
        self.publisher_tallies[asked.session] = tally
        while len(self.publisher_tallies) > PUBLISHER_TALLIES_AT_MOST:
            del self.publisher_tallies[next(iter(self.publisher_tallies))]
        self._owner.retake()
        return tally

    def end_publisher_tally(self, session: str) -> None:
        self.publisher_tallies.pop(session, None)
        self._owner.retake()

    def tally_of(self, session: str, version: int) -> DeliveryTally | None:
        """What was counted in this session, if the list still has this version."""
        tally = self.publisher_tallies.get(session, self.tally)
        return tally if tally is not None and (tally.session, tally.version) == (session, version) else None
