"""The machine of an application process: its links to heads and edges, and who uses them.

One link to a head, for publishing and for asking where to subscribe; one link to each edge that serves a subscriber
here. Frames of an edge are always taken and their credit is returned at once: a subscriber that does not keep up is
paused at its edge, alone, and never holds the others on its link.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, ClassVar, get_args

import msgspec
from msgspec import Raw

from plimsoll.core import records as r
from plimsoll.core import wire
from plimsoll.core.client import moving
from plimsoll.core.client.attachment import Attachment, Port, State
from plimsoll.core.client.events import PublisherEvent, SubscriberEvent
from plimsoll.core.client.limits import Address, ClientLimits
from plimsoll.core.client.publisher import Confirm, Publisher
from plimsoll.core.client.seeking import Seeker
from plimsoll.core.client.subscriber import Phase, Subscriber
from plimsoll.core.grants import NOT_GRANTED
from plimsoll.core.link import Link
from plimsoll.core.node import NEVER, Node
from plimsoll.core.wire import Info, Token, WireError

CONFLICTS_AT_MOST = 8
"""So many attachments in a row are refused for their owner epoch; then the name belongs to somebody else."""

UNREADABLE = (ValueError, RecursionError, OverflowError)
KNOWN_NUMBERS = frozenset(kind.__struct_config__.tag for kind in get_args(r.ToClient))


class Client(Node):
    """One per process. `name` is unique in the fleet; `incarnation` rises from one life of the process to the next.

    `heads`: at least one; the first that answers is used, and another one once it has been away for `failover_seconds`.
    """

    def __init__(
        self,
        name: str,
        incarnation: int,
        new_id: Callable[[], int],
        heads: Sequence[Address],
        limits: ClientLimits | None = None,
    ) -> None:
        self.limits = limits or ClientLimits()
        super().__init__(
            Info(name, "client", incarnation), self.limits.link, new_id, max_frame_bytes=self.limits.max_frame_bytes
        )
        if not heads:
            raise ValueError("a client needs the address of at least one head")
        self.incarnation, self.heads = incarnation, tuple(heads)
        self.publishers: dict[str, Publisher] = {}
        self.subscribers: dict[str, Subscriber] = {}
        self.ready: dict[Publisher | Subscriber, None] = {}
        self.changed: dict[Subscriber, None] = {}
        self.ports: dict[str, Port] = {}
        self.refusal = ""
        self._home: Link | None = None
        self._home_at = 0
        self._home_left = 0.0
        self._left = False
        self._handles: dict[int, Publisher] = {}
        self._last_handle = self._last_peer = 0
        self.seeker = Seeker(self)
        self._idle: dict[Port, None] = {}

    # -- for the application

    def publisher(self, name: str, *, confirm: Confirm = "head") -> Publisher:
        """A new publisher; its name is unique in the fleet.

        Raises:
            ValueError: the name is used here already, or is empty or too long.

        """
        _check_name(name, self.publishers)
        publisher = self.publishers[name] = Publisher(self, name, self.incarnation, confirm)
        publisher.open()
        return publisher

    def subscriber(
        self,
        name: str,
        *,
        policy: r.Policy | None = None,
        token: Token | None = None,
        watermarks: Iterable[Token] = (),
        prefer: str = "",
        holds: bool = False,
    ) -> Subscriber:
        """A new subscriber; it looks for an edge from the next round on. Its name is unique in the fleet.

        `token` and `watermarks`: of an earlier life, to go on from there. `prefer`: the name of an edge.
        `holds`: its items count as queued until `consumed`, and a full queue pauses it; if not, until `take_events`.

        Raises:
            ValueError: the name is used here already, or is empty or too long.

        """
        _check_name(name, self.subscribers)
        subscriber = self.subscribers[name] = Subscriber(self, name, policy or r.Policy(), token, prefer)
        subscriber.start_from(watermarks)
        subscriber.holds = holds
        self.seeker.begin(subscriber)
        return subscriber

    def take_events(self) -> list[tuple[Publisher, list[PublisherEvent]] | tuple[Subscriber, list[SubscriberEvent]]]:
        """What has happened since the last call, by publisher and subscriber, each in order."""
        ready, self.ready = self.ready, {}
        taken: list[Any] = []
        for owner in ready:
            events, owner.events = owner.events, []
            taken.append((owner, events))
        return taken

    def close_all(self, now: float, *, withdraw: bool = True) -> None:
        """Close all publishers and subscribers. `is_quiet` says when everything has arrived; `leave` hangs up."""
        self.now = now
        for publisher in list(self.publishers.values()):
            publisher.close()
        for subscriber in list(self.subscribers.values()):
            subscriber.close(withdraw=withdraw)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is on its way on any open link."""
        return not any(link.open and (link.buffer or link.unacked) for link in self.dialled.values())

    def leave(self, now: float) -> None:
        """Say goodbye on all links; the machine makes no new ones."""
        self.now = now
        self._left = True
        for peer in list(self.dialled):
            self.hang_up(peer, "the client is leaving")
        self._home = None
        self.ports.clear()

    # -- for publishers and subscribers

    @property
    def home_link(self) -> Link | None:
        """The link to the head, as long as it keeps what is said on it: a lost connection is not a lost link."""
        return self._home if self._home is not None and self._home.was_open else None

    def new_handle(self, publisher: Publisher) -> int:
        self._handles.pop(publisher.handle, None)
        self._last_handle += 1
        self._handles[self._last_handle] = publisher
        return self._last_handle

    def drop_publisher(self, publisher: Publisher) -> None:
        self.publishers.pop(publisher.name, None)
        self._handles.pop(publisher.handle, None)

    def drop_subscriber(self, subscriber: Subscriber) -> None:
        self.subscribers.pop(subscriber.name, None)
        self.changed.pop(subscriber, None)
        subscriber.wake = 0

    def detach(self, subscriber: Subscriber, *, withdraw: bool = False) -> None:
        """Take a subscriber off its edge, and off the target of its hand-over, which is told."""
        moving.leave(self, subscriber, withdraw=withdraw)
        attachment, subscriber.current = subscriber.current, None
        self.changed.pop(subscriber, None)
        if attachment is not None:
            self.release(attachment)

    def release(self, attachment: Attachment) -> None:
        """Take an attachment off its port; a port without any is closed after a while."""
        port = attachment.port
        port.attachments.pop(attachment.id, None)
        if not port.attachments:
            port.idle_since = self.now
            self._idle[port] = None

    def say_detach(self, *attachments: Attachment, withdraw: bool = False) -> None:
        """These are all of one port."""
        if asked := [attachment.id for attachment in attachments if attachment.is_asked]:
            self.say(attachments[0].port.link, r.Detach(asked, withdraw))

    # -- for the shell

    def unconnected(self, peers: Container[str], now: float) -> None:
        """Which of those that were dialled have no connection; to be told now and then, and of all of them.

        Connections are made again underneath, and links outlive it. An edge to which there is none for `away_seconds`
        is left: a killed process is noticed sooner than by its silence.
        """
        self.now = now
        for port in self.ports.values():
            if port.peer not in peers:
                port.away_since = NEVER
            elif port.away_since == NEVER:
                port.away_since = now

    # -- links

    def on_open(self, link: Link) -> None:
        if link is self._home:
            self.refusal = ""
            for publisher in list(self.publishers.values()):
                publisher.open()
            for subscriber in self.subscribers.values():
                if subscriber.phase is Phase.JOINING:
                    self.seeker.join(subscriber)
        elif isinstance(port := link.owner, Port):
            port.away_since = NEVER
            attachments = list(port.attachments.values())
            for attachment in attachments:
                if moving.target_of(attachment) is None:
                    self.seeker.resume(attachment)
            moving.attach(self, port, attachments)

    def on_lost(self, link: Link) -> None:
        if link is self._home:
            for publisher in self.publishers.values():
                publisher.lost(self.now)
        elif isinstance(port := link.owner, Port):
            self.close_port(port, "the link was lost")

    def on_refused(self, link: Link, code: str, text: str) -> None:
        if isinstance(port := link.owner, Port):
            self.close_port(port, text)
        else:
            self.refusal = text

    def close_port(self, port: Port, reason: str) -> None:
        """Nothing more comes from here: its subscribers look for another edge, each in its own time."""
        self.ports.pop(port.edge, None)
        for attachment in list(port.attachments.values()):
            if (handover := moving.target_of(attachment)) is not None:
                moving.lose(self, attachment, handover, willing=False)
            else:
                self.seeker.again(attachment.subscriber, reason, exclude=port.edge)
        self._idle.pop(port, None)
        self.hang_up(port.peer, reason)

    def port_to(self, edge: str, endpoint: str, public_key: str) -> Port:
        """The link to this edge, for a new attachment; dialled if there is none."""
        port = self.ports.get(edge)
        if port is not None and (port.endpoint, port.public_key) != (endpoint, public_key):
            self.close_port(port, "the edge has another address now")
            port = None
        if port is None:
            peer = self._peer(edge)
            link = self.dial(peer, endpoint, public_key)
            port = link.owner = self.ports[edge] = Port(edge, endpoint, public_key, peer, link)
        self._idle.pop(port, None)
        return port

    def _peer(self, name: str) -> str:
        self._last_peer += 1
        return f"{name}#{self._last_peer}"

    def _find_home(self) -> None:
        """Dial a head, and the next one if this one has been away for too long."""
        home = self._home
        if home is not None:
            if home.open or len(self.heads) == 1:
                self._home_left = self.now
            elif self.now - self._home_left > self.limits.failover_seconds:
                for publisher in self.publishers.values():
                    publisher.lost(self.now)
                self.hang_up(str(home.peer), "another head is tried")
                self._home = None
                self._home_at = (self._home_at + 1) % len(self.heads)
                self.counters["heads_tried"] += 1
        if self._home is None and not self._left:
            address = self.heads[self._home_at]
            self._home_left = self.now
            self._home = self.dial(self._peer("head"), address.endpoint, address.public_key)

    # -- records

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        self.took(link)
        owner = link.owner
        try:
            if isinstance(owner, Port):
                self._on_stream(owner, frame, size)
            elif link is self._home:
                self._on_answers(frame)
        except WireError as error:
            # The link is reliable: what cannot be read is not noise, and what it said is lost. Resume from the tokens.
            self.counters["records_refused_malformed"] += 1
            self._distrust(link, str(error))

    def _pass_over(self, raw: bytes | Raw, error: Exception) -> None:
        """A record that cannot be read: of a later protocol, and not for us, or broken.

        Raises:
            WireError: it is broken.

        """
        number = first_number(raw)
        if number is None or number in KNOWN_NUMBERS:
            raise WireError("malformed", f"record {number} cannot be read: {error}") from error
        self.counters["records_refused_unknown"] += 1

    def _distrust(self, link: Link, text: str) -> None:
        if isinstance(port := link.owner, Port):
            self.close_port(port, text)
        else:
            self.refusal = text
            for publisher in self.publishers.values():
                publisher.lost(self.now)
            self.hang_up(str(link.peer), text)
            self._home = None

    def _on_stream(self, port: Port, frame: wire.Data, size: int) -> None:
        """Hot path: what an edge has for the subscribers on its link."""
        decode, attachments, now = r.to_client.decode, port.attachments, self.now
        size //= len(frame.records) or 1
        for raw in frame.records:
            try:
                record = decode(raw)
            except UNREADABLE as error:
                self._pass_over(raw, error)
                continue
            if type(record) is r.Deliver:
                attachment = attachments.get(record.attachment)
                if attachment is None or attachment.state is not State.LIVE:
                    self.counters["records_for_nobody"] += 1
                else:
                    attachment.take(attachment, record.item, size, now)
            elif type(record) is r.Progress:
                self._on_progress(port, record)
            else:
                self._on_attachment(port, record)

    def _on_progress(self, port: Port, progress: r.Progress) -> None:
        behind = set(progress.behind)
        for attachment in port.attachments.values():
            if attachment.state is State.LIVE and attachment.id not in behind:
                attachment.subscriber.on_progress(attachment, progress.position)

    def _on_attachment(self, port: Port, record: Any) -> None:
        if (on_several := self._OF_SEVERAL.get(type(record))) is not None:
            on_several(self, port, record)
            return
        handler = self._OF_ATTACHMENT.get(type(record))
        if handler is None:
            self.counters["records_refused_misplaced"] += 1
            return
        attachment = port.attachments.get(record.attachment)
        if attachment is None:
            self.counters["records_for_nobody"] += 1
        else:
            handler(self, attachment, record)

    def _on_resumed(self, attachment: Attachment, resumed: r.Resumed) -> None:
        if attachment.state is State.RESUMING:
            attachment.subscriber.wake = 0
            attachment.subscriber.on_resumed(attachment, resumed, self.now)

    def _on_suback(self, attachment: Attachment, suback: r.Suback) -> None:
        if (handover := moving.target_of(attachment)) is not None:
            handover.holds(suback.version)
        attachment.subscriber.on_suback(attachment, suback)

    def _on_subrefused(self, attachment: Attachment, refused: r.SubRefused) -> None:
        subscriber = attachment.subscriber
        if (handover := moving.target_of(attachment)) is None:
            subscriber.on_subrefused(refused)
        elif refused.id in subscriber.subscriptions:
            # The edge that serves has taken it, or will refuse it itself: a hand-over takes nothing from anybody.
            self.say_detach(attachment)
            moving.lose(self, attachment, handover, willing=True)

    def _on_epoch(self, attachment: Attachment, epoch: r.Epoch) -> None:
        """The head has restarted, and knows of no hand-over."""
        if not moving.is_serving(attachment):
            self.counters["records_refused_misplaced"] += 1
            return
        moving.leave(self, attachment.subscriber)
        attachment.subscriber.on_gap(attachment, epoch.gap, self.now)
        attachment.subscriber.settle()

    def _on_moved(self, port: Port, moved: r.Moved) -> None:
        for attachment in self.each(port, moved.attachments):
            self._redirect(attachment, moved)

    def each(self, port: Port, numbers: Iterable[int]) -> Iterator[Attachment]:
        """The attachments that an edge means; those that are over are counted."""
        for number in numbers:
            if (attachment := port.attachments.get(number)) is None:
                self.counters["records_for_nobody"] += 1
            else:
                yield attachment

    def _redirect(self, attachment: Attachment, moved: r.Moved) -> None:
        """Follow a redirect: to the edge that it names, or to one that the head names."""
        subscriber = attachment.subscriber
        if (handover := moving.target_of(attachment)) is not None:
            moving.lose(self, attachment, handover, willing=False)
            return
        subscriber.counts["redirects"] += 1
        if moved.session is not None:
            subscriber.counts["moves"] += 1
            subscriber.session = moved.session
        self.seeker.again(subscriber, "moved", exclude="" if moved.edge else attachment.port.edge, at_once=True)
        if moved.edge and moved.endpoint:
            if moved.session is not None:
                subscriber.begin_tally(moved.session)
            self.seeker.attach(subscriber, moved.edge, moved.endpoint, moved.public_key)

    def _on_shut(self, attachment: Attachment, shut: r.Shut) -> None:
        subscriber, port = attachment.subscriber, attachment.port
        if (handover := moving.target_of(attachment)) is not None:
            moving.lose(self, attachment, handover, willing=shut.code not in moving.UNWILLING)
            return
        if shut.code in ("slow", NOT_GRANTED):
            self.detach(subscriber)
            subscriber.fail(shut.code, shut.text)
            return
        if shut.code in ("epoch", "released", "replaced"):
            subscriber.conflicts += 1
            if subscriber.conflicts >= CONFLICTS_AT_MOST:
                self.detach(subscriber)
                text = (
                    f"subscriber {subscriber.name!r} is attached by another process; give each process names of its own"
                )
                subscriber.fail("conflict", text)
                return
        is_held = shut.code == "hold"
        self.seeker.again(
            subscriber, shut.text, exclude=port.edge if shut.code in moving.UNWILLING else "", at_once=is_held
        )
        if is_held:
            # What it held is gone, and END has come meanwhile: the rest is in its head's log.
            self.seeker.attach(subscriber, port.edge, port.endpoint, port.public_key)

    def _on_answers(self, frame: wire.Data) -> None:
        """What the head answers to publishers, and to subscribers that look for an edge."""
        for raw in frame.records:
            try:
                record = r.to_client.decode(raw)
            except UNREADABLE as error:
                self._pass_over(raw, error)
                continue
            if (handler := self._OF_PUBLISHER.get(type(record))) is not None:
                publisher = self._handles.get(record.handle)
                if publisher is not None:
                    handler(publisher, record)
            elif isinstance(record, r.Placed):
                self.seeker.on_placed(record)
            elif isinstance(record, r.Unplaced):
                self.seeker.on_unplaced(record)
            elif not isinstance(record, r.Progress):
                self.counters["records_refused_misplaced"] += 1

    # -- time

    def on_tick(self) -> None:
        self._find_home()
        for port in [port for port in self.ports.values() if self._leaves(port)]:
            self.close_port(port, "its connection is gone")
        self.seeker.on_tick()
        changed, self.changed = self.changed, {}
        for subscriber in changed:
            subscriber.say_changes()
        for port in [port for port in self._idle if self.now - port.idle_since >= self.limits.idle_seconds]:
            if not port.link.open or not (port.link.unacked or port.link.buffer):
                self.close_port(port, "nobody here needs it")

    def _leaves(self, port: Port) -> bool:
        return port.link.was_open and self.now - port.away_since >= self.limits.away_seconds

    def wake_at(self) -> float:
        at = self.seeker.wake_at()
        for port in self.ports.values():
            if port.link.was_open:
                at = min(at, port.away_since + self.limits.away_seconds)
        for port in self._idle:
            at = min(at, max(port.idle_since + self.limits.idle_seconds, self.now + self.limits.link.ack_seconds))
        return at if self._home is not None or self._left else self.now

    def status(self) -> dict[str, Any]:
        home = self._home
        phases = [s.phase.value for s in self.subscribers.values()]
        return {
            **super().status(),
            "head": home.name if home is not None and home.open else "",
            "refusal": self.refusal,
            "publishers": len(self.publishers),
            "subscribers": {phase: phases.count(phase) for phase in sorted(set(phases))},
            "edges": {
                port.edge: {"attachments": len(port.attachments), "rtt_seconds": port.link.rtt_seconds}
                for port in self.ports.values()
            },
        }

    _OF_ATTACHMENT: ClassVar[dict[type[Any], Callable[..., None]]] = {
        r.Resumed: _on_resumed,
        r.Suback: _on_suback,
        r.SubRefused: _on_subrefused,
        r.Epoch: _on_epoch,
        r.Shut: _on_shut,
        r.Stay: moving.on_stay,
    }
    _OF_SEVERAL: ClassVar[dict[type[Any], Callable[..., None]]] = {
        r.Moved: _on_moved,
        r.MoveTo: moving.on_move_to,
        r.Held: moving.on_held,
        r.End: moving.on_end,
        r.Count: moving.on_count,
    }
    _OF_PUBLISHER: ClassVar[dict[type[Any], Callable[..., None]]] = {
        r.Opened: Publisher.on_opened,
        r.Accepted: Publisher.on_accepted,
        r.Refused: Publisher.on_refused,
        r.Credit: Publisher.on_credit,
        r.Unconfirmed: Publisher.on_unconfirmed,
    }


def first_number(raw: bytes | Raw) -> int | None:
    """The number of a record, if it is an array that begins with one."""
    try:
        number = msgspec.msgpack.decode(raw, type=list[Any])[0]
    except (*UNREADABLE, IndexError):
        return None
    return number if type(number) is int else None


def _check_name(name: str, used: dict[str, Any]) -> None:
    if not 1 <= len(name) <= 253:
        raise ValueError(f"a name has 1 to 253 characters, not {len(name)}: {name[:40]!r}")
    if name in used:
        raise ValueError(f"{name!r} is in use in this process already")
