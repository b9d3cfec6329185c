"""An edge: serves subscribers from its head's stream, and never makes one of them wait for another.

Messages of the stream are dealt with in order. The stream passes over subscribers that are not LIVE (resuming, catching
up, blocked); they are served from the head's log. The edge announces upward the covering set of all its subscriptions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plimsoll.core.config import BrokerConfig
from plimsoll.core.edge.attachment import AttachmentState, LinkAttachments
from plimsoll.core.edge.attachments import AttachmentTable
from plimsoll.core.edge.balancing import estimation, policy_change
from plimsoll.core.edge.balancing.agent import BalancingAgent, TrafficRecorder
from plimsoll.core.edge.bundle_meter import BundleMeter
from plimsoll.core.edge.catchup_cursor import CatchupCursor
from plimsoll.core.edge.catchup_replay import CatchupReplay
from plimsoll.core.edge.client_requests import ClientRequests
from plimsoll.core.edge.edge_report import EdgeAddress, StreamPlace, edge_report
from plimsoll.core.edge.handover.source import HandoverSource
from plimsoll.core.edge.handover.target import HandoverTarget
from plimsoll.core.edge.head_messages import HeadMessages
from plimsoll.core.edge.kept_places import kept_again, left_again
from plimsoll.core.edge.load_reports import EdgeLoadReports
from plimsoll.core.edge.queues import DeliveryQueues, QueueOutcomes
from plimsoll.core.edge.stream_input import QueuedMessage, StreamInput
from plimsoll.core.edge.subscription_listing import subscription_page
from plimsoll.core.edge.subscription_table import SubscriptionTable
from plimsoll.core.edge.topic_meter import TopicMeter
from plimsoll.core.edge.undivided import UndividedSubscribers
from plimsoll.core.metering.meter import LoadMeter
from plimsoll.core.metering.service_queue import ServiceQueue
from plimsoll.core.permissions import NOT_PERMITTED, foreign_name, name_of_broker
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.slice_names import owner_identity, slice_of_name
from plimsoll.core.protocol.wire import Info
from plimsoll.core.spec.types.policy import PolicySpec
from plimsoll.core.transport.client_intake import ClientIntake
from plimsoll.core.transport.hooks import CREDIT_HELD_ABOVE_RECORDS
from plimsoll.core.transport.link import NEVER, Link, Peer
from plimsoll.core.transport.load_reporter import LoadReporter
from plimsoll.core.transport.overlay_node import OverlayNode, link_limits, output_bucket

LEAVING_SECONDS = 10.0
"""How long an edge that leaves waits for its subscribers to arrive elsewhere."""


class Edge(OverlayNode):
    """The machine of an edge: puts the parts together, and delivers publications.

    `epoch` is made at process start and never used again. `position` and `head_epoch`: how far the head's log has been
    dealt with, and in which life of the head.
    """

    def __init__(self, config: BrokerConfig, epoch: int, new_id: Callable[[], int], public_key: str = "") -> None:
        super().__init__(
            Info(config.name, "edge", epoch),
            link_limits(config),
            new_id,
            max_frame_bytes=config.limits.max_frame_bytes,
            bucket=output_bucket(config),
        )
        if config.head is None:
            raise ValueError(f"edge {config.name}: config.head is missing; an edge needs the head that it belongs to")
        self.config, self.epoch, self.public_key = config, epoch, public_key
        self.position = self.head_epoch = 0
        self.head_endpoint = ""
        self.leaving_since: float | None = None
        self._next_progress = 0.0
        self.subscription_table = SubscriptionTable(
            config.name, config.limits, compiled=config.hardware.may_compile
        )  # fmt: skip
        # What the hot path needs, within reach.
        self.index, self.holders = self.subscription_table.index, self.subscription_table.holders
        self._with_several, self._closed = self.subscription_table.with_several, self.subscription_table.closed
        self._record_traffic: TrafficRecorder | None = None
        self.bundle_meter: BundleMeter | None = None
        self.undivided = UndividedSubscribers()
        self.topic_meter: TopicMeter | None = None

        by_link: dict[Link, LinkAttachments] = {}
        self.cursor = CatchupCursor()
        self.queues = DeliveryQueues(self, self.cursor, by_link)
        self.attachments = AttachmentTable(self, self.subscription_table, by_link, self.cursor, self.queues)
        self.handover_source = HandoverSource(self, self.attachments)
        self.handover_target = HandoverTarget(self, self.attachments)
        self.queues.outcomes = QueueOutcomes(
            self.attachments.disconnect, self.handover_target.on_buffer_full, self.handover_source.on_cut_reached
        )
        client_requests = ClientRequests(self, self.attachments, self.handover_target)
        self.client_intake = ClientIntake(self, client_requests.handle)
        replay = CatchupReplay(self, self.cursor, self.subscription_table, self.queues)
        self.head_messages = HeadMessages(
            self, self.attachments, self.handover_source, self.handover_target, replay
        )  # fmt: skip

        self.server: ServiceQueue[QueuedMessage] = ServiceQueue(config.hardware)
        self.meter = LoadMeter()
        self.stream_input = StreamInput(self, self.head_messages)
        self.reporter = LoadReporter(self, config, epoch, self.meter)
        policy = estimation.policy_of(config.policy)
        self.balancing_agent = BalancingAgent(self, config, policy) if policy is not None else None
        self._take_policy(policy)
        self.load_reports = EdgeLoadReports(self)
        self.head = self.dial(config.head.name, config.head.data, config.head.public_key)
        self.dial_control(config.head.name, config.head.control, config.head.public_key)

    @property
    def name(self) -> str:
        return self.config.name

    # -- links

    def admits(self, info: Info) -> str:
        if info.role != "client":
            return f"{self.config.name} is an edge; a {info.role} belongs to a head"
        if info.name in (self.name, self.config.head_name):
            return name_of_broker(info.name)
        return "" if self.leaving_since is None else f"{self.config.name} is leaving; ask the head for another edge"

    def on_open(self, link: Link) -> None:
        """A client's link, or a new stream from the head: then the report goes ahead of all other messages on it."""
        if link is not self.head:
            link.owner = self.attachments.by_link[link] = LinkAttachments(link)
            return
        before, self.head_epoch = self.head_epoch, link.incarnation
        records = self.attachments.by_subscriber.values()
        at = StreamPlace(self.head_messages.position_epoch, self.position)
        has_restarted = before != self.head_epoch
        goes_on = has_restarted and link.remote is not None and link.remote.remembers(at.epoch)
        # Subscribers outlast a restart of the head, those that are away too, or others could take their names. A head
        # that has forgotten nothing goes on where this edge has got to; from another one they get a gap, and slices
        # begin anew. Without a restart the link has lost an unknown part of the stream: then all have to resume
        # (docs/handover.md, 8).
        gone = [a for a in records if a.state is not AttachmentState.LIVE or before == self.head_epoch]
        why = "the head has restarted; resume from your token"
        if has_restarted:
            # One that has forgotten knows of no hand-over: what arrives here goes back, and only who is away is kept.
            away = [
                a for a in gone
                if a.may_outlast_head
                and (goes_on or (a.state is AttachmentState.CLOSED and slice_of_name(a.subscriber) is None))
            ]  # fmt: skip
            kept = set(map(id, away))
            gone = [a for a in gone if id(a) not in kept]
            self.attachments.keep_places(away, "head", why)
        self.attachments.evict(gone, "head", why)
        self.handover_source.restart()
        self.handover_target.restart()
        self.cursor.reset()
        self.head.buffer.clear()  # gathered for the old stream, and wrong ahead of the report
        mediator_epoch = self.head_messages.mediator_epoch
        told = EdgeAddress(self.config.advertised, self.public_key)
        here = list(self.attachments.by_subscriber.values())
        had = at.position if goes_on else 0
        for place in kept_again(here, had):
            self.say(self.head, place)
        for claims in self.head_messages.all_claims():
            self.say(self.head, claims)
        for message in edge_report(self.attachments, told, mediator_epoch, self.bundle_meter, at):
            self.say(self.head, message)
        for left in left_again(here, had):
            self.say(self.head, left)
        if self.is_leaving:
            self.say(self.head, msg.Leaving())

    def on_lost(self, link: Link) -> None:
        if link is self.head:
            return
        self.client_intake.drop(link)
        link_attachments = self.attachments.by_link.pop(link)
        self.queues.forget(link_attachments)
        for attachment in list(link_attachments.by_id.values()):
            self.attachments.close(attachment)

    def on_granted(self, link: Link) -> None:
        """Close what the peer may no longer have. Its places stay, like those of any subscriber that is away."""
        if not isinstance(link_attachments := link.owner, LinkAttachments):
            return
        for attachment in list(link_attachments.by_id.values()):
            x, why = attachment.subscriber, link.grant.subscribe_refusal
            whose = owner_identity(x, link.identity)
            if not why and not self.name_grants.permits(whose, x, whose):
                why = foreign_name("subscriber", x)  # a prefix of it is granted to others now
            why = why or self.subscription_table.regrant(attachment)
            if why:
                self.counters["roles_refused"] += 1
                self.attachments.close_and_notify(attachment, NOT_PERMITTED, why)

    def holds(self, link: Link) -> bool:
        """What clients ask for travels to the head; while the head does not take it, clients get no credit."""
        return super().holds(link) or len(self.head.buffer) > CREDIT_HELD_ABOVE_RECORDS

    def on_room(self, link: Link) -> None:
        if isinstance(link_attachments := link.owner, LinkAttachments) and (link_attachments.queued or link.buffer):
            self.queues.refill(link_attachments)
            self.dirty[link] = None

    def on_stuck(self, link: Link) -> None:
        if isinstance(link_attachments := link.owner, LinkAttachments):
            link.is_stuck = True
            self.queues.stuck(link_attachments)

    def on_moving(self, link: Link) -> None:
        if isinstance(link_attachments := link.owner, LinkAttachments):
            link_attachments.recount()
            if link_attachments.stuck_since is not None:
                self.meter.output_wait_seconds += self.now - link_attachments.stuck_since
            link_attachments.stuck_since = self.now if link.buffer else None
            link.is_stuck = bool(link.buffer)

    def up(self, message: msg.FromEdge) -> None:
        """Send to the head, behind the arrivals that have gathered: DONE must not come after what follows from it.

        From a COVER nothing follows: a batch that arrives with many of them is still reported together.
        """
        if not isinstance(message, msg.Cover) or message.more:
            self._send_arrivals()
        self.say(self.head, message)

    def _send_arrivals(self) -> None:
        for arrival in self.handover_target.reports.collect():
            self.say(self.head, arrival)

    # -- frames of messages

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        if link is self.head:
            self.stream_input.on_frame(frame)
        else:
            self.client_intake.on_frame(link, frame, size)

    def deliver(self, pub: msg.PubOpen, piece: bytes) -> None:
        """Hot path: one publication to all that it matches. Links are flushed at the end of the round."""
        self.position = pub.position
        holders, dirty = self.holders, self.dirty
        ids: list[int] = self.index.match(pub.body.attributes)
        if self._closed.numbers:
            ids = self._closed.open_to(ids, pub.body.attributes)
        if self._with_several:
            ids = self.subscription_table.once(ids, pub.position)
        if self.topic_meter is None:
            for attachment in map(holders.__getitem__, ids):
                out = attachment.out
                if not out:
                    dirty[attachment.link] = None
                out.append(attachment.deliver_prefix + piece)
        else:  # the same, and counted
            for attachment in map(holders.__getitem__, ids):
                out = attachment.out
                if not out:
                    dirty[attachment.link] = None
                out.append(attachment.deliver_prefix + piece)
                attachment.matched += 1
            self.topic_meter.note(pub, len(piece), len(ids))
        self.meter.deliveries += len(ids)
        if self._record_traffic is not None:
            self._record_traffic(pub.publisher, pub.body.attributes, len(piece), self.now)
        if self.bundle_meter is not None:
            self.bundle_meter.note(pub.body.attributes, len(piece), len(ids))

    # -- time

    def on_tick(self) -> None:
        self.stream_input.serve()
        self.client_intake.tick()
        for cover in self.subscription_table.tidy():
            self.up(cover)
        self.handover_source.report_closed()
        self.queues.tick()
        self.meter.set_aside(self.queues.silent.take())
        self._send_arrivals()
        if (fetch := self.cursor.begin() if self.head.open else None) is not None:
            self.say(self.head, fetch)
        if self.now >= self._next_progress:
            self._next_progress = self.now + self.config.limits.progress_seconds * self.config.time_factor
            self.attachments.send_progress()
            self.attachments.expire_leases()
            self.handover_target.expire()
            self.handover_target.claims.expire()
            self.head_messages.expire_claims()
            self.handover_target.delivery_audit.query()
        if self.reporter.due(self.now):
            self.load_reports.send()
            self.attachments.send_elsewhere(self.undivided.some(self.attachments.by_subscriber))
        if self.balancing_agent is not None:
            # Not in __init__: rates are counted from the time at which the edge begins to see publications.
            self._record_traffic = self._record_traffic or self.balancing_agent.begin()
            self.balancing_agent.tick()

    def wake_at(self) -> float:
        if not self.subscription_table.is_tidy:
            return self.now
        agent_at = self.balancing_agent.wake_at() if self.balancing_agent is not None else NEVER
        intake_at = self.client_intake.wake_at()
        return min(self._next_progress, self.server.wake_at(), self.reporter.next_report, agent_at, intake_at)

    def served(self, frames: int, seconds: float) -> None:
        if self.server.transparent and frames:
            self.meter.count_round(seconds, len(self.index))

    # -- control

    def on_control(self, peer: Peer, record: msg.ControlRecord) -> None:
        """Commands of the head. Of others, mediators are heard: LEAVE, and listings; collectors ask for parameters."""
        message = self.reporter.on_control(peer, record, self.now)
        if isinstance(message, msg.Leave):
            if peer in self.reporter.mediators:
                self.leave(self.now)
        elif isinstance(message, msg.ListSubscriptions):
            if peer in self.reporter.mediators:
                self.say_control(peer, subscription_page(message, self.epoch, self.attachments.by_subscriber))
        elif isinstance(message, msg.ListParameters):
            if peer in self.reporter.mediators or peer in self.reporter.collectors:
                self.say_control(peer, self.subscription_table.parameters.page(message, self.epoch))
        elif peer != self.config.head_name:
            return
        elif isinstance(message, msg.Revoke):
            self.handover_source.on_revoke(message)
        elif isinstance(message, msg.ClusterPolicy):
            agent = policy_change.agent_after(self, self.config, self.balancing_agent, message.policy)
            if agent is not self.balancing_agent:
                self.balancing_agent, self._record_traffic = agent, None  # it begins with the next tick
                self._take_policy(None if agent is None else agent.policy)
        elif isinstance(message, msg.BundleTable):
            if self.bundle_meter is not None:
                here = self.attachments.by_subscriber
                self.attachments.send_elsewhere(here[x] for x in self.bundle_meter.take(message, here))
        elif isinstance(message, msg.PublisherPaths):
            if self.topic_meter is not None:
                self.topic_meter.paths.take(message, self.topic_meter.required.attribute)
        elif self.balancing_agent is not None and isinstance(
            message, msg.PeerLoads | msg.Reservation | msg.ProfileQuery
        ):
            self.balancing_agent.on_control(message)

    def _take_policy(self, policy: PolicySpec | None) -> None:
        """Count by bundle or by topic, as the policy wants it."""
        before = self.bundle_meter
        self.bundle_meter = meter = policy_change.bundle_meter_after(before, policy, self.now)
        if meter is not before:
            self.undivided.begin("" if meter is None else meter.attribute, self.attachments.by_subscriber)
        self.topic_meter = policy_change.topic_meter_after(self.topic_meter, policy, self.config.head_name, self.now)
        self.heartbeats.measure_ways(closely=self.topic_meter is not None)

    def to_head(self, message: msg.ControlRecord) -> None:
        """Send to the head on the control socket, where a message may be lost."""
        self.say_control(self.config.head_name, message)

    # -- leaving

    @property
    def is_leaving(self) -> bool:
        return self.leaving_since is not None

    def leave(self, now: float) -> None:
        """Send every subscriber elsewhere; each goes on from its token, so nothing is lost."""
        self.now = now
        if self.is_leaving:
            return
        self.leaving_since = now
        self.say(self.head, msg.Leaving())  # first: the head must not place those who leave here again
        self.handover_target.leave()
        self.attachments.send_elsewhere(self.attachments.by_subscriber.values())

    def done(self) -> bool:
        """Whether every subscriber has arrived elsewhere, or the time for it is over."""
        if self.leaving_since is None:
            return False
        is_late = self.now - self.leaving_since > LEAVING_SECONDS * self.config.time_factor
        return not self.attachments.by_subscriber or is_late or not self.head.was_open

    def status(self) -> dict[str, Any]:
        states = [a.state.value for a in self.attachments.by_subscriber.values()]
        return {
            **super().status(),
            "cluster": self.config.cluster,
            "epoch": self.epoch,
            "ready": self.head.open,
            "head_epoch": self.head_epoch,
            "position": self.position,
            "subscriptions": len(self.index),
            "cover": len(self.subscription_table.cover),
            "slots": len(self.handover_target.slots),
            "mediator": self.head_messages.mediator_epoch,
            "subscribers": {state.value: states.count(state.value) for state in AttachmentState},
            "leaving": self.is_leaving,
            "plain": self.config.security.plain,
        }
