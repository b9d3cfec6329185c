"""The machine of an application process: its links to heads and edges, and its publishers and subscribers.

One link to a head, for publishing and for asking where to subscribe; one link to each edge that serves a subscriber
here. Frames of an edge are always taken and their credit is returned at once: a subscriber that does not keep up is
paused at its edge, alone, and never holds the others on its link.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import count
from typing import Any

from plimsoll.core.client.attachment import EdgePort
from plimsoll.core.client.edge_finder import EdgeFinder
from plimsoll.core.client.edge_ports import EdgePorts
from plimsoll.core.client.edge_records import EdgeRecords
from plimsoll.core.client.events import PublisherEvent, SubscriberEvent
from plimsoll.core.client.group_member import GroupEvent, GroupMember, Usage, no_usage
from plimsoll.core.client.handover import ClientHandovers, target_of
from plimsoll.core.client.head_ports import HeadPort, HeadPorts
from plimsoll.core.client.limits import Address, ClientLimits
from plimsoll.core.client.publisher import ClientPublisher, Confirm
from plimsoll.core.client.publisher_moves import ClientPublisherMoves, MoveState
from plimsoll.core.client.publisher_position import PublisherPosition
from plimsoll.core.client.records import UNREADABLE, pass_over
from plimsoll.core.client.slice_stamps import SliceStamps
from plimsoll.core.client.subscriber import Attachment, ClientSubscriber, Location, Since, SubscriberPhase, UnitMark
from plimsoll.core.client.topic_division import TopicDivision
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info, Token, WireError
from plimsoll.core.transport.link import NEVER, Link
from plimsoll.core.transport.overlay_node import OverlayNode

TakenEvents = list[
    tuple[ClientPublisher, list[PublisherEvent]]
    | tuple[ClientSubscriber, list[SubscriberEvent]]
    | tuple[GroupMember, list[GroupEvent]]
]
"""Events by the publisher or subscriber that they belong to."""


class Client(OverlayNode):
    """One per process. `name` is unique in the fleet; `incarnation` rises from one life of the process to the next.

    `heads`: at least one; the first that answers is used, and another one once it has been away for `failover_seconds`.

    Above 25 methods since it is the host of five parts (`edge_ports`, `edge_finder`, `handovers`, `edge_records`,
    publishers and subscribers); each sees a narrow protocol of it.
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
        self.incarnation, self.heads, self.last_number = incarnation, tuple(heads), 0
        self.publishers: dict[str, ClientPublisher] = {}
        self.subscribers: dict[str, ClientSubscriber] = {}
        self.members: dict[str, GroupMember] = {}
        self.ready: dict[ClientPublisher | ClientSubscriber | GroupMember, None] = {}
        self.changed: dict[ClientSubscriber, None] = {}
        self.refusal = self.last_error = ""
        self._connected = False
        self._connected_at: float | None = None
        self._home: Link | None = None
        self._home_at = 0
        self._home_left = self._home_due = 0.0
        self._followed_at = -math.inf
        self._given = len(self.heads)
        self._left = False
        self._handles: dict[int, ClientPublisher] = {}
        self._last_handle = 0
        self._peer_numbers = count(1)
        self.head_ports = HeadPorts(self, self._peer_numbers)
        self.stamps = SliceStamps()
        self.publisher_moves = ClientPublisherMoves[ClientPublisher](self)
        self.edge_ports = EdgePorts(self, self._peer_numbers)
        self.division = TopicDivision(self)
        self.edge_finder = EdgeFinder(self, self.edge_ports)
        self.handovers = ClientHandovers(self, self.edge_ports, self.edge_finder)
        self.edge_records = EdgeRecords(self, self.edge_ports, self.edge_finder, self.handovers)

    # -- for the application

    def publisher(
        self,
        name: str,
        *,
        confirm: Confirm = "head",
        position: PublisherPosition | None = None,
        unanswered: Iterable[bytes] = (),
        sent_us: int = 0,
        away_seconds: float = 0.0,
    ) -> ClientPublisher:
        """A new publisher; its name is unique in the fleet.

        `position`: of an earlier life, to go on from there; `unanswered`: the encoded publications behind it, in order;
        `away_seconds`: how long ago that life ended.

        Raises:
            ValueError: the name is used here already, or is empty or too long.

        """
        _check_name(name, self.publishers)
        publisher = self.publishers[name] = ClientPublisher(self, name, self.incarnation, confirm)
        if position is not None:
            publisher.resume(position, unanswered, sent_us=sent_us, away_seconds=away_seconds)
        publisher.open()
        return publisher

    def subscriber(
        self,
        name: str,
        *,
        policy: msg.Policy | None = None,
        token: Token | None = None,
        watermarks: Iterable[Token | UnitMark] = (),
        prefer: str = "",
        location: Location | None = None,
        holds: bool = False,
        lease_seconds: float = 0.0,
        since: Since | None = None,
    ) -> ClientSubscriber:
        """A new subscriber; it looks for an edge from the next round on. Its name is unique in the fleet.

        `token` and `watermarks`: of an earlier life, to go on from there. `prefer`: the name of an edge.
        `location`: where it is, for a fleet that places subscribers by distance.
        `lease_seconds`: for how long its place is to be kept while it is away, if for longer than any.
        `since`: where it begins without a token, a position or a time in seconds since 1970.
        `holds`: its items count as queued until `consumed`, and a full queue pauses it; if not, until `take_events`.

        Raises:
            ValueError: the name is used here already, or is empty or too long; or a number is not finite.

        """
        _check_name(name, self.subscribers)
        if location is not None and not all(math.isfinite(each) for each in location):
            raise ValueError(f"a location has two finite coordinates, not {location}")
        if not 0.0 <= lease_seconds < math.inf:
            raise ValueError(f"a lease is a finite number of seconds of at least 0, not {lease_seconds}")
        if isinstance(since, float) and not math.isfinite(since):
            raise ValueError(f"`since` is a finite time, not {since}")
        own = policy or msg.Policy()
        subscriber = self.subscribers[name] = ClientSubscriber(
            self, name, own, token, prefer, location, lease_seconds, since
        )
        for mark in watermarks:
            if len(mark) == 4:
                subscriber.unit_marks.append(mark)
            else:
                subscriber.stream.watermarks[mark[0], mark[1]] = mark[2]
        subscriber.stream.holds = holds
        if since is None or token is not None:
            self.edge_finder.begin(subscriber)
        return subscriber

    def group_member(
        self, group: str, name: str, definition: msg.GroupDefinition | None = None, usage: Usage = no_usage
    ) -> GroupMember:
        """A new member of a consumer group. `definition`: what the group is, for one that may make it.

        Raises:
            ValueError: this client is a member of this group already, or the name is empty or too long.

        """
        _check_name(name, {})
        _check_name(group, self.members)
        member = self.members[group] = GroupMember(self, group, name, definition, usage)
        return member

    def drop_member(self, member: GroupMember) -> None:
        if self.members.get(member.group) is member:
            del self.members[member.group]

    def member_ready(self, member: GroupMember) -> None:
        self.ready[member] = None

    def take_events(self) -> TakenEvents:
        """Events since the last call, by publisher and subscriber, each in order."""
        ready, self.ready = self.ready, {}
        taken: list[Any] = []
        for owner in ready:
            # The subscriber's stream shares the list; so it is emptied, not replaced.
            taken.append((owner, owner.events[:]))
            owner.events.clear()
        return taken

    def close_all(self, now: float, *, withdraw: bool = True) -> None:
        """Close all publishers and subscribers. `is_quiet` says when everything has arrived; `leave` hangs up."""
        self.now = now
        for publisher in list(self.publishers.values()):
            publisher.close()
        for member in list(self.members.values()):
            member.close()
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
        self.edge_ports.forget_all()
        self.head_ports.forget_all()

    # -- for publishers and subscribers

    @property
    def home_link(self) -> Link | None:
        """The link to the head, which outlives a lost connection; None if there is none."""
        return self._home if self._home is not None and self._home.was_open else None

    @property
    def home_name(self) -> str:
        """The name of the head that the home link leads to, or led to last; empty before it has answered."""
        return self._home.name if self._home is not None else ""

    def new_handle(self, publisher: ClientPublisher, old: int) -> int:
        """A handle in place of `old`: answers to that one are ignored from now on."""
        self.drop_handle(old)
        self._last_handle += 1
        self._handles[self._last_handle] = publisher
        return self._last_handle

    def drop_handle(self, handle: int) -> None:
        self._handles.pop(handle, None)

    def drop_publisher(self, publisher: ClientPublisher) -> None:
        self.publisher_moves.end(publisher)
        if publisher.port is not None:
            self.head_ports.release(publisher.port, publisher)
        self.publishers.pop(publisher.name, None)
        self.drop_handle(publisher.handle)

    def mark_ready(self, owner: ClientPublisher | ClientSubscriber) -> None:
        self.ready[owner] = None

    def close_subscriber(self, subscriber: ClientSubscriber, *, withdraw: bool) -> None:
        if subscriber.current is not None:
            self.edge_ports.say_detach(subscriber.current, withdraw=withdraw)
        self.detach(subscriber, withdraw=withdraw)
        self.drop_subscriber(subscriber)

    def drop_subscriber(self, subscriber: ClientSubscriber) -> None:
        self.subscribers.pop(subscriber.name, None)
        self.changed.pop(subscriber, None)
        self.last_number = max(self.last_number, subscriber.number)
        subscriber.wake = 0

    def begin(self, subscriber: ClientSubscriber) -> None:
        self.edge_finder.begin(subscriber)

    def detach(self, subscriber: ClientSubscriber, *, withdraw: bool = False) -> None:
        """Take a subscriber off its edge, and off the target of its hand-over, which is sent DETACH."""
        self.handovers.leave(subscriber, withdraw=withdraw)
        attachment, subscriber.current = subscriber.current, None
        self.changed.pop(subscriber, None)
        if attachment is not None:
            self.edge_ports.release(attachment)

    # -- for the shell

    def unconnected(self, peers: Container[str], now: float) -> None:
        """Take the list of all dialled peers without a connection; called now and then.

        Connections are made again underneath, and links outlive them. An edge without a connection for `away_seconds`
        is left: a killed process is noticed sooner than by its silence.
        """
        self.now = now
        self.edge_ports.on_connections(peers)

    # -- links

    def on_open(self, link: Link) -> None:
        if link is self._home:
            self.refusal = ""
            if (same := self.head_ports.by_head.get(link.name)) is not None:
                self._merge_into_home(same)
            self._open_publishers(None)
            for member in list(self.members.values()):
                member.join()
            for subscriber in self.subscribers.values():
                if subscriber.phase is SubscriberPhase.JOINING:
                    self.edge_finder.join(subscriber)
            if link.remote is not None and link.remote.role == "edge" and self.subscribers:
                self.say(link, msg.Join(min(self.subscribers)))  # only to be told of its head
        elif isinstance(head_port := link.owner, HeadPort):
            if link.name == self.home_name:
                self._merge_into_home(head_port)
            self._open_publishers(None if link.name == self.home_name else head_port)
        elif isinstance(port := link.owner, EdgePort):
            port.away_since = NEVER
            attachments = list(port.attachments.values())
            for attachment in attachments:
                if target_of(attachment) is None:
                    self.edge_finder.resume(attachment)
            self.handovers.attach(port, attachments)

    def on_lost(self, link: Link) -> None:
        if link is self._home:
            self.last_error = self.refusal or "the link to the head was lost"
            self.on_head_lost()
        elif isinstance(head_port := link.owner, HeadPort):
            self._lose_publishers(head_port)
        elif isinstance(port := link.owner, EdgePort):
            self.edge_ports.close(port, "the link was lost")

    def on_refused(self, link: Link, code: str, text: str) -> None:
        if isinstance(port := link.owner, EdgePort):
            self.edge_ports.close(port, text)
        elif isinstance(link.owner, HeadPort):
            self.last_error = text
        else:
            self.refusal = self.last_error = text

    def on_head_lost(self) -> None:
        self.division.forget()
        self._lose_publishers(None)

    def _open_publishers(self, port: HeadPort | None) -> None:
        """There is a new link to the head behind `port`: those that are there open again, unless it has let them go."""
        for publisher in list(self.publishers.values()):
            if publisher.port is port and (publisher.move is None or publisher.move.state is not MoveState.LEFT):
                publisher.open()
        self.publisher_moves.link_open(port)

    def _lose_publishers(self, port: HeadPort | None) -> None:
        """The link to the head behind `port` is over."""
        lost = [publisher for publisher in self.publishers.values() if publisher.port is port]
        for publisher in lost:
            publisher.lost(self.now)
        self.publisher_moves.source_lost(lost)
        self.publisher_moves.target_lost(port)

    def _merge_into_home(self, port: HeadPort) -> None:
        """The home link leads to the head of a port. That has ended the older link, so the home serves for both."""
        for publisher in [each for each in self.publishers.values() if each.port is port]:
            publisher.port = None
        for move in self.publisher_moves.moving.values():
            move.port = None if move.port is port else move.port
        self.head_ports.close(port, "the home link leads there")

    def _leave_lost_heads(self) -> None:
        """Publishers at a head that has been away for too long start again at home."""
        for port in list(self.head_ports.away()):
            for publisher in [each for each in self.publishers.values() if each.port is port]:
                self.publisher_moves.end(publisher)
                publisher.go_home(f"head {port.head} has been away for too long")
            self.publisher_moves.target_lost(port)
            self.counters["heads_left"] += 1
            self.head_ports.close(port, "it has been away for too long")

    def on_attachment_lost(self, attachment: Attachment, reason: str) -> None:
        """Its port was closed. Losing the target of a hand-over is no harm: the subscriber is served as before."""
        if (handover := target_of(attachment)) is not None:
            self.handovers.lose(attachment, handover, willing=False)
        else:
            self.edge_finder.again(attachment.subscriber, reason, exclude=attachment.port.edge)

    def _note_connection(self) -> None:
        """Note since when there is an open link to a head, or none."""
        is_connected = self._home is not None and self._home.open
        if self._connected_at is None or is_connected != self._connected:
            self._connected, self._connected_at = is_connected, self.now

    def _find_home(self) -> None:
        """Dial a head, and the next one if this one has been away for too long."""
        home = self._home
        if home is not None:
            if home.open or len(self.heads) == 1:
                self._home_left = self.now
            elif self.now - self._home_left > self.limits.failover_seconds:
                self.on_head_lost()
                self.hang_up(str(home.peer), "another head is tried")
                self._home = None
                self._home_at = (self._home_at + 1) % len(self.heads)
                self.counters["heads_tried"] += 1
        if self._home is None and not self._left and self.now >= self._home_due:
            address = self.heads[self._home_at]
            self._home_left = self.now
            self._home = self.dial(f"head#{next(self._peer_numbers)}", address.endpoint, address.public_key)

    # -- frames

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        self.took(link)
        owner = link.owner
        try:
            if isinstance(owner, EdgePort):
                self.edge_records.on_frame(owner, frame, size)
            elif link is self._home or isinstance(owner, HeadPort):
                self._on_answers(link, frame)
        except WireError as error:
            # The link is reliable, so an unreadable frame is no noise and its content is lost. Resume from the tokens.
            self.counters["records_refused_malformed"] += 1
            self._distrust(link, str(error))

    def _distrust(self, link: Link, text: str) -> None:
        if isinstance(port := link.owner, EdgePort):
            self.edge_ports.close(port, text)
        elif isinstance(head_port := link.owner, HeadPort):
            self.last_error = text
            self._lose_publishers(head_port)
            self.handshakes.reopen(link, text)
        else:
            self.refusal = self.last_error = text
            self.on_head_lost()
            self.hang_up(str(link.peer), text)
            self._home = None

    def _on_answers(self, link: Link, frame: wire.Data) -> None:
        """Records of the head for publishers, and for subscribers that look for an edge."""
        for raw in frame.records:
            try:
                record = msg.to_client.decode(raw)
            except UNREADABLE as error:
                pass_over(raw, error, self.counters)
                continue
            match record:
                case (
                    msg.Accepted() | msg.Credit() | msg.Opened() | msg.Refused() | msg.Unconfirmed() |
                    msg.PublisherMove() | msg.PublisherStay() | msg.PublisherLeft() | msg.PublisherStandby() |
                    msg.PublisherElsewhere()
                ):  # fmt: skip
                    # an answer to an older handle is void
                    if (publisher := self._handles.get(record.handle)) is not None:
                        publisher.on_answer(record)
                case (
                    msg.GroupJoined() | msg.GroupRefused() | msg.GroupBeatAnswer() | msg.GroupLeft() |
                    msg.SliceAssigned() | msg.SliceRevoked() | msg.SliceCache()
                ):  # fmt: skip
                    if (member := self.members.get(record.group)) is not None:
                        member.on_record(record)
                case msg.GroupFunctions():
                    self.stamps.told(link.name, record)
                case msg.Placed():
                    self.edge_finder.on_placed(record)
                case msg.Unplaced():
                    self.edge_finder.on_unplaced(record)
                case msg.SeeHead() if link is self._home:
                    self._follow(record)
                    return
                case msg.Progress():
                    pass
                case _:
                    self.counters["records_refused_misplaced"] += 1

    def _follow(self, told: msg.SeeHead) -> None:
        """The address is that of an edge, which names its head: that is tried next, and remembered.

        One that does not know its head yet, and one that sends the client on again and again, make it wait between.
        """
        if self._home is None:
            return
        self.on_head_lost()
        self.hang_up(str(self._home.peer), f"it is an edge of {told.head}")
        is_again = self.now - self._followed_at < self.limits.failover_seconds
        self._home, self._followed_at = None, self.now
        self._home_due = self.now + self.limits.backoff_seconds if is_again or not told.endpoint else self.now
        if told.endpoint:
            self.heads = (*self.heads[: self._given], Address(told.endpoint, told.public_key))
            self._home_at = self._given
            self.counters["heads_followed"] += 1
        else:
            self._home_at = (self._home_at + 1) % len(self.heads)

    # -- time

    def on_tick(self) -> None:
        self._find_home()
        self._note_connection()
        self.edge_ports.close_away()
        self.edge_finder.on_tick()
        changed, self.changed = self.changed, {}
        for subscriber in changed:
            subscriber.subscription_list.send_changes()
        self.edge_ports.close_idle()
        self.publisher_moves.tick()
        for member in list(self.members.values()):
            member.on_tick()
        self._leave_lost_heads()
        self.head_ports.close_idle()

    def wake_at(self) -> float:
        at = min(self.edge_finder.wake_at(), self.edge_ports.wake_at())
        at = min(at, self.publisher_moves.wake_at(), self.head_ports.wake_at())
        at = min([at, *(member.wake_at() for member in self.members.values())])
        return at if self._home is not None or self._left else min(at, max(self.now, self._home_due))

    def status(self) -> dict[str, Any]:
        home = self._home
        self._note_connection()
        phases = [s.phase.value for s in self.subscribers.values()]
        return {
            **super().status(),
            "head": home.name if home is not None and home.open else "",
            "connected": self._connected,
            "since_seconds": round(max(0.0, self.now - (self._connected_at or 0.0)), 3),
            "last_error": self.last_error,
            "refusal": self.refusal,
            "publishers": len(self.publishers),
            "stamps": {**self.stamps.counts, "last_error": self.stamps.last_error},
            "subscribers": {phase: phases.count(phase) for phase in sorted(set(phases))},
            "edges": self.edge_ports.status(),
            "other_heads": self.head_ports.status(),
        }


def _check_name(name: str, used: dict[str, Any]) -> None:
    if not 1 <= len(name) <= 253:
        raise ValueError(f"a name has 1 to 253 characters, not {len(name)}: {name[:40]!r}")
    if name in used:
        raise ValueError(f"{name!r} is in use in this process already")
