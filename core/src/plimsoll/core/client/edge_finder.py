"""How subscribers find an edge: they wait a little, ask a head, attach, and go on from their token.

Rules of the place:
- A subscriber whose attachment fails tries again, each time later and each in its own time: a crowd must not come back
  at once. Edges that have failed since the last attachment are not asked for.
- A subscriber with a token asks for an edge of the head that the token names, since a position counts in that head's
  log alone. Only when there is none for `stream_seconds` will any edge do, of any cluster, at the price of a gap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import Protocol

from plimsoll.core.client.attachment import ClientAttachment, ClientAttachmentState
from plimsoll.core.client.edge_ports import EdgePorts
from plimsoll.core.client.events import Detached
from plimsoll.core.client.limits import ClientLimits
from plimsoll.core.client.subscriber import Attachment, ClientSubscriber, Handover, Port, SubscriberPhase
from plimsoll.core.client.topic_division import TopicDivision
from plimsoll.core.protocol import messages as msg
from plimsoll.core.transport.link import NEVER, Link

RANDOM_STEPS = 1 << 16
EXCLUDED_AT_MOST = 3


class DetachingDirectory(Protocol):
    """Takes subscribers off their edges; `SubscribersAtEdges` is one."""

    def detach(self, subscriber: ClientSubscriber) -> None: ...


class FinderHost(Protocol):
    """The edge finder's interface to the client."""

    now: float
    limits: ClientLimits
    new_id: Callable[[], int]
    counters: Counter[str]
    refusal: str
    subscribers: dict[str, ClientSubscriber]
    division: TopicDivision

    def guard(self, owner: ClientSubscriber, action: Callable[[], object], /) -> None: ...
    @property
    def home_link(self) -> Link | None: ...

    @property
    def subscribers_at_edges(self) -> DetachingDirectory: ...

    def say(self, link: Link, record: msg.FromClient) -> None: ...


