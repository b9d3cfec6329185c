"""The parts of a head: how they are built, and in which order they have their turns."""

from __future__ import annotations

from collections.abc import Callable

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.bundles import Bundles
from plimsoll.core.head.claim_exchange import RESERVE_SECONDS, ClaimExchange
from plimsoll.core.head.client_share import SILENT_SECONDS, ClientShares
from plimsoll.core.head.cluster_policy import ClusterPolicies
from plimsoll.core.head.confirmations import Confirmations
from plimsoll.core.head.cover_updates import CoverUpdates
from plimsoll.core.head.distributor import Distributor
from plimsoll.core.head.durability.continuation import EpochContinuation
from plimsoll.core.head.durability.journal import LogJournal, RecoveredLog, durable_log
from plimsoll.core.head.durable_places import DurablePlaces
from plimsoll.core.head.groups.declarations import GroupDeclarations
from plimsoll.core.head.groups.definition import declared_in
from plimsoll.core.head.groups.durable_groups import DurableGroups
from plimsoll.core.head.groups.group_covers import GROUPS_KEY
from plimsoll.core.head.groups.group_links import GroupLinks
from plimsoll.core.head.groups.group_table import GroupTable
from plimsoll.core.head.groups.lag import GroupLags
from plimsoll.core.head.groups.requests import GroupRequests
from plimsoll.core.head.groups.slice_attachments import SliceAttachments
from plimsoll.core.head.groups.slice_commands import SliceCommands
from plimsoll.core.head.groups.times import GroupTimes
from plimsoll.core.head.handover.commands import MediatorCommands
from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.head.handover.dispatch import HandoverDispatch
from plimsoll.core.head.handover.links import HandoverLinks
from plimsoll.core.head.handover.remote_members import KEPT_SECONDS, RemoteMembers
from plimsoll.core.head.head_cordon import HeadCordon
from plimsoll.core.head.held_places import HeldPlaces
from plimsoll.core.head.join_requests import JoinRequests
from plimsoll.core.head.load_exchange import LoadExchange
from plimsoll.core.head.load_reports import HeadLoadReports
from plimsoll.core.head.log import Log
from plimsoll.core.head.log_reader import LogReader
from plimsoll.core.head.mediator_fence import MediatorFence
from plimsoll.core.head.membership import Membership
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.ownership import AWAY_KEY, OwnershipTable
from plimsoll.core.head.part import HeadPart, with_hook
from plimsoll.core.head.placement import Placement, policy_of
from plimsoll.core.head.places_elsewhere import PlacesElsewhere
from plimsoll.core.head.publish_requests import PublishRequests
from plimsoll.core.head.publisher_arrivals import PublisherArrivals
from plimsoll.core.head.publisher_audit import PublisherAudit
from plimsoll.core.head.publisher_commands import PublisherCommands
from plimsoll.core.head.publisher_moves import PublisherMoves
from plimsoll.core.head.publisher_paths import PathExchange
from plimsoll.core.head.publisher_topics import PublisherTopics
from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.record_input import QueuedRecord, RecordInput
from plimsoll.core.head.router import TreeRouter
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.head.standby.leadership import silence_seconds
from plimsoll.core.head.startup import ABSENT_SECONDS, StartupBarrier
from plimsoll.core.head.topic_owners import TopicOwners
from plimsoll.core.metering.meter import LoadMeter
from plimsoll.core.metering.service_queue import ServiceQueue
from plimsoll.core.name_claims import ClaimTable
from plimsoll.core.policies.registry import placer_of_spec
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.load_reporter import LoadReporter
from plimsoll.core.transport.overlay_node import OverlayNode, link_limits, output_bucket


