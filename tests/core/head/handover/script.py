"""A scripted head with real edges around it: the edge's side of hand-over, record by record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec
from tests.core.fleet import STOCK, Client, Fleet, resume

from plimsoll.core.config import BrokerHardware
from plimsoll.core.edge.attachment import EdgeAttachment
from plimsoll.core.edge.machine import Edge
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link, LinkLimits
from plimsoll.core.transport.overlay_node import OverlayNode

S = "7.1"
"""The session that tests are about."""
T = TypeVar("T")


class ScriptedHead(OverlayNode):
    """Welcomes edges, acknowledges covers, answers RESUME_UP and FETCH; the rest is the test's.

    `log` has (position, record) of all that was published. `answers`: whether RESUME_UP and covers are answered.
    """

    def __init__(self, name: str, epoch: int, new_id: Callable[[], int]) -> None:
        limits = LinkLimits(heartbeat_seconds=0.5, dead_seconds=2.0)
        super().__init__(Info(name, "head", epoch), limits, new_id, max_frame_bytes=2**20)
        self.epoch = epoch
        self.position = 0
        self.log: list[tuple[int, bytes]] = []
        self.first = 1
        self.links_of: dict[str, Link] = {}
        self.control_of: dict[str, Any] = {}
        self.heard: defaultdict[str, list[Any]] = defaultdict(list)
        self.answers = self.fetches = True
        self.kept: list[tuple[Link, msg.Fetch]] = []

    def on_open(self, link: Link) -> None:
        self.links_of[link.name] = link

    def on_room(self, link: Link) -> None:
        if link.buffer:
            self.dirty[link] = None

    def on_control(self, peer: Any, record: Any) -> None:
        if isinstance(record, msg.Identify):
            self.control_of[record.name] = peer

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        for raw in frame.records:
            record = msg.from_edge.decode(raw)
            self.heard[link.name].append(record)
            if isinstance(record, msg.EdgeReport) and not record.more:
                self.say(link, msg.Welcome(self.position))
            elif isinstance(record, msg.Fetch):
                self.kept.append((link, record))
            elif self.answers and isinstance(record, msg.ResumeUp):
                self.resumed(link, record)
            elif self.answers and isinstance(record, msg.Cover) and not record.more:
                self.say(link, msg.CoverAck(record.seq, []))
        if self.fetches:
            self.fetch()
        self.took(link)

    def resumed(self, link: Link, up: msg.ResumeUp) -> None:
        start = up.token[2] if up.token else self.position
        self.say(
            link,
            msg.ResumedDown(up.subscriber, up.epoch, self.position, start, (self.epoch, start), None, False),
            )  # fmt: skip
        self.say(link, msg.CoverAck(up.cover.seq, []))

    def fetch(self) -> None:
        """Answer what edges have asked of the log, all of it."""
        for link, fetch in self.kept:
            low = fetch.after + 1
            if low < self.first:
                last = [("h", self.epoch, self.first - 1)]
                gap = msg.Gap("h", self.epoch, low, self.epoch, self.first - 1, last, "log")
                self.say(link, msg.Replay(fetch.cursor, gap))
            for position, record in self.log:
                if position > fetch.after and position >= self.first:
                    self.put(link, b"\x93\x38\xce" + fetch.cursor.to_bytes(4, "big") + record)
            self.say(link, msg.Fetched(fetch.cursor, self.position, True))
        self.kept = []

    # -- for tests

    def tell(self, edge: str, *records: Any) -> None:
        for record in records:
            self.say(self.links_of[edge], record)

    def publish(self, *edges: str, count: int = 1, size: int = 0, **attributes: Any) -> None:
        """Publications numbered by their position, to these edges."""
        for _ in range(count):
            self.position += 1
            at = self.position
            body = msgspec.Raw(wire.encode(msg.Body({"class": "STOCK", "n": at, **attributes}, b"x" * size)))
            record = wire.encode(msg.Pub(at, "h", self.epoch, at, "p", 1, at, 0, 0, body))
            self.log.append((at, record))
            for edge in edges:
                self.put(self.links_of[edge], record)

    def of(self, edge: str, kind: type[T]) -> list[T]:
        """All records of one kind that an edge has sent."""
        return [record for record in self.heard[edge] if isinstance(record, kind)]

    def token(self) -> wire.Token:
        return ("h", self.epoch, self.position)


class Stage:
    """Head `h`, its edges `a` and `b`, and a client `c` with a link to each."""

    def __init__(self, hardware: dict[str, BrokerHardware] | None = None, **limits: Any) -> None:
        self.fleet = Fleet(1, limits)
        self.fleet.cluster("h", ["a", "b"], hardware=hardware)
        self.fleet.start("a", "b")
        self.new_head(100)
        self.client = self.fleet.client("c", "a", "b")
        self.run()

    def new_head(self, epoch: int) -> ScriptedHead:
        self.head = ScriptedHead("h", epoch, self.fleet.ids())
        self.head.now = self.fleet.now
        self.fleet.nodes["h"] = self.head
        self.run(0.8)
        return self.head

    def run(self, seconds: float = 0.05) -> None:
        self.fleet.run(seconds)

    def edge(self, name: str) -> Edge:
        return self.fleet.edge(name)

    def another(self, name: str) -> Client:
        client = self.fleet.client(name, "a", "b")
        self.run()
        return client

    # -- steps

    def tell(self, edge: str, *records: Any) -> None:
        """The head sends a record to an edge."""
        self.head.tell(edge, *records)
        self.run()

    def ask(self, edge: str, *records: Any) -> None:
        """The client sends a record to an edge."""
        self.client.tell(edge, *records)
        self.run()

    def publish(self, *edges: str, count: int = 1, size: int = 0, **attributes: Any) -> None:
        self.head.publish(*edges, count=count, size=size, **attributes)
        self.run()

    def attach(self, *subscribers: str, text: str = STOCK, **policy: Any) -> None:
        """Subscribers at `a`: attachments 1, 2 ..., owner epoch (1, 2)."""
        self.ask("a", *[resume(i, x, text, n=2, **policy) for i, x in enumerate(subscribers, 1)])

    def prepare(self, *subscribers: str, seconds: float = 9.0, replay: bool = False, session: str = S) -> None:
        self.tell("b", msg.Prepare(session, list(subscribers), seconds, replay))

    def dark(self, *subscribers: str, texts: tuple[str, ...] = (STOCK,), **policy: Any) -> None:
        """These are attached at `b`: attachments 11, 12 ..., owner epoch (1, 3)."""
        self.prepare(*subscribers)
        self.ask("b", *[attach(i, x, *texts, **policy) for i, x in enumerate(subscribers, 11)])

    def cutting(self, *subscribers: str, texts: tuple[str, ...] = (STOCK,), **policy: Any) -> None:
        self.dark(*subscribers, texts=texts, **policy)
        self.tell("b", msg.Install(S, list(subscribers)))

    def hold(self, *subscribers: str, texts: tuple[str, ...] = (STOCK,), **policy: Any) -> None:
        self.cutting(*subscribers, texts=texts, **policy)
        self.installed(*subscribers)

    def installed(self, *subscribers: str) -> None:
        since = [(self.head.epoch, self.head.position)] * len(subscribers)
        self.tell("b", msg.Installed(S, list(subscribers), self.head.position, since))

    def state(self, edge: str, subscriber: str = "x") -> str:
        """The state of an attachment, or an empty string if there is none."""
        record = self.edge(edge).attachments.by_subscriber.get(subscriber)
        return "" if record is None else record.state.value

    def record(self, edge: str, subscriber: str = "x") -> EdgeAttachment:
        return self.edge(edge).attachments.by_subscriber[subscriber]

    def said(self, edge: str, kind: type[T]) -> list[T]:
        """What an edge has sent to the client."""
        return self.client.of(edge, kind)

    def shuts(self, edge: str) -> list[tuple[int, str]]:
        return [(shut.attachment, shut.code) for shut in self.said(edge, msg.AttachmentClosed)]

    def numbers(self, edge: str, attachment: int) -> list[int]:
        return self.client.numbers(edge, attachment)


def singly(record: Any) -> Iterator[tuple[int, Any]]:
    """The attachments that a record is about, 0 for none, each with its part of the record."""
    if isinstance(record, msg.MoveTo | msg.Held):
        for item in record.members:
            yield item.attachment, (record if isinstance(record, msg.MoveTo) else item)
    elif isinstance(record, msg.End | msg.Moved):
        for number in record.attachments:
            yield number, record
    else:
        yield getattr(record, "attachment", 0), record


def attach(
    attachment: int, subscriber: str, *texts: str, n: int = 3, session: str = S, version: int = 1, **policy: Any
) -> msg.Attach:
    items = [msg.SubscriptionItem(i, text) for i, text in enumerate(texts or (STOCK,), 1)]
    return msg.Attach(session, [msg.AttachItem(attachment, subscriber, (1, n), version, items, msg.Policy(**policy))])


def members(*subscribers: str, n: int = 2) -> list[msg.MemberItem]:
    """With the owner epoch that they have at the source."""
    return [msg.MemberItem(x, (1, n)) for x in subscribers]


def is_empty(edge: Edge) -> bool:
    """Whether nothing is left: no attachment, slot, subscription, cover or pending SUBACK."""
    held = edge.subscription_table
    return not (
        edge.attachments.by_subscriber
        or edge.handover_target.slots
        or len(held)
        or held.holders
        or held.with_several
        or held.cover.member_count
        or any(port.by_id or port.queued for port in edge.attachments.by_link.values())
    )


STATES = ["dark", "cutting", "hold"]


def at(state: str, **limits: Any) -> Stage:
    """`x` is in this state at `b`, as attachment 11."""
    stage = Stage(**limits)
    getattr(stage, state)("x")
    assert stage.state("b") == state
    return stage


def lose_link(stage: Stage, edge: str = "b") -> None:
    """The client gives its link up."""
    stage.client.handshakes.reopen(stage.client.dialled[edge], "gone")
    stage.run()
