"""Which part of a head a hand-over message is for: the coordinator here, one at another head, or an edge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar, assert_never, get_args

from msgspec import structs

from plimsoll.core.head.cover_updates import CoverUpdates
from plimsoll.core.head.durable_places import DurablePlaces
from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.head.handover.links import HandoverLinks
from plimsoll.core.head.handover.remote_members import RemoteMembers
from plimsoll.core.head.held_places import HeldPlaces
from plimsoll.core.head.log import Log
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.ownership import OwnershipTable
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.publisher_arrivals import PublisherArrivals
from plimsoll.core.head.publisher_audit import PublisherAudit
from plimsoll.core.head.publisher_moves import PublisherMoves
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.router import TreeRouter
from plimsoll.core.protocol import messages as msg

TargetReport = msg.Slot | msg.TargetAttached | msg.Done | msg.HandoverRejected
"""What the edge of the target sends to the head that decides."""

SourceOrder = msg.Prepare | msg.Install | msg.Abort | msg.ForceDetach | msg.ExpectedDeliveries
"""What the head that decides sends to the edge of the target."""

CoordinatorMessage = TargetReport | msg.Marker | msg.AuditSummary
"""What the head that decides is sent."""

_Report = TypeVar("_Report", bound=TargetReport)


class DispatchContext(Protocol):
    """The parts of a head that take part in hand-overs."""

    name: str
    epoch: int
    log: Log
    owners: OwnershipTable
    outboxes: Outboxes
    covers: CoverUpdates
    durable_places: DurablePlaces
    held_places: HeldPlaces
    router: TreeRouter
    coordinator: Coordinator
    remote_members: RemoteMembers
    handover_links: HandoverLinks
    publisher_moves: PublisherMoves
    publisher_arrivals: PublisherArrivals
    publisher_audit: PublisherAudit


class HandoverDispatch(HeadPart):
    """Hand-over messages of edges here and of other heads."""

    def __init__(self, host: DispatchContext) -> None:
        self.host = host

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_brokers.add(msg.CutRequest, self.on_cut_request)
        for report in get_args(TargetReport | msg.AuditSummary):
            handlers.of_brokers.add(report, self.receive_from_edge)
        for kind in get_args(SourceOrder | CoordinatorMessage):
            handlers.of_heads.add(kind, self.receive_routed)

    # -- from edges here

    def receive_from_edge(self, outbox: Outbox, message: TargetReport | msg.AuditSummary) -> None:
        host = self.host
        if isinstance(message, msg.Done):
            for x in message.members:
                host.durable_places.arrived(x)
                host.held_places.arrived(outbox, x)
        if isinstance(message, msg.AuditSummary):
            if message.judge == host.name:
                self._decide(host.name, message)
            else:
                host.router.send(message.judge, message)
        elif message.session in host.coordinator.sessions:
            self._decide(host.name, message)
        elif isinstance(message, msg.Done):
            host.remote_members.on_done(message)
            # The session may be over here: by replay all of its members can have resumed before this DONE.
            self._audit(host.name, message)
        else:
            self._report_to_coordinators(message)

    def _report_to_coordinators(self, message: msg.Slot | msg.TargetAttached | msg.HandoverRejected) -> None:
        host = self.host
        for head, members in sorted(host.remote_members.by_coordinator(message.session, message.members).items()):
            host.router.send(head, _about(message, members))
        if isinstance(message, msg.HandoverRejected):
            host.remote_members.on_rejected(message.session, message.members)

    def on_cut_request(self, outbox: Outbox, request: msg.CutRequest) -> None:
        """Apply the cover, swap the owners and answer both ends, in one step: this is the cut's place in all streams.

        docs/handover.md, Local and Across clusters. The cover counts even if no member is cut.
        """
        host = self.host
        host.covers.apply(outbox, request.cover)
        token = (host.name, host.epoch, host.log.last)
        if request.session in host.coordinator.sessions:
            good = host.coordinator.cut_decision.cut_members(request.session, request.members, outbox.key, token)
        else:
            good = host.remote_members.on_cut_request(request, outbox.key, token)
        cut = set(good)
        if bad := [item for item in request.members if item.subscriber not in cut]:
            # ABORT names the epoch at the source, one below the one that the cut would have given.
            at_source = [msg.MemberItem(i.subscriber, (i.epoch[0], max(i.epoch[1] - 1, 0))) for i in bad]
            host.outboxes.send(outbox, msg.Abort(request.session, at_source))
        if good:
            owners = host.owners.entries
            since, again = [owners[x].since for x in good], [x for x in good if owners[x].is_again]
            host.outboxes.send(outbox, msg.Installed(request.session, good, host.log.last, since, again))

    # -- from other heads

    def receive_routed(self, source: str, edge: str, message: SourceOrder | CoordinatorMessage) -> None:
        """Take a message of the head `source`: for an edge here, or, without one, for the coordinator."""
        if isinstance(message, SourceOrder):
            if edge:
                self._pass_to_edge(source, edge, message)
        elif not edge:
            self._decide(source, message)

    def _pass_to_edge(self, source: str, edge: str, message: SourceOrder) -> None:
        host = self.host
        if isinstance(message, msg.Prepare | msg.Install) and (why := self._refusal(source, edge, message)):
            host.router.send(source, msg.HandoverRejected(message.session, message.members, why))
            return
        if isinstance(message, msg.Abort):
            host.remote_members.on_abort(message)
        elif isinstance(message, msg.ForceDetach):
            host.remote_members.on_force_detach(message, edge, source)
        host.handover_links.send_to_edge(host.name, edge, message)

    def _refusal(self, source: str, edge: str, message: msg.Prepare | msg.Install) -> str:
        if not self.host.handover_links.has_edge(edge):
            return f"{edge} is not an edge of {self.host.name}, or is down"
        if isinstance(message, msg.Prepare) and not self.host.remote_members.reserve(message, edge, source):
            return f"{self.host.name} has as many remote members as it may have"
        return ""

    # -- for the coordinator here

    def _decide(self, source: str, message: CoordinatorMessage) -> None:
        """`source`: the head of the edge that sent it."""
        coordinator = self.host.coordinator
        match message:
            case msg.Slot():
                coordinator.on_slot(message)
            case msg.TargetAttached():
                coordinator.on_attached(message)
            case msg.Marker():
                coordinator.cut_decision.on_marker(message)
            case msg.Done():
                coordinator.on_done(message)
                self._audit(source, message)
            case msg.HandoverRejected():
                coordinator.on_rejected(message)
            case msg.AuditSummary():
                if not self.host.publisher_audit.counted(message):
                    coordinator.table.delivery_audit.counted(message, coordinator.table.moved(message.session))
            case _:
                assert_never(message)

    def _audit(self, target_head: str, done: msg.Done) -> None:
        """Work out what was due to those members of a DONE that have counted their deliveries."""
        if done.checks:
            coordinator = self.host.coordinator
            coordinator.table.delivery_audit.done(target_head, done, coordinator.table.moved(done.session))

    # -- neighbours

    def broker_lost(self, outbox: Outbox) -> None:
        if outbox.is_head:
            self._neighbor_lost(outbox.name)

    def _neighbor_lost(self, neighbor: str) -> None:
        """What was on its way is gone, and heads behind it may have restarted."""
        host = self.host
        host.remote_members.heads_lost(host.router.behind(neighbor, host.remote_members.coordinators()))
        targets = {session.plan.target_head for session in host.coordinator.sessions.values()} - {host.name}
        host.coordinator.heads_lost(host.router.behind(neighbor, sorted(targets)))
        host.publisher_moves.heads_lost(host.router.behind(neighbor, host.publisher_moves.targets()))
        host.publisher_arrivals.heads_lost(host.router.behind(neighbor, host.publisher_arrivals.sources()))
        host.router.forget_routes(neighbor)  # last: `behind` asks by the routes that were known


def _about(message: _Report, members: Iterable[str]) -> _Report:
    """The same message about these members only."""
    return structs.replace(message, members=list(members))
