"""The machine of an application process: its links to heads and edges, and its publishers and subscribers.

One link to a head, for publishing and for asking where to subscribe; one link to each edge that serves a subscriber
here. Frames of an edge are always taken and their credit is returned at once: a subscriber that does not keep up is
paused at its edge, alone, and never holds the others on its link.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Any

from plimsoll.core.client.attachment import EdgePort
from plimsoll.core.client.edge_finder import EdgeFinder
from plimsoll.core.client.edge_ports import EdgePorts
from plimsoll.core.client.edge_records import EdgeRecords
from plimsoll.core.client.events import PublisherEvent, SubscriberEvent
from plimsoll.core.client.group_beats import Usage, no_usage
from plimsoll.core.client.group_member import GroupEvent, GroupMember
from plimsoll.core.client.handover import ClientHandovers, target_of
from plimsoll.core.client.head_ports import HeadPort, HeadPorts
from plimsoll.core.client.head_records import HeadRecords
from plimsoll.core.client.home import Home
from plimsoll.core.client.limits import Address, ClientLimits
from plimsoll.core.client.publisher import ClientPublisher, Confirm
from plimsoll.core.client.publisher_moves import ClientPublisherMoves
from plimsoll.core.client.publisher_position import PublisherPosition
from plimsoll.core.client.publishers_at_heads import PublishersAtHeads
from plimsoll.core.client.sendable import check_connection, check_record
from plimsoll.core.client.slice_stamps import SliceStamps
from plimsoll.core.client.subscriber import Attachment, ClientSubscriber, Location, Since, SubscriberPhase, UnitMark
from plimsoll.core.client.subscribers_at_edges import SubscribersAtEdges
from plimsoll.core.client.topic_division import TopicDivision
from plimsoll.core.printable import printable
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.slice_names import slice_of_name
from plimsoll.core.protocol.wire import Info, Token, WireError
from plimsoll.core.transport.link import NEVER, Link
from plimsoll.core.transport.overlay_node import OverlayNode

Owner = ClientPublisher | ClientSubscriber | GroupMember
FAULT = "fault"
"""The code with which something ends here for a fault of the program, or of a callback."""
FAULT_CHARACTERS = 500
TakenEvents = list[
    tuple[ClientPublisher, list[PublisherEvent]]
    | tuple[ClientSubscriber, list[SubscriberEvent]]
    | tuple[GroupMember, list[GroupEvent]]
]
"""Events by the publisher or subscriber that they belong to."""


class Client(OverlayNode):
    """One per process. `name` is unique in the fleet; `incarnation` rises from one life of the process to the next.

    `heads`: at least one; the first that answers is used, and another one once it has been away for `failover_seconds`.

    It is the host of its parts, each of which sees a narrow protocol of it: `home`, `publishers_at_heads`, `head_ports`
    and `publisher_moves` for publishers, `subscribers_at_edges`, `edge_ports`, `edge_finder` and `handovers` for
    subscribers.
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
        info = Info(name, "client", incarnation)
        check_connection(info)
        super().__init__(info, self.limits.link, new_id, max_frame_bytes=self.limits.max_frame_bytes)
        if not heads:
            raise ValueError("a client needs the address of at least one head")
        self.incarnation = incarnation
        self.members: dict[str, GroupMember] = {}
        self.ready: dict[Owner, None] = {}
        self.refusal = self.last_error = ""
        peer_numbers = count(1)
        self.home = Home(self, heads, peer_numbers)
        self.head_ports = HeadPorts(self, peer_numbers)
        self.publishers_at_heads = PublishersAtHeads(self)
        self.publishers = self.publishers_at_heads.by_name
        self.stamps = SliceStamps()
        self.publisher_moves = ClientPublisherMoves[ClientPublisher](self)
        self.subscribers_at_edges = SubscribersAtEdges(self)
        self.subscribers = self.subscribers_at_edges.by_name
        self.edge_ports = EdgePorts(self, peer_numbers)
        self.division = TopicDivision(self)
        self.edge_finder = EdgeFinder(self, self.edge_ports)
        self.handovers = ClientHandovers(self, self.edge_ports, self.edge_finder)
        self.edge_records = EdgeRecords(self, self.edge_ports, self.edge_finder, self.handovers)
        self.head_records = HeadRecords(self)

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
        check_record(f"publisher {name[:40]!r}", msg.Open(0, name, self.incarnation))
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
        if slice_of_name(name) is not None:
            raise ValueError(
                f"{name!r} is the name of a slice of a group; a subscriber has one without `@@` and a number"
            )
        if location is not None and not all(math.isfinite(each) for each in location):
            raise ValueError(f"a location has two finite coordinates, not {location}")
        if not 0.0 <= lease_seconds < math.inf:
            raise ValueError(f"a lease is a finite number of seconds of at least 0, not {lease_seconds}")
        if isinstance(since, float) and not math.isfinite(since):
            raise ValueError(f"`since` is a finite time, not {since}")
        own, marks = policy or msg.Policy(), list(watermarks)
        asked = msg.Resume(
            0, name, (self.incarnation, 0), 0, [], own, token, [mark[:3] for mark in marks], None, lease_seconds, since
        )
        for record in (asked, msg.Join(name, [], prefer, "", location)):
            check_record(f"subscriber {name[:40]!r}", record)
        subscriber = self.subscribers[name] = ClientSubscriber(
            self, name, own, token, prefer, location, lease_seconds, since
        )
        for mark in marks:
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
        check_record(f"group {group[:40]!r}", msg.GroupJoin(group, name, self.incarnation, definition))
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
        for peer in list(self.dialled):
            self.hang_up(peer, "the client is leaving")
        self.home.leave()
        self.edge_ports.forget_all()
        self.head_ports.forget_all()

    # -- for publishers and subscribers

    def guard(self, owner: Owner, action: Callable[[], object]) -> None:
        """Do something for one of them. A fault of the program there is the end of that one, and of no other."""
        try:
            action()
        except Exception as error:  # noqa: BLE001  # it is told to this one's application
            self.counters["owners_failed"] += 1
            text = printable(f"a fault of the program: {type(error).__name__}: {error}"[:FAULT_CHARACTERS])
            # Its brokers are told: the connection goes on, and with it what they would serve and keep its name for.
            if isinstance(owner, ClientSubscriber):
                self.subscribers_at_edges.close(owner, withdraw=False)
            elif isinstance(owner, ClientPublisher) and owner.handle and owner.link is not None:
                self.say(owner.link, msg.Close(owner.handle))
            owner.fail(FAULT, text)

    @property
    def home_link(self) -> Link | None:
        """The link to the head, which outlives a lost connection; None if there is none."""
        return self.home.open_link

    def mark_ready(self, owner: ClientPublisher | ClientSubscriber) -> None:
        self.ready[owner] = None

    def begin(self, subscriber: ClientSubscriber) -> None:
        self.edge_finder.begin(subscriber)

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
        if link is self.home.link:
            self.refusal = ""
            if (same := self.head_ports.by_head.get(link.name)) is not None:
                self.publishers_at_heads.merge_into_home(same)
            self.publishers_at_heads.on_open(None)
            for member in list(self.members.values()):
                self.guard(member, member.join)
            for subscriber in list(self.subscribers.values()):
                if subscriber.phase is SubscriberPhase.JOINING:
                    self.guard(subscriber, partial(self.edge_finder.join, subscriber))
            if link.remote is not None and link.remote.role == "edge" and self.subscribers:
                self.say(link, msg.Join(min(self.subscribers)))  # only to be told of its head
        elif isinstance(head_port := link.owner, HeadPort):
            if link.name == self.home.head:
                self.publishers_at_heads.merge_into_home(head_port)
            self.publishers_at_heads.on_open(None if link.name == self.home.head else head_port)
        elif isinstance(port := link.owner, EdgePort):
            port.away_since = NEVER
            attachments = list(port.attachments.values())
            for attachment in attachments:
                if target_of(attachment) is None:
                    self.guard(attachment.subscriber, partial(self.edge_finder.resume, attachment))
            self.handovers.attach(port, attachments)

    def on_lost(self, link: Link) -> None:
        if link is self.home.link:
            self.last_error = self.refusal or "the link to the head was lost"
            self.on_home_lost()
        elif isinstance(head_port := link.owner, HeadPort):
            self.publishers_at_heads.on_lost(head_port)
        elif isinstance(port := link.owner, EdgePort):
            self.edge_ports.close(port, "the link was lost")

    def on_refused(self, link: Link, code: str, text: str) -> None:
        if isinstance(port := link.owner, EdgePort):
            self.edge_ports.close(port, text)
        elif isinstance(link.owner, HeadPort):
            self.last_error = text
        else:
            self.refusal = self.last_error = text

    def on_home_lost(self) -> None:
        self.division.forget()
        self.publishers_at_heads.on_lost(None)

    def on_attachment_lost(self, attachment: Attachment, reason: str) -> None:
        """Its port was closed. Losing the target of a hand-over is no harm: the subscriber is served as before."""
        if (handover := target_of(attachment)) is not None:
            self.handovers.lose(attachment, handover, willing=False)
        else:
            self.edge_finder.again(attachment.subscriber, reason, exclude=attachment.port.edge)

    # -- frames

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        self.took(link)
        owner = link.owner
        try:
            if isinstance(owner, EdgePort):
                self.edge_records.on_frame(owner, frame, size)
            elif link is self.home.link or isinstance(owner, HeadPort):
                self.head_records.on_frame(link, frame)
        except WireError as error:
            # The link is reliable, so an unreadable frame is no noise and its content is lost. Resume from the tokens.
            self.counters["records_refused_malformed"] += 1
            if isinstance(owner, EdgePort):
                self.edge_ports.close(owner, str(error))
            else:
                self.head_records.distrust(link, str(error))

    # -- time

    def on_tick(self) -> None:
        self.home.on_tick()
        self.edge_ports.close_away()
        self.edge_finder.on_tick()
        self.subscribers_at_edges.send_changes()
        self.edge_ports.close_idle()
        self.publisher_moves.tick()
        for member in list(self.members.values()):
            self.guard(member, member.on_tick)
        self.publishers_at_heads.open_again()
        self.publishers_at_heads.leave_lost_heads()
        self.head_ports.close_idle()

    def wake_at(self) -> float:
        at = min(self.edge_finder.wake_at(), self.edge_ports.wake_at())
        at = min(at, self.publisher_moves.wake_at(), self.publishers_at_heads.wake_at(), self.head_ports.wake_at())
        return min([at, self.home.wake_at(), *(member.wake_at() for member in self.members.values())])

    def status(self) -> dict[str, Any]:
        phases = [s.phase.value for s in self.subscribers.values()]
        return {
            **super().status(),
            **self.home.status(),
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
