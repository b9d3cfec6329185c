"""How subscribers find an edge: they wait a little, ask a head, attach, and go on from their token.

Laws of the place:
- An attachment that fails is looked for again, each time later and each in its own time: a crowd must not come back at
  once. Edges that have failed since the last attachment are not asked for.
- Whoever has a token asks for an edge of the head that the token names: a position counts in its log alone. Only when
  there is none for `stream_seconds` any edge will do, at the price of a gap.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from plimsoll.core import records as r
from plimsoll.core.client.attachment import Attachment, Port, State
from plimsoll.core.client.moving import Handover
from plimsoll.core.client.subscriber import Phase, Subscriber
from plimsoll.core.link import NEVER

if TYPE_CHECKING:
    from plimsoll.core.client.machine import Client

RANDOM_STEPS = 1 << 16
EXCLUDED_AT_MOST = 3


class Seeker:
    """Looks for edges on behalf of all subscribers of a client."""

    __slots__ = ("_client", "_last_attachment", "_last_timer", "_timers")

    def __init__(self, client: Client) -> None:
        self._client = client
        self._timers: list[tuple[float, int, Subscriber]] = []
        self._last_timer = self._last_attachment = 0

    # -- time

    def on_tick(self) -> None:
        while self._timers and self._timers[0][0] <= self._client.now:
            _, timer, subscriber = heappop(self._timers)
            if subscriber.wake == timer:
                self._wake(subscriber)

    def wake_at(self) -> float:
        return self._timers[0][0] if self._timers else NEVER

    def begin(self, subscriber: Subscriber) -> None:
        """It looks for an edge from the next round on."""
        self._timer(subscriber, 0.0)

    def _timer(self, subscriber: Subscriber, seconds: float) -> None:
        """Wake this subscriber after so many seconds, and not when it was to be woken before."""
        self._last_timer += 1
        subscriber.wake = self._last_timer
        heappush(self._timers, (self._client.now + seconds, self._last_timer, subscriber))

    def _wake(self, subscriber: Subscriber) -> None:
        if subscriber.current is None:
            self.join(subscriber)
        elif subscriber.current.state is not State.LIVE:
            self._give_up(subscriber.current)

    # -- failing

    def again(self, subscriber: Subscriber, reason: str, *, exclude: str = "", at_once: bool = False) -> None:
        """The attachment has failed: wait a little, ask for another edge, go on from the token."""
        edge = subscriber.current.port.edge if subscriber.current is not None else ""
        self._client.detach(subscriber)
        subscriber.lose(edge, reason)
        if subscriber.again:
            subscriber.counts["reconnects"] += 1
        if exclude:
            subscriber.exclude[exclude] = None
            while len(subscriber.exclude) > EXCLUDED_AT_MOST:
                del subscriber.exclude[next(iter(subscriber.exclude))]
        subscriber.phase = Phase.WAITING
        self._timer(subscriber, 0.0 if at_once else self._backoff(subscriber))

    def _backoff(self, subscriber: Subscriber) -> float:
        """Doubled with each attempt up to a bound, and spread: a crowd must not come back at once."""
        limits = self._client.limits
        longest = min(limits.backoff_max_seconds, limits.backoff_seconds * 2.0 ** min(subscriber.attempts, 16))
        subscriber.attempts += 1
        return longest * (0.5 + self._random() / 2)

    def _random(self) -> float:
        return (self._client.new_id() % RANDOM_STEPS) / RANDOM_STEPS

    def _give_up(self, attachment: Attachment) -> None:
        port = attachment.port
        self._client.say_detach(attachment)
        self.again(attachment.subscriber, f"edge {port.edge} did not answer", exclude=port.edge)
        if not port.link.open and not port.attachments:
            self._client.close_port(port, "no answer")

    def go_on(self, subscriber: Subscriber, handover: Handover | None) -> None:
        """A hand-over has ended, and the target is not attached: ask it, if it may be there, or any of its cluster."""
        if handover is None:
            self.again(subscriber, "moved", at_once=True)
        elif not handover.endpoint:
            self.again(subscriber, "moved", exclude=handover.edge, at_once=True)
        else:
            self.again(subscriber, "moved", at_once=True)
            self.attach(subscriber, handover.edge, handover.endpoint, handover.public_key)

    # -- asking a head

    def join(self, subscriber: Subscriber) -> None:
        """Ask the head for an edge; it is asked again when its link is new, and after `answer_seconds`."""
        client = self._client
        subscriber.phase = Phase.JOINING
        self._timer(subscriber, client.limits.answer_seconds)
        if (link := client.home_link) is not None:
            head = self._head_of(subscriber)
            client.say(link, r.Join(subscriber.name, list(subscriber.exclude), subscriber.prefer, head))

    def _head_of(self, subscriber: Subscriber) -> str:
        """Whose edge to ask for: empty for any."""
        if subscriber.stream is None:
            return ""
        now = self._client.now
        if subscriber.asked_since == NEVER:
            subscriber.asked_since = now
        return subscriber.stream[0] if self._insists(subscriber) else ""

    def _insists(self, subscriber: Subscriber) -> bool:
        return self._client.now - subscriber.asked_since < self._client.limits.stream_seconds

    def on_placed(self, placed: r.Placed) -> None:
        subscriber = self._client.subscribers.get(placed.subscriber)
        if subscriber is not None and subscriber.phase is Phase.JOINING:
            if self._insists(subscriber):
                # The head of the stream is there, whatever becomes of this edge.
                subscriber.asked_since = NEVER
            self.attach(subscriber, placed.edge, placed.endpoint, placed.public_key)

    def on_unplaced(self, unplaced: r.Unplaced) -> None:
        subscriber = self._client.subscribers.get(unplaced.subscriber)
        if subscriber is not None and subscriber.phase is Phase.JOINING:
            self._client.counters["unplaced"] += 1
            self._client.refusal = unplaced.text
            subscriber.phase = Phase.WAITING
            self._timer(subscriber, max(0.0, unplaced.retry_seconds) * (1.0 + self._random()))

    # -- attaching

    def new_attachment(self, subscriber: Subscriber, port: Port) -> Attachment:
        self._last_attachment += 1
        attachment = port.attachments[self._last_attachment] = Attachment(self._last_attachment, subscriber, port)
        return attachment

    def attach(self, subscriber: Subscriber, edge: str, endpoint: str, public_key: str) -> None:
        port = self._client.port_to(edge, endpoint, public_key)
        attachment = subscriber.current = self.new_attachment(subscriber, port)
        subscriber.phase = Phase.ATTACHED
        self._timer(subscriber, self._client.limits.attach_seconds)
        if port.link.was_open:
            self.resume(attachment)

    def resume(self, attachment: Attachment) -> None:
        attachment.state = State.RESUMING
        self._timer(attachment.subscriber, self._client.limits.answer_seconds)
        self._client.say(attachment.port.link, attachment.subscriber.resume_record(attachment))
