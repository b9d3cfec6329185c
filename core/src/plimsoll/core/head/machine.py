"""The head of a cluster: accepts publications, gives them a position, and sends each to the links that need it.

A publication is matched once, when it is logged. Everything that defines a point in a stream travels in that stream,
behind what was sent before it. A restarted head has a new epoch and an empty log; it works again when its edges and
neighbours have reported what they hold, or their lease has passed.

The machine builds the parts and gives each message to the one that deals with it; decisions are the parts' own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, assert_never

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head import log_reader
from plimsoll.core.head.bundles import Bundles
from plimsoll.core.head.client_share import SILENT_SECONDS, ClientShares
from plimsoll.core.head.cluster_policy import ClusterPolicies
from plimsoll.core.head.confirmations import Confirmations
from plimsoll.core.head.cover_turns import COVERING, CoverTurns
from plimsoll.core.head.cover_updates import CoverUpdates
from plimsoll.core.head.distributor import Distributor
from plimsoll.core.head.durability.continuation import EpochContinuation
from plimsoll.core.head.durability.journal import LogJournal, RecoveredLog, durable_log
from plimsoll.core.head.groups.definition import declared_in
from plimsoll.core.head.groups.requests import GroupRequests
from plimsoll.core.head.groups.times import GroupTimes
from plimsoll.core.head.handover.commands import MediatorCommands
from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.head.handover.dispatch import HandoverDispatch
from plimsoll.core.head.handover.links import HandoverLinks
from plimsoll.core.head.handover.remote_members import KEPT_SECONDS, RemoteMembers
from plimsoll.core.head.head_cordon import HeadCordon
from plimsoll.core.head.join_requests import JoinRequests
from plimsoll.core.head.load_exchange import LoadExchange
from plimsoll.core.head.log import Log, LogGrowth
from plimsoll.core.head.mediator_fence import MediatorFence
from plimsoll.core.head.membership import Membership
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.ownership import OwnershipTable
from plimsoll.core.head.placement import Placement, policy_of
from plimsoll.core.head.publication_listing import publication_page
from plimsoll.core.head.publish_requests import PublishRequests
from plimsoll.core.head.publisher_arrivals import PublisherArrivals
from plimsoll.core.head.publisher_commands import PublisherCommands
from plimsoll.core.head.publisher_moves import PublisherMoves
from plimsoll.core.head.publisher_paths import PathExchange
from plimsoll.core.head.publisher_topics import PublisherTopics
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.head.router import TreeRouter
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.head.startup import StartupBarrier
from plimsoll.core.head.topic_owners import TopicOwners
from plimsoll.core.metering.meter import LoadMeter
from plimsoll.core.metering.service_queue import ServiceQueue
from plimsoll.core.permissions import name_of_broker
from plimsoll.core.policies.registry import placer_of_spec
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info, WireError
from plimsoll.core.transport import round_trips
from plimsoll.core.transport.client_intake import ClientIntake
from plimsoll.core.transport.link import Link, Peer
from plimsoll.core.transport.load_reporter import LoadReporter
from plimsoll.core.transport.overlay_node import OverlayNode, link_limits, output_bucket

DataMessage = msg.FromClient | msg.FromEdge | msg.BetweenHeads
RECORD_UNITS: Final = 6
"""Of a client's record that is refused; a unit is some quarter of a microsecond."""
REQUEST_UNITS: Final = {msg.GroupJoin: 50, msg.Join: 14, msg.Open: 50, msg.OpenStandby: 50, msg.OpenReturning: 50}
"""Of those that cost more. Publications are bounded by credit."""

_DECODERS = {"client": msg.from_client, "edge": msg.from_edge, "head": msg.between_heads}


