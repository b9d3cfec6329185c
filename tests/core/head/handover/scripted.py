"""A real head in virtual time, with scripted edges, a scripted neighbour and a scripted mediator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeVar

from msgspec import Raw
from tests.core.fleet import STOCK, Fleet, Mediator

from plimsoll.core.head.machine import Head
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link, LinkLimits
from plimsoll.core.transport.overlay_node import OverlayNode

T = TypeVar("T")
Epoch = tuple[int, int]


class Broker(OverlayNode):
    """Dials a head as an edge, or as a neighbour whose name sorts first; records all that it receives, in order."""

    def __init__(self, fleet: Fleet, name: str, head: str, role: Literal["edge", "head"] = "edge") -> None:
        fleet.epoch += 1
        limits = LinkLimits(heartbeat_seconds=0.5, dead_seconds=2.0)
        super().__init__(Info(name, role, fleet.epoch), limits, fleet.ids(), max_frame_bytes=2**20)
        self.name, self.role, self.head = name, role, head
        self.now = fleet.now
        self.seq = 0
        self.heard: list[Any] = []
        self.control_heard: list[Any] = []
        self.owned: list[msg.OwnedItem] = []
        self.mediator_epoch = 0
        self.reports = self.answers = True
        self.link = self.dial(head, f"mem://{head}")
        self.dial_control(head, f"ctl://{head}")
        fleet.nodes[name] = self

    def on_open(self, link: Link) -> None:
        if self.reports:
            self.report()

    def report(self) -> None:
        self.seq = 1
        whole = msg.Cover(1, [], [])
        if self.role == "head":
            self.say(self.link, msg.NeighborReport(whole, self.mediator_epoch))
        else:
            report = msg.EdgeReport(f"mem://{self.name}", "", whole, self.owned, mediator=self.mediator_epoch)
            self.say(self.link, report)
        self.say_control(self.head, msg.Identify(self.name, self.role, self.info.incarnation))

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        decoder = msg.to_edge if self.role == "edge" else msg.between_heads
        self.heard += [decoder.decode(raw) for raw in frame.records]
        for record in self.heard[-len(frame.records) :] if self.answers else ():
            if isinstance(record, msg.Abort) and record.ask:
                names = [item.subscriber for item in record.members]
                self.tell(msg.HandoverRejected(record.session, names, "served: is served as before"))
        self.took(link)

    def on_control(self, peer: Any, record: Any) -> None:
        self.control_heard.append(record)

    # -- what a test makes it send

    def tell(self, *records: Any) -> None:
        for record in records:
            self.say(self.link, record)

    def cover(self, *texts: str) -> msg.Cover:
        self.seq += 1
        return msg.Cover(self.seq, [msg.CoverItem(1000 * self.seq + i, text) for i, text in enumerate(texts)], [])

    def resume(self, x: str, epoch: Epoch, named: str | None = None, token: wire.Token | None = None) -> None:
        self.tell(msg.ResumeUp(x, epoch, self.cover(STOCK), token, named))

    def request(self, session: str, *members: str, epoch: Epoch = (1, 5)) -> None:
        items = [msg.MemberItem(x, epoch) for x in members]
        self.tell(msg.CutRequest(session, self.cover(STOCK), items))

    def route(self, record: Any, edge: str = "", to: str = "h", source: str = "") -> None:
        self.tell(msg.Route(to, source or self.name, edge, Raw(wire.encode(record))))

    # -- what it has received

    def of(self, kind: type[T]) -> list[T]:
        return [record for record in self.heard if isinstance(record, kind)]

    def routed(self) -> list[tuple[str, str, Any]]:
        """What was sent to other heads over this link: the head, the edge, and the message."""
        return [(route.to, route.edge, msg.routed.decode(route.item)) for route in self.of(msg.Route)]

    def kinds(self) -> list[str]:
        """The hand-over records and the records between them, by kind, in the order of the stream."""
        return [type(record).__name__ for record in self.heard if not isinstance(record, QUIET)]


QUIET = (msg.Progress, msg.CoverAck, msg.Welcome)


class Cluster:
    """A head `h` with scripted edges, and a mediator of epoch 3 that numbers its commands."""

    def __init__(self, *edges: str, neighbors: tuple[str, ...] = (), **limits: Any) -> None:
        self.fleet = Fleet(limits=limits)
        self.fleet.cluster("h", list(edges), neighbors)
        self.fleet.start("h")
        self.edges = {name: Broker(self.fleet, name, "h") for name in edges}
        self.neighbors = {name: Broker(self.fleet, name, "h", "head") for name in neighbors if name < "h"}
        self.fleet.run(1.0)
        self.mediator: Mediator = self.fleet.mediator("h")
        self.fleet.run(0.1)

    @property
    def head(self) -> Head:
        return self.fleet.head("h")

    def run(self, seconds: float = 0.1) -> None:
        self.fleet.run(seconds)

    def serve(self, edge: str, *subscribers: str, epoch: Epoch = (1, 4)) -> None:
        for x in subscribers:
            self.edges[edge].resume(x, epoch)
        self.run()

    def plan(self, *members: str, **changed: Any) -> msg.HandoverPlan:
        given: dict[str, Any] = {
            "source": "a",
            "target": "b",
            "target_head": "h",
            "members": list(members),
            "replay": False,
            "prepare_seconds": 4.0,
            "drain_seconds": 6.0,
            **changed,
        }
        return msg.HandoverPlan(**given)

    def command(
        self, step: Any, session: str = "3.1", mediator: int = 3, plan: msg.HandoverPlan | None = None
    ) -> msg.Outcome:
        """The answer to a command."""
        before = len(self.outcomes())
        identify = msg.Identify("mediator", "mediator", mediator)
        command = msg.Command(mediator, self.head.epoch, session, step, plan)
        self.mediator.say_control("h", identify, command)
        self.run()
        return next(outcome for outcome in self.outcomes()[before:] if outcome.session == session)

    def outcomes(self) -> list[msg.Outcome]:
        return [record for record in self.mediator.heard["h"] if isinstance(record, msg.Outcome)]

    def states(self, session: str = "3.1") -> dict[str, str]:
        return dict(self.head.coordinator.table.outcome(session).members)

    def served(self, edge: str) -> list[str]:
        self.mediator.say_control("h", msg.Identify("mediator", "mediator", 3), msg.ListSubscribers(77, edge))
        self.run()
        *_, last = (record for record in self.mediator.heard["h"] if isinstance(record, msg.SubscriberPage))
        return list(last.subscribers)

    def prepare(self, *members: str, session: str = "3.1", **changed: Any) -> None:
        """As far as ready: all are attached at the target, by drain."""
        plan = self.plan(*members, **changed)
        self.command("prepare", session, plan=plan)
        if plan.target_head == "h":
            target = self.edges[plan.target]
            target.tell(msg.Slot(session, list(members), f"mem://{plan.target}", ""))
            if not plan.replay:
                target.tell(msg.TargetAttached(session, list(members)))
            self.run()

    def cut(self, *members: str, session: str = "3.1", **changed: Any) -> None:
        """As far as the cut, by drain: INSTALL has been answered by CUT_REQUEST."""
        self.prepare(*members, session=session, **changed)
        self.command("cut", session)
        target = self.edges[changed.get("target", "b")]
        target.request(session, *members)
        self.run()

    def publish(self, count: int = 1) -> Iterator[None]:
        """A publisher; each step publishes and lets it arrive."""
        from tests.core.fleet import Publishing

        client = self.fleet.client("p", "h")
        publishing = Publishing(client, "h")
        self.run()
        while True:
            publishing.publish(count)
            self.run()
            yield


def items(*members: str, epoch: tuple[int, int] = (1, 4)) -> list[msg.MemberItem]:
    """Members, all of one owner epoch."""
    return [msg.MemberItem(x, epoch) for x in members]
