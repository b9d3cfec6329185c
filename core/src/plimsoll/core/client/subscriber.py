"""A logical subscriber: its subscriptions, its place in the stream, and what it has seen.

Laws of the place:
- The token (head, head epoch, position) says where to go on: it rises with each item, gap and progress of the current
  attachment, and with nothing else.
- Per origin, offsets only rise: what is at or below the watermark has been seen, and is suppressed and counted.
- A gap is told unless the watermarks have all of it. It raises them, and the token.
- A change of the list of subscriptions counts when the edge acknowledges it; in a hand-over, when the target has it as
  well.
- The queue of an application that holds its items is bounded: above a high mark the edge is told to pause, below half
  of it to go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from plimsoll.core import predicates
from plimsoll.core import records as r
from plimsoll.core.client.acknowledging import Changes
from plimsoll.core.client.attachment import Attachment, State
from plimsoll.core.client.errors import ClosedError
from plimsoll.core.client.events import (
    Attached,
    Delivery,
    Detached,
    Failed,
    GapNotice,
    Lapsed,
    SubscriberEvent,
    SubscriptionRefused,
)
from plimsoll.core.client.tally import Tally
from plimsoll.core.link import NEVER
from plimsoll.core.wire import OwnerEpoch, Scalar, Token

if TYPE_CHECKING:
    from plimsoll.core.client.machine import Client
    from plimsoll.core.client.moving import Handover

Origin = tuple[str, int]
ORIGINS_AT_MOST = 1024
"""So many origins have a watermark; the one that was met first goes first."""

RECORD_BYTES = 64
"""What an item in the queue takes beside its own bytes, for the bound of the queue."""


class Phase(Enum):
    """`WAITING`: until it is time to try again. `JOINING`: asks the head for an edge. `ATTACHED`: an edge is chosen."""

    WAITING = "waiting"
    JOINING = "joining"
    ATTACHED = "attached"
    CLOSED = "closed"
    FAILED = "failed"


class Subscriber:
    """One subscriber of a client. Made by `Client.subscriber`."""

    __slots__ = (
        "_client", "again", "asked_since", "attempts", "changes", "conflicts", "counts", "current", "depth",
        "depth_bytes", "duplicates", "even_version", "events", "exclude", "failed", "handover", "high_bytes",
        "high_records", "holds", "is_held", "is_paused", "items", "name", "number", "phase", "policy", "position",
        "prefer", "rising", "session", "stream", "tallied_from", "tally", "wake", "watermarks",
    )  # fmt: skip

    def __init__(self, client: Client, name: str, policy: r.Policy, token: Token | None, prefer: str) -> None:
        self._client, self.name, self.policy, self.prefer = client, name, policy, prefer
        self.events: list[SubscriberEvent] = []
        self.stream: Origin | None = (token[0], token[1]) if token else None
        self.position = token[2] if token else 0
        self.watermarks: dict[Origin, int] = {}
        self.number = 0
        self.changes = Changes()
        self.phase = Phase.WAITING
        self.current: Attachment | None = None
        self.handover: Handover | None = None
        self.session: str | None = None
        self.asked_since = NEVER
        self.exclude: dict[str, None] = {}
        self.attempts = self.conflicts = 0
        self.wake = 0
        self.again = False
        self.failed: Failed | None = None
        self.items = self.duplicates = 0
        self.depth = self.depth_bytes = 0
        self.high_records, self.high_bytes = client.limits.queue_records, client.limits.queue_bytes
        self.holds = self.is_held = self.is_paused = False
        self.counts: Counter[str] = Counter()
        self.tally: Tally | None = None
        self.tallied_from = self.even_version = 0
        self.rising = (0, 0)

    # -- for the application

    def subscribe(self, text: str, options: Mapping[str, Scalar] | None = None) -> int:
        """Add a subscription, `[class,=,'STOCK'],[high,>,25.0]`; returns its id. `Acknowledged` says when it counts.

        Raises:
            ParseError: naming the column, what was found there and what was expected.
            ClosedError: the subscriber is closed or has failed.

        """
        self._check_open()
        predicates.parse(text)
        self._change()
        return self.changes.add(text, options or {})

    def unsubscribe(self, subscription_id: int) -> None:
        """Withdraw a subscription. `Forgotten` says when the withdrawal has arrived.

        Raises:
            KeyError: there is no such subscription.
            ClosedError: the subscriber is closed or has failed.

        """
        self._check_open()
        if subscription_id not in self.subscriptions:
            raise KeyError(f"subscriber {self.name!r} has no subscription {subscription_id}")
        self._change()
        self.changes.withdraw(subscription_id)

    def pause(self) -> None:
        """Take nothing until `resume`; what comes meanwhile meets the subscriber's policy at its edge."""
        self.is_paused = True
        self._steer()

    def resume(self) -> None:
        """Go on after `pause`."""
        self.is_paused = False
        self._steer()

    def close(self, *, withdraw: bool = True) -> None:
        """Detach. With `withdraw` for good; without, the broker keeps its place for a while, for its token."""
        if self.phase in (Phase.CLOSED, Phase.FAILED):
            return
        if self.current is not None:
            self._client.say_detach(self.current, withdraw=withdraw)
        self._client.detach(self, withdraw=withdraw)
        self.phase = Phase.CLOSED
        self._client.drop_subscriber(self)

    def consumed(self, items: int) -> None:
        """The application has dealt with so many deliveries and gaps. Only for a subscriber that `holds`."""
        if items >= self.depth:
            self.depth = self.depth_bytes = 0
        else:
            self.depth_bytes -= self.depth_bytes * items // self.depth
            self.depth -= items
        if self.is_held and self.depth * 2 <= self.high_records and self.depth_bytes * 2 <= self.high_bytes:
            self.is_held = False
            self._steer()

    @property
    def subscriptions(self) -> dict[int, r.SubscriptionItem]:
        """What it asks for, by id."""
        return self.changes.items

    @property
    def version(self) -> int:
        """Of the list of subscriptions."""
        return self.changes.version

    @property
    def epoch(self) -> OwnerEpoch:
        """Its owner epoch: whoever serves it with a lower one is no longer its owner."""
        return self._client.incarnation, self.number

    @property
    def token(self) -> Token | None:
        """Where to go on from; None before the first attachment."""
        return None if self.stream is None else (*self.stream, self.position)

    @property
    def is_acknowledged(self) -> bool:
        """Whether every change of subscriptions has been acknowledged, though perhaps not by heads that are down."""
        return not self.changes.unacked and not self.changes.leaving

    @property
    def is_settled(self) -> bool:
        """Whether every change of subscriptions has arrived everywhere."""
        return self.is_acknowledged and not self.changes.unreached

    def statistics(self) -> dict[str, Any]:
        """Counters since the start, and where it stands."""
        attachment = self.current
        return {
            "delivered": self.items - self.counts["gaps"],
            "duplicates_suppressed": self.duplicates,
            **{k: self.counts[k] for k in ("gaps", "gaps_known", "reconnects", "redirects", "moves", "pauses")},
            "queued": self.depth,
            "queued_bytes": self.depth_bytes,
            "state": self.phase.value if attachment is None else attachment.state.value,
            "edge": "" if attachment is None else attachment.port.edge,
            "rtt_seconds": 0.0 if attachment is None else attachment.port.link.rtt_seconds,
            "token": self.token,
            "watermarks": self.marks(),
            "subscriptions": len(self.subscriptions),
            "version": self.version,
        }

    def marks(self) -> list[Token]:
        """The watermarks as triples (head, head epoch, offset)."""
        return [(head, epoch, offset) for (head, epoch), offset in self.watermarks.items()]

    # -- the stream

    def take(self, attachment: Attachment, item: r.PubOpen | r.Gap, size: int, now: float) -> None:
        """An item of the stream. Hot path: the case of a publication comes first."""
        if type(item) is not r.PubOpen:
            self.on_gap(attachment, item, now)  # type: ignore[arg-type]
            return
        origin = (item.head, item.epoch)
        seen = self.watermarks.get(origin, 0)
        if item.offset > seen:
            self.watermarks[origin] = item.offset
            if not seen:
                self._bound_watermarks()
            if not self.events:
                self._client.ready[self] = None
            self.events.append(Delivery(item, attachment.stream, now))
            self.items += 1
            if self.holds:
                self._grow(size)
        else:
            self.duplicates += 1
        if attachment is self.current and item.position > self.position:
            self.position = item.position

    def take_tallied(self, attachment: Attachment, item: r.PubOpen | r.Gap, size: int, now: float) -> None:
        """The same while it moves: what the application is given is counted beside."""
        before = self.items
        self.take(attachment, item, size, now)
        is_given = type(item) is r.PubOpen and self.items != before
        if is_given and self.tally is not None and not self.tally.saw(item):  # type: ignore[arg-type]
            self.end_tally()

    def _grow(self, size: int) -> None:
        """One more item in the queue."""
        self.depth += 1
        self.depth_bytes += size + RECORD_BYTES
        if not self.is_held and (self.depth > self.high_records or self.depth_bytes > self.high_bytes):
            self.is_held = True
            self._steer()

    def on_gap(self, attachment: Attachment, gap: r.Gap, now: float) -> None:
        """Something between here and the gap's end may be missing."""
        marks = self.watermarks
        if gap.last and all(marks.get((head, epoch), 0) >= offset for head, epoch, offset in gap.last):
            self.counts["gaps_known"] += 1
        else:
            self.counts["gaps"] += 1
            self.items += 1
            self.tell(GapNotice(gap, now))
            if self.holds:
                self._grow(RECORD_BYTES * len(gap.last))
        for head, epoch, offset in gap.last:
            if offset > marks.get((head, epoch), 0):
                marks[head, epoch] = offset
        self._bound_watermarks()
        if attachment is self.current:
            self._place(attachment, (gap.head, gap.epoch), gap.high)

    def on_progress(self, attachment: Attachment, position: int) -> None:
        if attachment is self.current and position > self.position:
            self.position = position
        if attachment is self.current and self.even_version < attachment.acked:
            self._rise(attachment.acked, position)

    def _rise(self, version: int, position: int) -> None:
        """What is due for a changed list begins at a place that is known to the head alone, ahead of SUBACK.

        A second PROGRESS behind it lies behind that place, too: from there on all that matches the list is due.
        """
        known, before = self.rising
        if version != known:
            self.rising = (version, position)
        elif position > before:
            self.even_version = version

    def _place(self, attachment: Attachment, stream: Origin, position: int) -> None:
        if stream != self.stream:
            self.stream, self.position = stream, position
        else:
            self.position = max(self.position, position)
        attachment.stream = stream

    def _bound_watermarks(self) -> None:
        while len(self.watermarks) > ORIGINS_AT_MOST:
            del self.watermarks[next(iter(self.watermarks))]

    # -- the attachment

    def resume_record(self, attachment: Attachment) -> r.Resume:
        """The whole state of this subscriber, for an edge that knows nothing of it. Raises the owner epoch by 2."""
        self.number += 2
        self.changes.said()
        self.even_version = self.version
        return r.Resume(
            attachment.id, self.name, self.epoch, self.version, list(self.subscriptions.values()), self.policy,
            self.token, self.marks(), self.session,
        )  # fmt: skip

    def attach_item(self, attachment: Attachment) -> r.AttachItem:
        """What the target of a hand-over needs to know: the epoch is the one that this subscriber has from END on."""
        epoch = (self._client.incarnation, self.number + 1)
        return r.AttachItem(
            attachment.id, self.name, epoch, self.version, list(self.subscriptions.values()), self.policy
        )  # fmt: skip

    def on_resumed(self, attachment: Attachment, resumed: r.Resumed, now: float) -> None:
        self.session = None
        self._served(attachment, (resumed.head, resumed.epoch))
        if resumed.gap is not None:
            self.on_gap(attachment, resumed.gap, now)
        if resumed.lapsed and self.changes.void():
            self.tell(Lapsed())
        self.stream, self.position = attachment.stream, resumed.position
        self._steer()

    def take_over(self, attachment: Attachment, token: Token) -> None:
        """The target of a hand-over is the current attachment from here on; the stream goes on behind `token`."""
        self.current = attachment
        self.set_token(token)
        self._served(attachment, (token[0], token[1]))
        self._steer()

    def set_token(self, token: Token) -> None:
        self.stream, self.position = (token[0], token[1]), token[2]

    def _served(self, attachment: Attachment, stream: Origin) -> None:
        self.attempts = self.conflicts = 0
        self.asked_since = NEVER
        self.exclude.clear()
        attachment.state, attachment.stream = State.LIVE, stream
        self.tell(Attached(attachment.port.edge, stream[0], self.again))
        self.again = True

    def _steer(self) -> None:
        """Tell the edge to pause or to go on, if that has changed."""
        attachment = self.current
        if attachment is None or not attachment.is_asked:
            return
        paused = self.is_paused or self.is_held
        if paused != attachment.paused:
            attachment.paused = paused
            self.counts["pauses"] += paused
            record = r.Pause(attachment.id) if paused else r.Continue(attachment.id)
            self._client.say(attachment.port.link, record)

    # -- moving

    @property
    def taking(self) -> Callable[[Attachment, r.PubOpen | r.Gap, int, float], None]:
        """What deals with its deliveries now."""
        return self.take if self.tally is None else self.take_tallied

    def begin_tally(self, session: str) -> None:
        """Count from here on what the application is given, if it can be said what is due: with a list that counts."""
        self.tally = None
        is_even = self.is_acknowledged and self.even_version == self.version
        if self.token is not None and is_even and len(self.watermarks) <= r.COUNTED_MARKS_AT_MOST:
            self.tally = Tally(session, self.token, self.marks(), self.version)
            self.tallied_from = self.duplicates
        self._retake()

    def end_tally(self) -> None:
        self.tally = None
        self._retake()

    def tally_of(self, session: str) -> Tally | None:
        """What was counted of this session, if its list is still the same."""
        tally = self.tally
        return tally if tally is not None and (tally.session, tally.version) == (session, self.version) else None

    def _retake(self) -> None:
        target = self.handover.next if self.handover is not None else None
        for attachment in (self.current, target):
            if attachment is not None:
                attachment.take = self.taking

    # -- subscriptions

    def _change(self) -> None:
        """Begin a change, or go on with the one that has not been said yet."""
        if self.changes.begin(gather=self.current is not None and self.current.is_asked):
            self._client.changed[self] = None

    def say_changes(self) -> None:
        """At the end of a round: all its changes as one, to every edge that has the list."""
        said = self.changes.take()
        if said is None:
            return
        target = self.handover.next if self.handover is not None else None
        for attachment in (self.current, target):
            if attachment is not None and attachment.is_asked:
                self._client.say(attachment.port.link, r.Subs(attachment.id, self.version, *said))

    def on_suback(self, attachment: Attachment, suback: r.Suback) -> None:
        if suback.version >= attachment.acked:
            attachment.acked, attachment.unreached = suback.version, tuple(suback.unreached)
        self.settle()

    def settle(self) -> None:
        """Tell which changes count: those that the edge has acknowledged, and the target of a hand-over has."""
        current = self.current
        if current is None:
            return
        version = current.acked if self.handover is None else self.handover.counted(current.acked)
        for event in self.changes.settle(version, current.unreached, current.stream[0]):
            self.tell(event)

    def on_subrefused(self, refused: r.SubRefused) -> None:
        if not self.changes.drop(refused.id):
            return
        self.counts["subscriptions_refused"] += 1
        self.tell(SubscriptionRefused(refused.id, refused.text))
        if self.handover is not None and self.handover.is_asked:
            # The target may have taken it.
            self._change()
            self.changes.remove(refused.id)

    # -- the end

    def lose(self, edge: str, reason: str) -> None:
        """The attachment is over; the machine will look for another."""
        self.current = None
        self.changes.said()
        self.tell(Detached(edge, reason))

    def fail(self, code: str, text: str) -> None:
        """The end of this subscriber."""
        self.failed = Failed(code, text)
        self.phase = Phase.FAILED
        self.tell(self.failed)
        self._client.drop_subscriber(self)

    def tell(self, event: SubscriberEvent) -> None:
        self.events.append(event)
        self._client.ready[self] = None

    def _check_open(self) -> None:
        if self.phase is Phase.CLOSED:
            raise ClosedError(f"subscriber {self.name!r} is closed")
        if self.failed is not None:
            raise ClosedError(self.failed.text)

    def start_from(self, marks: Iterable[Token]) -> None:
        """Take over the watermarks of an earlier life."""
        self.watermarks = {(head, epoch): offset for head, epoch, offset in marks}
