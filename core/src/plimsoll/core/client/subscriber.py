"""A logical subscriber: the application's interface, its attachments, its stream and its list of subscriptions.

Rules of the place:
- `current` is the attachment that serves it; `handover.next` the one that will, if the hand-over is carried through.
- The owner epoch (incarnation, number) rises by 2 with each RESUME and by 1 with each END: so a RESUME beats the cut
  that it races with (docs/handover.md, 6, I4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Protocol

from plimsoll.core import predicates
from plimsoll.core.client.attachment import ClientAttachment, ClientAttachmentState, ClientHandover, EdgePort
from plimsoll.core.client.errors import ClosedError, ListFullError
from plimsoll.core.client.events import Attached, Delivery, Failed, Lapsed, SubscriberEvent
from plimsoll.core.client.limits import ClientLimits
from plimsoll.core.client.sendable import check_record, shown
from plimsoll.core.client.stream import SubscriberStream
from plimsoll.core.client.subscription_list import SubscriptionList
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.origins import Origin
from plimsoll.core.protocol.wire import LISTED_AT_MOST, OPTIONS_AT_MOST, OwnerEpoch, Scalar, Token
from plimsoll.core.transport.link import NEVER, Link

Attachment = ClientAttachment["ClientSubscriber"]
Handover = ClientHandover["ClientSubscriber"]
Port = EdgePort["ClientSubscriber"]


class SubscriberDirectory(Protocol):
    """Where subscribers are known by name; `SubscribersAtEdges` is one."""

    last_number: int
    changed: dict[ClientSubscriber, None]

    def close(self, subscriber: ClientSubscriber, *, withdraw: bool) -> None:
        """Detach it, and forget it."""

    def drop(self, subscriber: ClientSubscriber) -> None: ...


class SubscriberHost(Protocol):
    """The subscribers' interface to the client."""

    incarnation: int
    limits: ClientLimits

    @property
    def subscribers_at_edges(self) -> SubscriberDirectory: ...

    def mark_ready(self, owner: ClientSubscriber, /) -> None:
        """The subscriber has events to be taken."""

    def say(self, link: Link, record: msg.FromClient) -> None: ...

    def begin(self, subscriber: ClientSubscriber, /) -> None:
        """Look for an edge."""


UnitMark = tuple[str, int, int, int]
"""A watermark of a unit: head, head epoch, offset, and the hash of its topics."""


class TopicsOfSubscriber(Protocol):
    """The side of `SubscriberTopics` that its subscriber uses."""

    items: dict[int, msg.SubscriptionItem]

    @property
    def is_acknowledged(self) -> bool: ...
    def topics(self, subscription: predicates.Subscription, /) -> list[tuple[int, str]]: ...
    def subscribe(self, item: msg.SubscriptionItem, topics: list[tuple[int, str]], /) -> None: ...
    def unsubscribe(self, subscription_id: int, /) -> None: ...
    def lapsed(self, unit: ClientSubscriber, /) -> None: ...
    def token(self, own: Token | None, /) -> Token | None: ...
    def marks(self) -> list[UnitMark]: ...
    def unit_of(self, item: Delivery, /) -> ClientSubscriber | None: ...
    def each(self, do: Callable[[ClientSubscriber], None], /) -> None: ...
    def statistics(self, own: dict[str, Any], /) -> dict[str, Any]: ...


class SubscriberPhase(Enum):
    """`WAITING`: until it is time to try again. `JOINING`: asks the head for an edge. `ATTACHED`: an edge is chosen.

    `IDLE`: its units ask for all that it wants, so that it needs no edge itself.
    """

    WAITING = "waiting"
    JOINING = "joining"
    ATTACHED = "attached"
    IDLE = "idle"
    CLOSED = "closed"
    FAILED = "failed"


Since = Token | float
"""A position, or a time in seconds since 1970."""
FILTER_CHARACTERS_AT_MOST = 65_536
"""Of one subscription, as `text` in docs/protocol.md."""
Location = tuple[float, float]
"""Coordinates on a plane, in a unit that the edges of the fleet share."""


