"""An edge of the queueing model: a server with a queue in front of it, and an output behind it.

The stream from the head is a queue of publications and messages in order. A publication takes the emulated hardware's
time, and what it matches is handed to the output; a message takes no time and is dealt with in its turn. The queue is
advanced whenever something asks, so a publication costs no event.

Subscriptions, cover, load reports, detection, samples and profiles are the product's own parts.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from plimsoll.core.config import BrokerConfig
from plimsoll.core.edge.attachment import SERVED, AttachmentState, EdgeAttachment
from plimsoll.core.edge.balancing import estimation, policy_change
from plimsoll.core.edge.balancing.agent import BalancingAgent, TrafficRecorder
from plimsoll.core.edge.load_reports import configured_fields
from plimsoll.core.edge.subscription_table import SubscriptionTable
from plimsoll.core.metering.service_queue import ServicedItem, ServiceQueue
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Info, OwnerEpoch
from plimsoll.core.transport.link import Link, LinkLimits
from plimsoll.simulator.queueing.broker import EPOCH, ControlWorld, QueueingBroker
from plimsoll.simulator.queueing.edge_output import EdgeOutput, OutputWorld
from plimsoll.simulator.queueing.memory import memory_ratio
from plimsoll.simulator.queueing.publications import Publication
from plimsoll.simulator.queueing.topic_loads import TopicLoads


class EdgeWorld(ControlWorld, OutputWorld, Protocol):
    """What an edge needs of its world."""

    @property
    def link_seconds(self) -> float: ...
    @property
    def client_seconds(self) -> float: ...
    def handle_message(self, edge: QueueingEdge, message: msg.ToEdge, /) -> None:
        """A message of the stream has come to its turn."""

    def released(self, edge: QueueingEdge, units: Sequence[str], /) -> None:
        """These units are sent away: they look their bundle up again."""


class StreamItem(NamedTuple):
    """A publication or a message of the stream; `arrives_at`: at the server."""

    arrives_at: float
    submitted_at: float
    content: Publication | msg.ToEdge


@dataclass(slots=True)
class Attachments:
    """The subscribers of an edge, as its profiler asks for them."""

    by_subscriber: dict[str, EdgeAttachment] = field(default_factory=dict)


class QueueingEdge(QueueingBroker):
    """`members`: the subscribers that publications are matched against, as a mask; `held`: those before their GO."""

    def __init__(
        self, world: EdgeWorld, config: BrokerConfig, *, is_fair: bool = False, is_by_topic: bool = False
    ) -> None:
        super().__init__(world, config)
        self.world, self.now = world, 0.0
        self.subscription_table = SubscriptionTable(config.name, config.limits, compiled=False)
        self.attachments = Attachments()
        policy = estimation.policy_of(config.policy)
        self.agent = BalancingAgent(self, config, policy) if policy is not None else None
        self.bundle_meter = policy_change.bundle_meter_after(None, policy, 0.0)
        meter = policy_change.topic_meter_after(None, policy, config.head_name, 0.0)
        self.topic_loads = None if meter is None else TopicLoads(meter, world)
        self.output = EdgeOutput(
            world, config, self.meter, self.advance,
            topic_loads=self.topic_loads, is_fair=is_fair, is_by_topic=is_by_topic,
        )  # fmt: skip
        self.members = self.held = 0
        self.holding: dict[int, list[Publication]] = {}
        self._cost: ServiceQueue[None] = ServiceQueue(config.hardware)
        self._items: deque[StreamItem] = deque()
        self._messages = 0
        self._free_at = self._arrived_at = 0.0
        self._finish_at: float | None = None
        self._served_with = 0
        self._woken_at = self._tick_at = float("inf")
        self._record_traffic: TrafficRecorder | None = None
        self._link = Link(
            config.name, local=config_info(config), limits=LinkLimits(), initiator=False, new_id=lambda: 1, now=0.0
        )
        self._last_attachment = 0
        self._covers_due: list[msg.Cover] = []

    # -- the stream

    def submit(self, content: Publication | msg.ToEdge, size_bytes: float, arrives_at: float) -> None:
        """Put a publication or a message behind what is on its way here; it has arrived fully at its link's rate."""
        self._arrived_at = max(self._arrived_at, arrives_at)
        if self.config.hardware.input_bytes_per_second is not None:
            self._arrived_at += size_bytes / self.config.hardware.input_bytes_per_second
        self._items.append(StreamItem(self._arrived_at, arrives_at, content))
        if isinstance(content, Publication):
            self.meter.arrivals += 1
            self.meter.bytes_in += content.content.size_bytes
        else:
            self._messages += 1
            self._wake()

    def _wake(self) -> None:
        """Plan to look again when the first message may have come to its turn."""
        ahead = len(self._items) - self._messages
        begins = max(self._free_at, self._items[0].arrives_at)
        at = max(begins, self._items[0].arrives_at) + ahead * self._cost.cost(len(self.subscription_table.index))
        at = max(at, self.world.now)
        if at < self._woken_at:
            self._woken_at = at
            self.world.at(at, self._woken, at)

    def _woken(self, at: float) -> None:
        if at == self._woken_at:
            self._woken_at = float("inf")
            self.advance(self.world.now)
            if self._messages:
                first = next(i for i in self._items if not isinstance(i.content, Publication))
                self._woken_at = max(self.world.now + 1e-4, first.arrives_at, self._free_at)
                self.world.at(self._woken_at, self._woken, self._woken_at)

    def advance(self, until: float) -> None:
        """Serve what is finished by this time. The cost of a publication is fixed when its service begins."""
        items, meter = self._items, self.meter
        while items:
            item = items[0]
            begins = max(self._free_at, item.arrives_at)
            if begins > until:
                break
            content = item.content
            if not isinstance(content, Publication):
                items.popleft()
                self._messages -= 1
                self.now = max(self.now, begins)
                self.world.handle_message(self, content)
                continue
            if self._finish_at is None:
                self._served_with = len(self.subscription_table.index)
                self._finish_at = begins + self._cost.cost(self._served_with)
            if self._finish_at > until:
                break
            finish, self._finish_at = self._finish_at, None
            items.popleft()
            served = ServicedItem(begins - item.submitted_at, finish - begins, True, None, self._served_with)
            meter.count_serviced(served)
            self._free_at = self.now = finish
            self._deliver(content, finish)
        self.now = max(self.now, until)

    def _deliver(self, pub: Publication, now: float) -> None:
        content = pub.content
        matched = pub.mask & self.members
        if self.bundle_meter is not None:
            self.bundle_meter.note(content.attributes, content.size_bytes, matched.bit_count())
        if self.topic_loads is not None:
            self.topic_loads.note(content.opened, content.size_bytes, matched)
        if held := matched & self.held:
            matched &= ~held
            while held:
                bit = held & -held
                self.holding[bit].append(pub)
                held ^= bit
        if matched:
            self.output.send(pub, matched, now)
        if self._record_traffic is not None:
            self._record_traffic(pub.publisher, content.attributes, content.size_bytes, now)

    def waiting_for(self, mask: int) -> list[Publication]:
        """Publications that have not been served and that subscribers of this mask are due."""
        return [i.content for i in self._items if isinstance(i.content, Publication) and i.content.mask & mask]

    # -- subscribers

    def attach(
        self,
        subscriber: str,
        texts: Iterable[str],
        epoch: OwnerEpoch,
        state: AttachmentState = AttachmentState.RESUMING,
    ) -> list[msg.Cover]:
        """Take a subscriber's list, match and cover it; returns the covering update. It is not served yet."""
        self._last_attachment += 1
        attachment = EdgeAttachment(subscriber, self._last_attachment, self._link, epoch, 1, [])
        attachment.state = state
        table = self.subscription_table
        taken = [table.take(attachment, msg.SubscriptionItem(i, text)) for i, text in enumerate(texts)]
        table.confirm(attachment)
        table.install(attachment, taken)
        attachment.is_covered = True
        self.attachments.by_subscriber[subscriber] = attachment
        return table.step(taken, ())

    def serve(self, subscriber: str, *, is_held: bool = False) -> None:
        """From here on the stream's matches are this subscriber's; `is_held`: they wait for its GO."""
        attachment, bit = self.attachments.by_subscriber[subscriber], self.world.bit(subscriber)
        attachment.state = AttachmentState.BUFFERING if is_held else AttachmentState.LIVE
        self.members |= bit
        if self.topic_loads is not None:
            self.topic_loads.serve(bit, attachment)
        if is_held:
            self.held |= bit
            self.holding[bit] = []

    def release_held(self, subscriber: str) -> None:
        """Its GO has come: deliver what was held."""
        bit = self.world.bit(subscriber)
        attachment = self.attachments.by_subscriber[subscriber]
        attachment.state = AttachmentState.LIVE
        self.held &= ~bit
        for pub in self.holding.pop(bit, ()):
            self.output.send(pub, bit, self.world.now)

    def stop_serving(self, subscriber: str) -> None:
        """Stop matching a subscriber; its cover stays."""
        attachment = self.attachments.by_subscriber.get(subscriber)
        if attachment is None:
            return
        bit = self.world.bit(subscriber)
        self.members &= ~bit
        self.held &= ~bit
        self.holding.pop(bit, None)
        if self.topic_loads is not None:
            self.topic_loads.stop_serving(bit)
        attachment.state = AttachmentState.CLOSED
        self.subscription_table.uninstall(attachment)
        self._settle()

    def withdraw(self, subscribers: Iterable[str]) -> list[msg.Cover]:
        """Forget subscribers that are no longer served; returns the covering updates."""
        removes: list[int] = []
        for subscriber in subscribers:
            attachment = self.attachments.by_subscriber.pop(subscriber, None)
            if attachment is not None:
                removes += self.subscription_table.uncover(attachment)
        self.subscription_table.retire(removes)
        self._settle()
        due, self._covers_due = self._covers_due, []
        return due

    def _settle(self) -> None:
        """Do at once what an edge does in bounded steps; the covering updates go up with the next ones."""
        while not self.subscription_table.is_tidy:
            self._covers_due += self.subscription_table.tidy()

    # -- reports and balancing

    def to_head(self, message: msg.ControlRecord) -> None:
        self.say_control(self.config.head_name, message)

    def on_control(self, sender: str, record: msg.ControlRecord) -> None:
        """Take a control record of the head."""
        self.advance(self.world.now)
        if isinstance(record, msg.BundleTable):
            if self.bundle_meter is not None:
                served = [name for name, each in self.attachments.by_subscriber.items() if each.state in SERVED]
                if units := self.bundle_meter.take(record, served):
                    self.world.released(self, units)
        elif isinstance(record, msg.PublisherPaths):
            if self.topic_loads is not None:
                self.topic_loads.meter.paths.take(record, self.topic_loads.meter.required.attribute)
        elif self.agent is not None and isinstance(record, msg.PeerLoads | msg.Reservation | msg.ProfileQuery):
            self.agent.on_control(record)
            self.tick()

    def tick(self) -> None:
        """Let balancing act, and plan its next look."""
        agent = self.agent
        if agent is None:
            return
        self.advance(self.world.now)
        self._record_traffic = self._record_traffic or agent.begin()
        agent.tick()
        at = max(agent.wake_at(), self.world.now + 1e-3)
        if at < self._tick_at or self._tick_at <= self.world.now:
            self._tick_at = at
            self.world.at(at, self._ticked, at)

    def _ticked(self, at: float) -> None:
        if at == self._tick_at:
            self._tick_at = float("inf")
            self.tick()

    def report(self) -> None:
        """Make the load report of the interval that ends now, and send it."""
        self.advance(self.world.now)
        for cover in self.withdraw(()):
            self.world.say(self.name, self.config.head_name, cover)
        self.output.advance(self.now)
        self.meter.bytes_out = round(self.output.departed_bytes(self.now))
        extra, state, agent = self._measured(), "OK", self.agent
        if agent is not None:
            extra |= agent.measured(self.meter)
            state = agent.state
        if self.bundle_meter is not None:
            served = (name for name, each in self.attachments.by_subscriber.items() if each.state in SERVED)
            extra |= self.bundle_meter.report(served, self.now)
        if self.topic_loads is not None:
            extra |= self._topics(self.topic_loads)
        self.reporter.memory_ratio = self._memory_ratio(extra)
        report = self.reporter.make(self.now, state, extra)
        self.reporter.cpu_ratio = min(report["input_utilization"], 1.0)
        if agent is not None:
            agent.load_monitor.on_own_report(report)
        self.to_head(msg.LoadUpdate(report))
        self.tick()

    def _memory_ratio(self, measured: Mapping[str, Any]) -> float:
        come = (each.content for each in self._items if each.arrives_at <= self.now)
        queued = sum(each.content.size_bytes for each in come if isinstance(each, Publication))
        waiting = queued + measured["output_queue_bytes"]
        limit = self.config.hardware.memory_bytes
        return memory_ratio(limit, measured["subscribers"], measured["subscriptions"], waiting)

    def _topics(self, loads: TopicLoads) -> dict[str, Any]:
        waiting = Counter({bit: len(held) for bit, held in self.holding.items()})
        waiting.update(self.output.waiting_items())
        return loads.report(waiting, self.reporter.last, self.config.hardware.output_bytes_per_second, self.now)

    def _measured(self) -> dict[str, Any]:
        attached = self.attachments.by_subscriber.values()
        return {
            "subscribers": sum(each.state in SERVED for each in attached),
            "subscriptions": len(self.subscription_table.index),
            "cover_subscriptions": len(self.subscription_table.cover),
            "input_queue_messages": len(self._items),
            "output_queue_messages": 0,
            "output_queue_bytes": int(self.output.waiting_bytes(self.now)),
            **configured_fields(self.config),
            "counters": {**self.meter.total, **self.counters},
        }


def config_info(config: BrokerConfig) -> Info:
    """How a broker introduces itself on a link."""
    return Info(config.name, config.role, EPOCH)