class Head(OverlayNode):
    """The machine of a head. `epoch` is made at process start and never used again.

    `edges`: the outboxes of edges that have reported; `members`: the names of edges that may.
    """

    def __init__(
        self, config: BrokerConfig, epoch: int, new_id: Callable[[], int], recovered: RecoveredLog | None = None
    ) -> None:
        neighbors = [peer.name for peer in config.neighbors]
        self.journal = recovered and LogJournal(recovered, config.name, epoch, has_neighbors=bool(neighbors))
        super().__init__(
            Info(config.name, "head", epoch, self.journal.memory if self.journal is not None else 0),
            link_limits(config),
            new_id,
            max_frame_bytes=config.limits.max_frame_bytes,
            bucket=output_bucket(config),
        )
        limits, factor = config.limits, config.time_factor
        self.config, self.name, self.epoch = config, config.name, epoch
        self.members = frozenset(config.edges)
        self.edges: dict[str, Outbox] = {}
        self.log = Log(limits.log_bytes) if recovered is None else durable_log(recovered, limits.log_bytes)
        self.log_growth = LogGrowth()
        self.routes = RoutingTable(neighbors, compiled=config.may_compile)
        self.owners = OwnershipTable()
        policy = policy_of(config.policy)
        self.placement, self.bundles = Placement(placer_of_spec(policy)), Bundles(policy)
        self.topics = TopicOwners(policy)
        self.publisher_topics = PublisherTopics(policy)
        self.outboxes = Outboxes(self, self.log, (config.name, epoch))
        self.publishers = PublisherTable(limits, ClientShares(self.outboxes.by_key, SILENT_SECONDS * factor))
        self.confirmations = Confirmations(self.outboxes, self.publishers, limits.confirm_seconds * factor)
        self.server: ServiceQueue[tuple[Link, int, DataMessage | None, bool]] = ServiceQueue(config.hardware)
        self.meter = LoadMeter()
        self.reporter = LoadReporter(self, config, epoch, self.meter)
        self.mediator_fence = MediatorFence(self)
        self.continuation = EpochContinuation(self)
        self.covers = CoverUpdates(self.routes, self.outboxes, self.mediator_fence, self.continuation)
        self.cover_turns = CoverTurns(self)
        self.distributor = Distributor(self)
        self.startup = StartupBarrier((*config.edges, *neighbors), self.covers, self.distributor, self._on_ready)
        self.groups = GroupRequests(self, config.cluster, GroupTimes.of(limits.lease_seconds, factor))
        self.groups.declare(declared_in(config))
        self.publish_requests = PublishRequests(self)
        self.publisher_arrivals = PublisherArrivals(self, self.publish_requests, factor)
        self.client_intake = ClientIntake(self, self._on_request, RECORD_UNITS)
        self.router = TreeRouter(config.name, self.routes, self.outboxes, self._deliver_routed)
        self.head_cordon = HeadCordon(epoch, self.router.reaches)
        self.handover_links = HandoverLinks(self)
        self.remote_members = RemoteMembers(self, self.handover_links, self.router, KEPT_SECONDS * factor)
        self.membership = Membership(self, limits.lease_seconds * factor)
        self.commands = MediatorCommands(self, self.membership.served_by)
        self.publisher_commands = PublisherCommands(self, self.commands)
        self.publisher_moves = PublisherMoves(self, self.publisher_commands.broadcast, factor)
        self.coordinator = Coordinator(
            self, self.handover_links, self.commands.broadcast, limits.progress_seconds * factor
        )
        self.handovers = HandoverDispatch(self)
        self.join_requests = JoinRequests(self, self.placement, (self.bundles, self.topics), self.router, factor)
        report_seconds = limits.report_seconds * factor
        self.load_exchange = LoadExchange(self, report_seconds) if config.policy is not None else None
        self.policies = ClusterPolicies(config.policy, report_seconds)
        self.publisher_paths = PathExchange(self, report_seconds)
        self.handshakes.measure_ways(closely=self.publisher_paths.is_wanted)
        self._started: float | None = None
        self._next_progress = 0.0
        self._left = False
        self.continuation.restore()
        for peer in config.neighbors:
            if config.name < peer.name:  # of two neighbours the one whose name sorts first dials
                self.dial(peer.name, peer.data, peer.public_key)

    @property
    def is_starting(self) -> bool:
        """Whether some edge or neighbour has not reported yet what it holds."""
        return self.startup.is_starting

    def end_place(self, subscriber: str) -> None:
        self.membership.end_place(subscriber)

    # -- links

    def admits(self, info: Info) -> str:
        if info.role == "client" and (info.name in self.members or info.name in {self.name, *self.routes.neighbors}):
            return name_of_broker(info.name)
        if info.role == "edge" and info.name not in self.members:
            return f"{info.name} is not an edge of {self.name}; its cluster names it first"
        if info.role == "head" and info.name not in self.routes.neighbors:
            return f"{info.name} is not a neighbour of {self.name}; name it in spec.neighbors"
        return ""

    def on_open(self, link: Link) -> None:
        if link.remote is None or link.remote.role == "client":
            return
        is_head = link.remote.role == "head"
        # What a neighbour has been told is here it never sends again. So with a log on a disk it is told so when the
        # log has it: what waits for reports, for a turn or for room on the disk goes with the process.
        link.acks_dealt = is_head and self.journal is not None
        outbox = self.outboxes.open(link, is_head)
        if is_head:
            self.routes.neighbors[outbox.name].up = True
            self.covers.report_to_neighbors(self.startup.missing)
            self.startup.neighbor_connected(link.remote)
        self.outboxes.pump(outbox)

    def on_lost(self, link: Link) -> None:
        outbox = link.owner
        if not isinstance(outbox, Outbox):
            self.client_intake.drop(link)
            self.publisher_moves.link_lost(self.publishers.lost(link))
            self.publisher_arrivals.lost(link)
            self.groups.lost(link)
            self.startup.forget(link)
            return
        for relayed in self.cover_turns.drop(link):
            self._relay(link, relayed)
        self.outboxes.lost(outbox)
        self.confirmations.lost(outbox)
        self.publishers.credits.go_on(self.publishers.credits.shares.lost(outbox.key, self.now))
        if outbox.is_head:
            # Its cover stays in the index until its new one comes: what it still needs is kept for it.
            self.routes.down(outbox.name)
            self.handovers.neighbor_lost(outbox.name)
        else:
            self.membership.lost(outbox)

    def on_granted(self, link: Link) -> None:
        for refused in self.publishers.regranted(link, self.now, self.name_grants):
            self.say(link, refused)

    def holds(self, link: Link) -> bool:
        """While publishers wait for this head to start, clients get no credit for more."""
        return super().holds(link) or bool(self.startup.waiting)

    def on_room(self, link: Link) -> None:
        if isinstance(outbox := link.owner, Outbox):
            self.outboxes.pump(outbox)
            if through := outbox.settle():
                self.confirmations.acknowledged(outbox, through)
                self.publishers.credits.go_on(self.publishers.credits.shares.acknowledged(outbox, self.now))

    # -- messages of data streams

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        self.meter.bytes_in += size
        if self.server.transparent and link.remote is not None and link.remote.role == "client":
            self.client_intake.on_frame(link, frame, size)
        else:
            self._on_records(link, frame)

    def _on_records(self, link: Link, frame: wire.Data) -> None:
        decoder = _DECODERS[link.remote.role if link.remote else "client"]
        last = len(frame.records) - 1
        if not frame.records:
            link.deals(self.now)
            self.took(link)
        for i, raw in enumerate(frame.records):
            message: DataMessage | None = None
            try:
                message = msg.decode(decoder, raw)
            except WireError as error:
                # It still ends its frame, and still costs service time: credit must come back for it.
                self.counters[f"records_refused_{error.code}"] += 1
            if self.server.transparent:
                self._handle(link, message, i == last)
            else:
                is_publication = isinstance(message, msg.Publish | msg.Pub)
                entry = (link, link.id, message, i == last)
                self.server.submit(entry, len(memoryview(raw)), self.now, is_publication=is_publication)

    def _serve(self) -> None:
        by_key = self.outboxes.by_key
        while (done := self.server.finished(self.now, self.routes.total_size(by_key))) is not None:
            self.meter.count_serviced(done)
            link, link_id, message, ends_frame = done.item
            if link.id == link_id and self.knows(link):
                self._handle(link, message, ends_frame)
            elif isinstance(message, msg.Pub | msg.Gap):
                # Its link is over, but it has been acknowledged to the neighbour, which does not send it again.
                self._relay(link, message)

    def _handle(self, link: Link, message: DataMessage | None, ends_frame: bool) -> None:
        turns = self.cover_turns
        if type(message) in COVERING or (turns.waiting and link in turns.waiting):
            turns.take(link, message, ends_frame)
        else:
            self.deal(link, message, ends_frame)

    def deal(self, link: Link, message: DataMessage | None, ends_frame: bool) -> None:
        """Deal with a message in its turn, and return the credit of the frame that it ends."""
        if self._holds_relays and isinstance(message, msg.Pub | msg.Gap):
            self.startup.hold(link, message, ends_frame=ends_frame)
            link.hold()
            if ends_frame:
                link.deals(self.now)
            return
        if message is not None:
            try:
                self._dispatch(link, message)
            except WireError as error:
                self.counters[f"records_refused_{error.code}"] += 1
        if ends_frame:
            link.deals(self.now)
            self.took(link)

    @property
    def _holds_relays(self) -> bool:
        """Whether what neighbours relay has to wait: for reports, or for room on the disk."""
        return bool(self.startup.missing) or (self.journal is not None and bool(self.journal.refusing))

    def set_refusal(self, why: str, now: float) -> None:
        """The shell says why nothing can be written now, or, with an empty text, that it can be again."""
        if self.journal is None or self.journal.refusing == why:
            return
        self.now, self.journal.refusing = now, why
        if not self._holds_relays:
            self._take_held()

    def _relay(self, link: Link, message: msg.Pub | msg.Gap) -> None:
        """Take what a neighbour has handed over on a link that may be over by now."""
        if self._holds_relays:
            self.startup.hold(link, message, ends_frame=False)
            return
        try:
            if isinstance(message, msg.Pub):
                self.distributor.relay(link.name, message)
            else:
                self.distributor.relay_gap(link.name, message)
        except WireError as error:
            self.counters[f"records_refused_{error.code}"] += 1

    def _dispatch(self, link: Link, message: DataMessage) -> None:
        # The two that make up nearly all of a head's input come first.
        if isinstance(message, msg.Publish):
            self.publish_requests.publish(link, message)
        elif isinstance(message, msg.FromClient):
            self._from_client(link, message)
        elif isinstance(outbox := link.owner, Outbox):
            if isinstance(message, msg.Pub):
                self.distributor.relay(outbox.name, message)
            else:
                self._from_broker(outbox, message)
        else:
            raise WireError("order", f"{link.name} is not an open link of an edge or neighbour")

    def _on_request(self, link: Link, message: msg.FromClient) -> Iterator[int]:
        self._from_client(link, message)
        if (units := REQUEST_UNITS.get(type(message))) is not None:
            yield units

    def _from_client(self, link: Link, message: msg.FromClient) -> None:
        match message:
            case msg.Publish():
                self.publish_requests.publish(link, message)
            case msg.Open() | msg.OpenStandby() | msg.OpenReturning():
                self.publish_requests.open(link, message)
            case msg.PublisherGo():
                self.publisher_moves.on_go(link, message)
            case msg.Close():
                self.publish_requests.close(link, message)
            case msg.Join():
                self.join_requests.on_join(link, message)
            case msg.GroupJoin():
                self.groups.on_join(link, message)
            case msg.GroupBeat():
                self.groups.on_beat(link, message)
            case msg.SliceReleased():
                self.groups.on_released(link, message)
            case msg.GroupLeave():
                self.groups.on_leave(link, message)
            case msg.Resume() | msg.Subs() | msg.Detach() | msg.Pause() | msg.Continue():
                raise WireError("misplaced", f"{type(message).__name__} is for an edge")
            case msg.Attach() | msg.Go() | msg.AuditReply():
                raise WireError("misplaced", f"{type(message).__name__} is for an edge")
            case _:
                assert_never(message)

    def _from_broker(self, outbox: Outbox, message: msg.FromEdge | msg.BetweenHeads) -> None:
        match message:
            case msg.Pub():
                self.distributor.relay(outbox.name, message)
            case msg.Gap():
                self.distributor.relay_gap(outbox.name, message)
            case msg.Cover():
                self.covers.on_cover(outbox, message)
            case msg.CoverAck():
                self.covers.on_ack(outbox, message)
            case msg.NeighborReport():
                self.covers.on_neighbor_report(outbox, message)
                self.startup.neighbor_reported(outbox.name, holds_cover=bool(message.cover.adds))
            case msg.Confirmed():
                self.confirmations.confirmed(outbox, message)
            case msg.Route():
                self.router.on_route(outbox.name, message)
            case msg.MediatorEpoch():
                self.mediator_fence.raise_to(message.epoch)
            case msg.PublisherPaths():
                self.publisher_paths.receive(outbox.name, message)
            case msg.EdgeReport():
                self.membership.on_report(outbox, message)
            case msg.ResumeUp():
                self.membership.on_resume(outbox, message)
            case msg.Expire():
                self.membership.on_expire(outbox, message)
            case msg.Forget():
                self.membership.on_forget(outbox, message)
            case msg.Leaving():
                self.membership.on_leaving(outbox)
            case msg.Fetch():
                log_reader.answer_fetch(message, outbox, self.log, self.outboxes, self.routes.match)
            case msg.CutRequest():
                self.handovers.on_cut_request(outbox, message)
            case msg.Slot() | msg.TargetAttached() | msg.Done() | msg.HandoverRejected() | msg.AuditSummary():
                self.handovers.receive_from_edge(message)
            case _:
                assert_never(message)

    def _deliver_routed(self, source: str, edge: str, message: msg.Routed) -> None:
        """Take a message that has reached this head through the tree."""
        if isinstance(message, msg.JoinFor | msg.PlacedFor):
            self.join_requests.receive_routed(source, message)
        elif isinstance(message, msg.PublisherMarker):
            self.publisher_arrivals.on_marker(source, message)
        elif isinstance(message, msg.PublisherArrived):
            self.publisher_moves.on_arrived(message)
        else:
            self.handovers.receive_routed(source, edge, message)

    def _on_ready(self) -> None:
        """All have reported: what has waited goes on, relayed publications first, for those were sent earlier."""
        served = {name: owner.edge for name, owner in self.owners.entries.items()}
        self.bundles.adopt(served)
        self.topics.adopt(served)
        self._take_held()
        for link, opening in self.startup.take_waiting():
            self.publish_requests.open(link, opening)

    def _take_held(self) -> None:
        if self._holds_relays:
            return  # all have reported, but there is no room on the disk
        for held in self.startup.take_held():
            self._relay(held.link, held.message)
            if held.link.id != held.link_id:
                continue
            if held.link.held_from:
                # The whole round waits for the log, so its acknowledgement does not leave before what is still to come.
                held.link.release(self.now)
                self.flusher.owe_ack(held.link)
            if held.ends_frame:
                self.took(held.link)

    # -- time

    def on_tick(self) -> None:
        if self._started is None:
            self._started = self._next_progress = self.now
            self.meter.started = self.now
        limits, factor = self.config.limits, self.config.time_factor
        if self.startup.missing and self.now - self._started > limits.lease_seconds * factor:
            self.startup.lease_passed()
        self.covers.tidy()
        self.cover_turns.tick()
        self.client_intake.tick()
        if not self.startup.missing:
            self.covers.acknowledge()
        self._serve()
        self.coordinator.tick()
        self.confirmations.expire(self.now)
        for link, answer in self.publishers.answers(self.now):
            self.say(link, answer)
        self.publisher_moves.tick()
        self.groups.tick()
        if self.now >= self._next_progress:
            self._next_progress = self.now + limits.progress_seconds * factor
            self._every_progress()
        if self.reporter.due(self.now):
            self._report()

    def _every_progress(self) -> None:
        self.outboxes.progress()
        self.membership.expire_ghosts()
        self.remote_members.expire()
        self.coordinator.expire()
        self.join_requests.expire()
        self.publisher_arrivals.expire()
        self.publishers.forget_idle(self.now, 10 * self.config.limits.lease_seconds * self.config.time_factor)

    def _report(self) -> None:
        """Send the load report of the interval that ends now, and to edges the loads of the others."""
        self.topics.reconcile(self.membership.served, self.now)
        seconds, log_bytes_per_second = self.log_growth.since_last(self.log, self.now)
        extra = {
            "subscribers": len(self.owners.entries),
            "subscriptions": self.routes.total_size(self.outboxes.by_key),
            "input_queue_messages": len(self.server.queue),
            "output_queue_messages": self.outboxes.waiting(),
            "log_bytes": self.log.bytes,
            "log_limit_bytes": self.log.limit_bytes,
            "log_bytes_per_second": log_bytes_per_second,
            **self.publishers.rates(seconds),
            **self.publisher_topics.report(seconds),
            "covers": {outbox.name: self.routes.size(outbox.key) for outbox in self.outboxes.by_key.values()},
            **self.bundles.report(),
            **self.groups.report(),
            **self.topics.report(),
            **round_trips.measured(self.links.values()),
            **(self.load_exchange.cluster() if self.load_exchange is not None else {}),
            "counters": {**self.meter.total, **self.counters},
        }
        self.reporter.tell(self.reporter.make(self.now, "OK", extra))
        if self.load_exchange is not None:
            self.load_exchange.tell_loads()
        self.publisher_paths.tell(self.reporter.last, self.config.hardware.output_bytes_per_second)
        self.handshakes.measure_ways(closely=self.publisher_paths.is_wanted)

    def wake_at(self) -> float:
        if self.cover_turns.waiting or self.client_intake.waiting or not self.routes.is_tidy:
            return self.now
        return min(
            self._next_progress, self.server.wake_at(), self.publishers.wake_at(self.now), self.reporter.next_report,
            self.coordinator.wake_at(), self.publisher_moves.wake_at(),
        )  # fmt: skip

    # -- control

    def on_control(self, peer: Peer, record: msg.ControlRecord) -> None:
        message = self.reporter.on_control(peer, record, self.now)
        if message is None:
            return
        if isinstance(message, msg.LoadUpdate):
            self.placement.update_load(message.report)
        if self.load_exchange is not None and self.load_exchange.on_control(peer, message):
            return
        is_mediator = peer in self.reporter.mediators
        match message:
            case msg.ClusterMembers() if is_mediator:
                self.members, self.placement.cordoned = frozenset(message.edges), frozenset(message.cordoned)
                self.head_cordon.take(message)
            case msg.ClusterGroups() if is_mediator:
                self.groups.declare([(each.cluster, each.name, each.definition) for each in message.groups])
            case msg.ClusterPolicy() if is_mediator:
                self.policies.receive(self, self, message)
            case msg.BundleTable() if is_mediator and message.mediator >= self.mediator_fence.epoch:
                self.policies.receive_bundles(self, message)
            case msg.Command() if is_mediator:
                self.commands.on_command(peer, message)
            case msg.PublisherCommand() if is_mediator:
                self.publisher_commands.on_command(peer, message)
            case msg.ListPublishers() if is_mediator:
                self.publisher_commands.on_list(peer, message)
            case msg.ListSubscribers() if is_mediator:
                self.commands.on_list_subscribers(peer, message)
            case msg.ListPublications() if is_mediator:
                self.say_control(peer, publication_page(message, self.name, self.epoch, self.log))
            case msg.Leave() if is_mediator:
                self.leave(self.now)
            case _:  # for an edge or a mediator, or not from a mediator: control records may be lost, so drop it
                pass

    def leave(self, now: float) -> None:
        """Stop: a head has nowhere to send its subscribers, so it only says goodbye to its links."""
        self.now = now
        for link in [*self.accepted_links(), *self.dialled.values()]:
            if link.open:
                self._out.append((link.peer, wire.bye_frame(link.id, "the head is leaving")))
        self._left = True

    def done(self) -> bool:
        """Whether everything that leaving needs has been sent."""
        return self._left

    def served(self, frames: int, seconds: float) -> None:
        if self.server.transparent and frames:
            self.meter.count_round(seconds)

    def status(self) -> dict[str, Any]:
        return {
            **super().status(),
            "cluster": self.config.cluster,
            "epoch": self.epoch,
            "ready": not self.startup.missing,
            "waiting_for": sorted(self.startup.missing),
            "log_entries": len(self.log),
            "log_bytes": self.log.bytes,
            "publishers": len(self.publishers),
            "subscribers": len(self.owners.entries),
            "groups": sorted(self.groups.by_name),
            "edges": sorted(o.name for o in self.outboxes.by_key.values() if not o.is_head),
            "mediator": self.mediator_fence.epoch,
            "sessions": len(self.coordinator.sessions),
            "guests": len(self.remote_members),
            "outcomes": dict(sorted(self.coordinator.table.outcomes.items())),
            "publisher_moves": len(self.publisher_moves.sessions),
            "cordoned": self.head_cordon.is_cordoned,
            "publisher_outcomes": dict(sorted(self.publisher_moves.outcomes.items())),
            "lagging": sorted(o.name for o in self.outboxes.by_key.values() if o.lagging),
            "plain": self.config.security.plain,
        }