class HeadParts(OverlayNode):
    """A node with the parts of a head, which reach each other through it.

    `edges`: the outboxes of edges that have reported; `members`: the names of edges that may. `parts`: all that have
    hooks, in the order in which a head calls them.
    """

    def __init__(
        self, config: BrokerConfig, epoch: int, new_id: Callable[[], int], recovered: RecoveredLog | None = None
    ) -> None:
        self.config, self.name, self.epoch = config, config.name, epoch
        self.journal = recovered and LogJournal(recovered, config.name, epoch, has_neighbors=bool(config.neighbors))
        limits = link_limits(config)
        silence = 0.0 if config.standby is None else silence_seconds(limits.heartbeat_seconds)
        memory = self.journal.memory if self.journal is not None else 0
        super().__init__(
            Info(config.name, "head", epoch, memory, round(silence * 1000)),
            limits,
            new_id,
            max_frame_bytes=config.limits.max_frame_bytes,
            bucket=output_bucket(config),
        )
        self.members = frozenset(config.edges)
        self.edges: dict[str, Outbox] = {}
        self.handlers = RecordHandlers()
        self._build_streams(recovered)
        self._build_policy()
        self._build_publishers()
        self._build_subscribers()
        self._build_handovers()
        self.parts = self._in_turn()
        for part in self.parts:
            part.register(self.handlers)
        self.handlers.check()
        self.load_reports = HeadLoadReports(self, with_hook(self.parts, "report"))

    def _seconds(self, seconds: float) -> float:
        return seconds * self.config.time_factor

    def _build_streams(self, recovered: RecoveredLog | None) -> None:
        """The log, and the ways into it and out of it."""
        config, limits, neighbors = self.config, self.config.limits, [peer.name for peer in self.config.neighbors]
        self.log = Log(limits.log_bytes) if recovered is None else durable_log(recovered, limits.log_bytes)
        self.log_reader = LogReader(self)
        self.routes = RoutingTable(neighbors, compiled=config.may_compile, unmatched=(AWAY_KEY, GROUPS_KEY))
        self.outboxes = Outboxes(self, self.log, (self.name, self.epoch))
        self.server: ServiceQueue[QueuedRecord] = ServiceQueue(config.hardware)
        self.meter = LoadMeter()
        self.reporter = LoadReporter(self, config, self.epoch, self.meter)
        self.mediator_fence = MediatorFence(self)
        self.continuation = EpochContinuation(self)
        self.covers = CoverUpdates(self.routes, self.outboxes, self.mediator_fence, self.continuation)
        self.group_lags = GroupLags(self)
        self.distributor = Distributor(self)
        self.startup = StartupBarrier(
            (*config.edges, *neighbors), self.covers, self.distributor, self._on_ready,
            self._seconds(limits.lease_seconds), self._seconds(ABSENT_SECONDS),
        )  # fmt: skip
        self.record_input = RecordInput(self, self.handlers)
        self.cover_turns, self.client_intake = self.record_input.turns, self.record_input.clients
        self.router = TreeRouter(self.name, self.routes, self.outboxes, self._deliver_routed)

    def _build_policy(self) -> None:
        """What the cluster's policy changes: placement, loads, and what is measured for it."""
        config, report_seconds = self.config, self._seconds(self.config.limits.report_seconds)
        policy = policy_of(config.policy)
        self.placement, self.bundles = Placement(placer_of_spec(policy)), Bundles(policy)
        self.publisher_topics = PublisherTopics(policy)
        self.topics = TopicOwners(policy, self.publisher_topics.rates)
        self.load_exchange = LoadExchange(self, report_seconds) if config.policy is not None else None
        self.policies = ClusterPolicies(config.policy, report_seconds)
        self.publisher_paths = PathExchange(self, report_seconds)
        self.heartbeats.measure_ways(closely=self.publisher_paths.is_wanted)

    def _build_publishers(self) -> None:
        limits, factor = self.config.limits, self.config.time_factor
        shares = ClientShares(self.outboxes.by_key, self._seconds(SILENT_SECONDS))
        self.publishers = PublisherTable(limits, shares, self._claims())
        self.confirmations = Confirmations(
            self.outboxes, self.publishers.answers, self._seconds(limits.confirm_seconds)
        )
        self.publish_requests = PublishRequests(self)
        self.publisher_arrivals = PublisherArrivals(self, self.publish_requests, factor)
        self.head_cordon = HeadCordon(self.epoch, self.router.reaches)

    def _claims(self, reserve_seconds: float = 0.0) -> ClaimTable:
        def wall_clock(now: float) -> float:
            return now + self.reporter.clock_offset_seconds

        lease_seconds = self._seconds(self.config.limits.lease_seconds)
        return ClaimTable(lease_seconds, wall_clock, reserve_seconds=self._seconds(reserve_seconds))

    def _build_subscribers(self) -> None:
        """Who serves which subscriber, and the groups that some of them form."""
        config, lease_seconds = self.config, self.config.limits.lease_seconds
        self.owners = OwnershipTable()
        # Only a neighbour can have a subscriber under a name that has ended here: without one nothing is reserved.
        self.subscriber_claims = self._claims(RESERVE_SECONDS if config.neighbors else 0.0)
        self.durable_places = DurablePlaces(self)
        self.held_places = HeldPlaces(self)
        self.membership = Membership(self, self._seconds(lease_seconds))
        self.join_requests = JoinRequests(
            self, self.placement, (self.bundles, self.topics), self.router, config.time_factor
        )
        times = GroupTimes.of(lease_seconds, config.time_factor)
        self.group_links = GroupLinks(self, self.router, times.beat, times.lease)
        self.groups = GroupTable(self, times)
        self.group_declarations = GroupDeclarations(self, self.groups, config.cluster)
        self.group_requests = GroupRequests(self, self.groups, self.group_declarations)
        self.slice_attachments = SliceAttachments(self, self.groups)
        self.durable_groups = DurableGroups(self, self.groups, self.group_declarations)
        self.durable_groups.restore()
        self.group_declarations.begin(declared_in(config))

    def _build_handovers(self) -> None:
        """What moves subscribers and publishers, and the commands for that."""
        self.handover_links = HandoverLinks(self)
        self.remote_members = RemoteMembers(self, self.handover_links, self.router, self._seconds(KEPT_SECONDS))
        self.commands = MediatorCommands(self, self.membership.served_by)
        self.publisher_commands = PublisherCommands(self, self.commands)
        self.publisher_audit = PublisherAudit(self, self.handover_links)
        self.publisher_moves = PublisherMoves(self, self.publisher_commands.broadcast, self.config.time_factor)
        self.claim_exchange = ClaimExchange(
            self, self.membership.lose_name, self._seconds(self.config.limits.lease_seconds)
        )
        self.covers.ahead_of_report = self.claim_exchange.tell_all
        self.slice_commands = SliceCommands(self, self.groups, self.commands)
        progress_seconds = self._seconds(self.config.limits.progress_seconds)
        self.coordinator = Coordinator(self, self.handover_links, self.commands.broadcast, progress_seconds)
        self.places_elsewhere = PlacesElsewhere(self)
        self.handovers = HandoverDispatch(self)

    def _in_turn(self) -> tuple[HeadPart, ...]:
        return (
            self.startup, self.covers, self.record_input, self.durable_places, self.membership, self.held_places,
            self.remote_members, self.coordinator, self.places_elsewhere,
            self.confirmations, self.join_requests, self.publisher_arrivals, self.publish_requests,
            self.publisher_moves, self.publisher_audit, self.claim_exchange,
            self.group_links, self.group_requests, self.groups, self.group_declarations,
            self.durable_groups, self.slice_commands,
            self.distributor, self.router, self.handovers, self.mediator_fence,
            self.commands, self.publisher_commands, self.publisher_paths, self.head_cordon,
            self.log_reader, self.bundles, self.topics,
        )  # fmt: skip

    def _on_ready(self) -> None:
        for part in self.parts:
            part.on_ready()

    def _deliver_routed(self, source: str, edge: str, message: msg.Routed) -> None:
        """Take a message that has reached this head through the tree."""
        self.handlers.of_heads[type(message)](source, edge, message)

    @property
    def is_starting(self) -> bool:
        """Whether some edge or neighbour has not reported yet what it holds."""
        return self.startup.is_starting

    def end_place(self, subscriber: str) -> None:
        self.membership.end_place(subscriber)