class ClientSubscriber:
    """One subscriber of a client. Made by `Client.subscriber`.

    `lease_seconds`: for how long it asks that its place be kept while it is away, and `kept_seconds` what the head has
    said to that; 0: as for any. `since`: where it begins, without a token.
    """

    __slots__ = (
        "_client", "again", "asked_since", "attempts", "conflicts", "counts", "current", "events", "exclude", "failed",
        "handover", "incarnation", "is_paused", "kept_seconds", "lease_seconds", "location", "name", "number", "phase",
        "policy", "prefer", "session", "since", "stream",
        "subscription_list", "topics", "unit_marks", "wake",
    )  # fmt: skip

    def __init__(
        self,
        client: SubscriberHost,
        name: str,
        policy: msg.Policy,
        token: Token | None,
        prefer: str,
        location: Location | None = None,
        lease_seconds: float = 0.0,
        since: Since | None = None,
    ) -> None:
        self.lease_seconds, self.since, self.kept_seconds = lease_seconds, since, 0.0
        self._client, self.name, self.policy, self.prefer, self.location = client, name, policy, prefer, location
        self.events: list[SubscriberEvent] = []
        self.counts: Counter[str] = Counter()
        self.stream = SubscriberStream(self, self.events, self.counts, client.limits, token)
        self.subscription_list = SubscriptionList(self, client.say)
        # Brokers remember the epochs of one of this name that has ended: this one begins behind all of them.
        self.incarnation, self.number = client.incarnation, client.subscribers_at_edges.last_number
        self.phase = SubscriberPhase.WAITING
        self.current: Attachment | None = None
        self.handover: Handover | None = None
        self.session: str | None = None
        self.is_paused = False
        self.failed: Failed | None = None
        self.topics: TopicsOfSubscriber | None = None
        self.unit_marks: list[UnitMark] = []
        # for the edge finder: the results of its attempts
        self.asked_since = NEVER
        self.exclude: dict[str, None] = {}
        self.attempts = self.conflicts = 0
        self.wake = 0
        self.again = False

    # -- for the application

    def subscribe(self, text: str, options: Mapping[str, Scalar] | None = None) -> int:
        """Add a subscription, `[class,=,'STOCK'],[high,>,25.0]`; returns its id. `Acknowledged` says when it counts.

        Raises:
            ParseError: naming the column, what was found there and what was expected.
            ListFullError: the list would no longer fit into one message, or this filter; it is unchanged.
            ValueError: no broker could read it, as with a lone surrogate.
            ClosedError: the subscriber is closed or has failed.

        """
        self._check_open()
        parsed = _checked_filter(text, options or {})
        if self.topics is not None and (parts := self.topics.topics(parsed)):
            item = self.subscription_list.reserve(text, options or {})
            self.topics.subscribe(item, parts)
            return item.id
        size, most = self.subscription_list.bytes_with(text, options or {}), self._client.limits.max_list_bytes
        if size > most:
            raise ListFullError(
                f"the subscriptions of subscriber {self.name!r} would take {size} bytes; at most {most} are sent in one"
                " message: withdraw some, or give the others to another subscriber"
            )
        if len(self.subscriptions) >= LISTED_AT_MOST:
            raise ListFullError(
                f"subscriber {self.name!r} has {LISTED_AT_MOST} subscriptions, as many as fit into one message:"
                " withdraw some, or give the others to another subscriber"
            )
        self.subscription_list.change()
        if self.phase is SubscriberPhase.IDLE or (self.phase is SubscriberPhase.WAITING and not self.wake):
            # With `since` it has waited for this: only what the list of RESUME has is served from there on.
            self._client.begin(self)
        return self.subscription_list.add(text, options or {})

    def unsubscribe(self, subscription_id: int) -> None:
        """Withdraw a subscription. `Forgotten` says when the withdrawal has arrived.

        Raises:
            KeyError: there is no such subscription.
            ClosedError: the subscriber is closed or has failed.

        """
        self._check_open()
        if subscription_id not in self.subscriptions:
            raise KeyError(f"subscriber {self.name!r} has no subscription {subscription_id}")
        if self.topics is not None and subscription_id in self.topics.items:
            self.topics.unsubscribe(subscription_id)
            return
        self.subscription_list.change()
        self.subscription_list.withdraw(subscription_id)

    def pause(self) -> None:
        """Take nothing until `resume`; meanwhile the edge applies the subscriber's policy."""
        self.is_paused = True
        if self.topics is not None:
            self.topics.each(lambda unit: unit.pause())
        self.steer()

    def resume(self) -> None:
        """Go on after `pause`."""
        self.is_paused = False
        if self.topics is not None:
            self.topics.each(lambda unit: unit.resume())
        self.steer()

    def close(self, *, withdraw: bool = True) -> None:
        """Detach. With `withdraw` for good; without, the broker keeps its place for a while, for its token."""
        if self.phase in (SubscriberPhase.CLOSED, SubscriberPhase.FAILED):
            return
        if self.topics is not None:
            self.topics.each(lambda unit: unit.close(withdraw=withdraw))
        self._client.subscribers_at_edges.close(self, withdraw=withdraw)
        self.phase = SubscriberPhase.CLOSED

    @property
    def subscriptions(self) -> dict[int, msg.SubscriptionItem]:
        """Its subscriptions by id."""
        own = self.subscription_list.items
        return own if self.topics is None else {**own, **self.topics.items}

    @property
    def epoch(self) -> OwnerEpoch:
        """Its owner epoch: an edge that serves it with a lower one is no longer its owner."""
        return self.incarnation, self.number

    @property
    def first_head(self) -> str:
        """The head whose edge to ask for without a token; empty: any head."""
        return ""

    @property
    def token(self) -> Token | None:
        """Where to go on; None before the first attachment."""
        if self.topics is None:
            return self.stream.token
        return self.topics.token(None if self.phase is SubscriberPhase.IDLE else self.stream.token)

    @property
    def is_acknowledged(self) -> bool:
        """Whether every change of subscriptions has been acknowledged, though perhaps not by heads that are down."""
        own = self.subscription_list.is_acknowledged
        return own if self.topics is None else own and self.topics.is_acknowledged

    def statistics(self) -> dict[str, Any]:
        """Counters since the start, and where it stands."""
        attachment, stream = self.current, self.stream
        found = {
            "delivered": stream.items - self.counts["gaps"],
            "duplicates_suppressed": stream.duplicates,
            **{k: self.counts[k] for k in ("gaps", "gaps_known", "reconnects", "redirects", "moves", "pauses")},
            "queued": stream.queue.depth,
            "queued_bytes": stream.queue.depth_bytes,
            "state": self.phase.value if attachment is None else attachment.state.value,
            "edge": "" if attachment is None else attachment.port.edge,
            "rtt_seconds": 0.0 if attachment is None else attachment.port.link.rtt_seconds,
            "token": self.token,
            "watermarks": stream.marks(),
            "subscriptions": len(self.subscriptions),
            "version": self.subscription_list.version,
            "lease_seconds": self.kept_seconds,
        }
        return found if self.topics is None else self.topics.statistics(found)

    # -- attachments

    def attachments(self) -> list[Attachment]:
        """The current one, and that at the target of a hand-over."""
        target = self.handover.next if self.handover is not None else None
        return [attachment for attachment in (self.current, target) if attachment is not None]

    def resume_record(self, attachment: Attachment) -> msg.Resume:
        """The whole state of this subscriber, for an edge that knows nothing of it. Raises the owner epoch by 2."""
        # By 2: above the n + 1 of a cut that this RESUME may race with (docs/handover.md, 6, I4).
        self.number += 2
        self.subscription_list.said()
        # The edge fetches from the log by this very list, so all that matches it is due from the token on.
        self.stream.even_version = self.subscription_list.version
        return msg.Resume(
            attachment.id, self.name, self.epoch, self.subscription_list.version,
            list(self.subscription_list.items.values()), self.policy, self.stream.token, self.stream.marks(),
            self.session, self.lease_seconds, None if self.stream.token is not None else self.since,
        )  # fmt: skip

    def attach_item(self, attachment: Attachment) -> msg.AttachItem:
        """This subscriber's state for the target of a hand-over, with the epoch that it will have from END on."""
        epoch = (self.incarnation, self.number + 1)
        return msg.AttachItem(
            attachment.id, self.name, epoch, self.subscription_list.version,
            list(self.subscription_list.items.values()), self.policy, self.lease_seconds,
        )  # fmt: skip

    def on_resumed(self, attachment: Attachment, resumed: msg.Resumed, now: float) -> None:
        self.session = None
        self.kept_seconds = resumed.lease_seconds
        if resumed.gap is None and self.stream.origin is not None:
            self.stream.log_goes_on(self.stream.origin, (resumed.head, resumed.epoch))
        self._served(attachment, (resumed.head, resumed.epoch))
        if resumed.gap is not None:
            self.stream.on_gap(attachment, resumed.gap, now)
        if resumed.lapsed and self.subscription_list.void():
            self.tell(Lapsed())
            if self.topics is not None:
                self.topics.lapsed(self)
        # Last: the stream goes on from the head's position, which overrides that of the gap.
        self.stream.set_token((*attachment.stream, resumed.position))
        self.steer()

    def take_over(self, attachment: Attachment, token: Token) -> None:
        """The target of a hand-over is the current attachment from here on; the stream goes on behind `token`."""
        self.current = attachment
        self.stream.set_token(token)
        self._served(attachment, (token[0], token[1]))
        self.steer()

    def _served(self, attachment: Attachment, origin: Origin) -> None:
        self.attempts = self.conflicts = 0
        self.asked_since = NEVER
        self.exclude.clear()
        attachment.state, attachment.stream = ClientAttachmentState.LIVE, origin
        self.tell(Attached(attachment.port.edge, origin[0], self.again))
        self.again = True

    def steer(self) -> None:
        """Send the edge PAUSE or CONTINUE if that has changed."""
        if self.topics is not None:
            self.topics.each(lambda unit: unit.steer())
        attachment = self.current
        if attachment is None or not attachment.is_asked:
            return
        paused = self.is_paused or self.stream.queue.is_held
        if paused != attachment.paused:
            attachment.paused = paused
            self.counts["pauses"] += paused
            self._client.say(attachment.port.link, msg.Pause(attachment.id) if paused else msg.Continue(attachment.id))

    def retake(self) -> None:
        for attachment in self.attachments():
            attachment.take = self.stream.taker

    # -- the end, and events

    def fail(self, code: str, text: str) -> None:
        """The end of this subscriber."""
        self.failed = Failed(code, text)
        self.phase = SubscriberPhase.FAILED
        self.tell(self.failed)
        self._client.subscribers_at_edges.drop(self)

    def tell(self, event: SubscriberEvent) -> None:
        self.events.append(event)
        self._client.mark_ready(self)

    def mark_ready(self) -> None:
        self._client.mark_ready(self)

    def mark_changed(self) -> None:
        self._client.subscribers_at_edges.changed[self] = None

    def _check_open(self) -> None:
        if self.phase is SubscriberPhase.CLOSED:
            raise ClosedError(f"subscriber {self.name!r} is closed")
        if self.failed is not None:
            raise ClosedError(self.failed.text)


def _checked_filter(text: str, options: Mapping[str, Scalar]) -> predicates.Subscription:
    """What a subscription asks for, if an edge can read it. Raises as `ClientSubscriber.subscribe`."""
    if len(text) > FILTER_CHARACTERS_AT_MOST:
        raise ListFullError(
            f"a filter of {len(text)} characters; at most {FILTER_CHARACTERS_AT_MOST} are taken: divide its values"
            " between several subscriptions"
        )
    if len(options) > OPTIONS_AT_MOST:
        raise ListFullError(f"a subscription with {len(options)} options; at most {OPTIONS_AT_MOST} are taken")
    parsed = predicates.parse(text)
    check_record(f"subscription {shown(text)}", msg.Subs(0, 0, [msg.SubscriptionItem(0, text, dict(options))], []))
    return parsed