class EdgeFinder:
    """Looks for edges on behalf of all subscribers of a client."""

    __slots__ = ("_client", "_last_attachment", "_last_timer", "_ports", "_timers")

    def __init__(self, client: FinderHost, ports: EdgePorts) -> None:
        self._client, self._ports = client, ports
        self._timers: list[tuple[float, int, ClientSubscriber]] = []
        self._last_timer = self._last_attachment = 0

    # -- time

    def on_tick(self) -> None:
        while self._timers and self._timers[0][0] <= self._client.now:
            _, timer, subscriber = heappop(self._timers)
            if subscriber.wake == timer:
                self._client.guard(subscriber, partial(self._wake, subscriber))

    def wake_at(self) -> float:
        return self._timers[0][0] if self._timers else NEVER

    def begin(self, subscriber: ClientSubscriber) -> None:
        """Look for an edge from the next round on."""
        self._timer(subscriber, 0.0)

    def _timer(self, subscriber: ClientSubscriber, seconds: float) -> None:
        """Wake this subscriber after this time, and no longer at the time set before."""
        self._last_timer += 1
        subscriber.wake = self._last_timer
        heappush(self._timers, (self._client.now + seconds, self._last_timer, subscriber))

    def _wake(self, subscriber: ClientSubscriber) -> None:
        if subscriber.current is None:
            self.join(subscriber)
        elif subscriber.current.state is not ClientAttachmentState.LIVE:
            self._give_up(subscriber.current)

    # -- failing

    def again(self, subscriber: ClientSubscriber, reason: str, *, exclude: str = "", at_once: bool = False) -> None:
        """The attachment has failed: wait a little, ask for another edge, go on from the token."""
        edge = subscriber.current.port.edge if subscriber.current is not None else ""
        self._client.subscribers_at_edges.detach(subscriber)
        subscriber.subscription_list.said()
        subscriber.tell(Detached(edge, reason))
        if subscriber.again:
            subscriber.counts["reconnects"] += 1
        if exclude:
            subscriber.exclude[exclude] = None
            while len(subscriber.exclude) > EXCLUDED_AT_MOST:
                del subscriber.exclude[next(iter(subscriber.exclude))]
        subscriber.phase = SubscriberPhase.WAITING
        self._timer(subscriber, 0.0 if at_once else self._backoff(subscriber))

    def _backoff(self, subscriber: ClientSubscriber) -> float:
        """A delay that doubles with each attempt up to a bound, with jitter: a crowd must not come back at once."""
        limits = self._client.limits
        longest = min(limits.backoff_max_seconds, limits.backoff_seconds * 2.0 ** min(subscriber.attempts, 16))
        subscriber.attempts += 1
        return longest * (0.5 + self._random() / 2)

    def _random(self) -> float:
        return (self._client.new_id() % RANDOM_STEPS) / RANDOM_STEPS

    def _give_up(self, attachment: Attachment) -> None:
        port = attachment.port
        self._ports.say_detach(attachment)
        self.again(attachment.subscriber, f"edge {port.edge} did not answer", exclude=port.edge)
        if not port.link.open and not port.attachments:
            self._ports.close(port, "no answer")

    def go_on(self, subscriber: ClientSubscriber, handover: Handover | None) -> None:
        """A hand-over has ended and its target is not attached: ask it if it may be there, else any of its head."""
        if handover is None:
            self.again(subscriber, "moved", at_once=True)
        elif not handover.endpoint:
            self.again(subscriber, "moved", exclude=handover.edge, at_once=True)
        else:
            self.again(subscriber, "moved", at_once=True)
            self.attach(subscriber, handover.edge, handover.endpoint, handover.public_key)

    # -- asking a head

    def join(self, subscriber: ClientSubscriber) -> None:
        """Ask the head for an edge; it is asked again when its link is new, and after `answer_seconds`."""
        client = self._client
        if client.division.leaves_nothing(subscriber):
            return
        subscriber.phase = SubscriberPhase.JOINING
        self._timer(subscriber, client.limits.answer_seconds)
        if (link := client.home_link) is not None:
            head = self._head_of(subscriber)
            exclude, location = list(subscriber.exclude), subscriber.location
            client.say(link, msg.Join(subscriber.name, exclude, subscriber.prefer, head, location))

    def _head_of(self, subscriber: ClientSubscriber) -> str:
        """The head whose edge to ask for; empty: any head."""
        if subscriber.stream.origin is None:
            return subscriber.first_head
        now = self._client.now
        if subscriber.asked_since == NEVER:
            subscriber.asked_since = now
        return subscriber.stream.origin[0] if self._insists(subscriber) else ""

    def _insists(self, subscriber: ClientSubscriber) -> bool:
        return self._client.now - subscriber.asked_since < self._client.limits.stream_seconds

    def on_placed(self, placed: msg.Placed) -> None:
        subscriber = self._client.subscribers.get(placed.subscriber)
        if subscriber is not None and subscriber.phase is SubscriberPhase.JOINING:
            if self._insists(subscriber):
                # the head of the stream has answered, even if this edge fails
                subscriber.asked_since = NEVER
            self._client.division.learn(placed.topic_attribute)
            if not self._client.division.leaves_nothing(subscriber):
                self.attach(subscriber, placed.edge, placed.endpoint, placed.public_key)

    def on_unplaced(self, unplaced: msg.Unplaced) -> None:
        subscriber = self._client.subscribers.get(unplaced.subscriber)
        if subscriber is not None and subscriber.phase is SubscriberPhase.JOINING:
            self._client.counters["unplaced"] += 1
            self._client.refusal = unplaced.text
            subscriber.phase = SubscriberPhase.WAITING
            self._timer(subscriber, max(0.0, unplaced.retry_seconds) * (1.0 + self._random()))

    # -- attaching

    def new_attachment(self, subscriber: ClientSubscriber, port: Port) -> Attachment:
        self._last_attachment += 1
        attachment = ClientAttachment(self._last_attachment, subscriber, port, subscriber.stream.taker)
        port.attachments[attachment.id] = attachment
        return attachment

    def attach(self, subscriber: ClientSubscriber, edge: str, endpoint: str, public_key: str) -> None:
        port = self._ports.open(edge, endpoint, public_key)
        attachment = subscriber.current = self.new_attachment(subscriber, port)
        subscriber.phase = SubscriberPhase.ATTACHED
        self._timer(subscriber, self._client.limits.attach_seconds)
        if port.link.was_open:
            self.resume(attachment)

    def resume(self, attachment: Attachment) -> None:
        attachment.state = ClientAttachmentState.RESUMING
        self._timer(attachment.subscriber, self._client.limits.answer_seconds)
        self._client.say(attachment.port.link, attachment.subscriber.resume_record(attachment))
