"""A logical subscriber: its subscriptions, its place in the stream, and what it has seen.

Laws of the place:
- The token (head, head epoch, position) says where to go on: it rises with each item, gap and progress of the current
  attachment, and with nothing else.
- Per origin, offsets only rise: what is at or below the watermark has been seen, and is suppressed and counted.
- A gap is told unless the watermarks have all of it. It raises them, and the token.
- The subscriber owns its list of subscriptions; each change has a version, and counts when the edge acknowledges it.
- The queue of an application that holds its items is bounded: above a high mark the edge is told to pause, below half
  of it to go on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from plimsoll.core import predicates
from plimsoll.core import records as r
from plimsoll.core.client.attachment import Attachment, State
from plimsoll.core.client.errors import ClosedError
from plimsoll.core.client.events import (
    Acknowledged,
    Attached,
    Delivery,
    Detached,
    Failed,
    Forgotten,
    GapNotice,
    Lapsed,
    SubscriberEvent,
    SubscriptionRefused,
)
from plimsoll.core.wire import Scalar, Token

if TYPE_CHECKING:
    from plimsoll.core.client.machine import Client

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
        "_acknowledged", "_changed", "_client", "_last_id", "_leaving", "_removed", "_unacked", "_unreached", "again",
        "attempts", "conflicts", "counts", "current", "depth", "depth_bytes", "duplicates", "events", "exclude",
        "failed", "high_bytes", "high_records", "holds", "is_held", "is_paused", "items", "name", "number", "phase",
        "policy", "position", "prefer", "session", "stream", "subscriptions", "version", "wake", "watermarks",
    )  # fmt: skip

    def __init__(self, client: Client, name: str, policy: r.Policy, token: Token | None, prefer: str) -> None:
        self._client, self.name, self.policy, self.prefer = client, name, policy, prefer
        self.events: list[SubscriberEvent] = []
        self.stream: Origin | None = (token[0], token[1]) if token else None
        self.position = token[2] if token else 0
        self.watermarks: dict[Origin, int] = {}
        self.number = 0
        self.version = 1
        self.subscriptions: dict[int, r.SubscriptionItem] = {}
        self._last_id = 0
        self._changed: list[r.SubscriptionItem] | None = None
        self._removed: list[int] = []
        self._unacked: dict[int, int] = {}
        self._leaving: dict[int, int] = {}
        self._unreached: tuple[int, ...] = ()
        self._acknowledged = 0
        self.phase = Phase.WAITING
        self.current: Attachment | None = None
        self.session: str | None = None
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

    # -- for the application

    def subscribe(self, text: str, options: Mapping[str, Scalar] | None = None) -> int:
        """Add a subscription, `[class,=,'STOCK'],[high,>,25.0]`; returns its id. `Acknowledged` says when it counts.

        Raises:
            ParseError: naming the column, what was found there and what was expected.
            ClosedError: the subscriber is closed or has failed.

        """
        self._check_open()
        predicates.parse(text)
        self._last_id += 1
        item = r.SubscriptionItem(self._last_id, text, dict(options or {}))
        self._change()
        self.subscriptions[item.id] = item
        self._unacked[item.id] = self.version
        if self._changed is not None:
            self._changed.append(item)
        return item.id

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
        del self.subscriptions[subscription_id]
        self._unacked.pop(subscription_id, None)
        self._leaving[subscription_id] = self.version
        if self._changed is not None:
            self._changed = [item for item in self._changed if item.id != subscription_id]
            self._removed.append(subscription_id)

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
        attachment = self.current
        if attachment is not None and attachment.state is not State.OPENING:
            self._client.say(attachment.port.link, r.Detach(attachment.id, withdraw))
        self._client.detach(self)
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
    def token(self) -> Token | None:
        """Where to go on from; None before the first attachment."""
        return None if self.stream is None else (*self.stream, self.position)

    @property
    def is_acknowledged(self) -> bool:
        """Whether every change of subscriptions has been acknowledged, though perhaps not by heads that are down."""
        return not self._unacked and not self._leaving

    @property
    def is_settled(self) -> bool:
        """Whether every change of subscriptions has arrived everywhere."""
        return self.is_acknowledged and not self._unreached

    def statistics(self) -> dict[str, Any]:
        """Counters since the start, and where it stands."""
        attachment = self.current
        return {
            "delivered": self.items - self.counts["gaps"],
            "duplicates_suppressed": self.duplicates,
            **{k: self.counts[k] for k in ("gaps", "gaps_known", "reconnects", "redirects", "pauses")},
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
        self._changed, self._removed = None, []
        return r.Resume(
            attachment.id, self.name, (self._client.incarnation, self.number), self.version,
            list(self.subscriptions.values()), self.policy, self.token, self.marks(), self.session,
        )  # fmt: skip

    def on_resumed(self, attachment: Attachment, resumed: r.Resumed, now: float) -> None:
        self.attempts = self.conflicts = 0
        self.exclude.clear()
        self.session = None
        attachment.state = State.LIVE
        attachment.stream = (resumed.head, resumed.epoch)
        self.tell(Attached(attachment.port.edge, resumed.head, self.again))
        self.again = True
        if resumed.gap is not None:
            self.on_gap(attachment, resumed.gap, now)
        if resumed.lapsed and self._void_acknowledgements():
            self.tell(Lapsed())
        self.stream, self.position = attachment.stream, resumed.position
        self._steer()

    def _void_acknowledgements(self) -> bool:
        if not self._acknowledged:
            return False
        self._unacked = dict.fromkeys(self.subscriptions, self.version) | self._unacked
        self._unreached, self._acknowledged = (), 0
        return True

    def _steer(self) -> None:
        """Tell the edge to pause or to go on, if that has changed."""
        attachment = self.current
        if attachment is None or attachment.state is State.OPENING:
            return
        paused = self.is_paused or self.is_held
        if paused != attachment.paused:
            attachment.paused = paused
            self.counts["pauses"] += paused
            record = r.Pause(attachment.id) if paused else r.Continue(attachment.id)
            self._client.say(attachment.port.link, record)

    # -- subscriptions

    def _change(self) -> None:
        """Begin a change, or go on with the one that has not been said yet."""
        if self._changed is None:
            self.version += 1
            if self.current is not None and self.current.state is not State.OPENING:
                self._changed, self._removed = [], []
                self._client.changed[self] = None

    def say_changes(self) -> None:
        """At the end of a round: all its changes as one."""
        added, self._changed = self._changed, None
        attachment = self.current
        if added is not None and attachment is not None:
            self._client.say(attachment.port.link, r.Subs(attachment.id, self.version, added, self._removed))
        self._removed = []

    def on_suback(self, suback: r.Suback, head: str) -> None:
        self._acknowledged = max(self._acknowledged, suback.version)
        unreached = tuple(suback.unreached)
        known = () if unreached else tuple(i for i in self._unreached if i in self.subscriptions)
        new = tuple(i for i, version in self._unacked.items() if version <= suback.version)
        for i in new:
            del self._unacked[i]
        if ids := known + new:
            self.tell(Acknowledged(ids, head, unreached))
        self._unreached = self._unreached + new if unreached else ()
        gone = tuple(i for i, version in self._leaving.items() if version <= suback.version)
        for i in gone:
            del self._leaving[i]
        if gone:
            self.tell(Forgotten(gone))

    def on_subrefused(self, refused: r.SubRefused) -> None:
        if self.subscriptions.pop(refused.id, None) is not None:
            self._unacked.pop(refused.id, None)
            self.counts["subscriptions_refused"] += 1
            self.tell(SubscriptionRefused(refused.id, refused.text))

    # -- the end

    def lose(self, edge: str, reason: str) -> None:
        """The attachment is over; the machine will look for another."""
        self.current = None
        self._changed, self._removed = None, []
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
