"""Which edge serves which subscriber of a cluster: reports, RESUME, leases, and the covers of dead edges.

An owner entry names the link of one edge. A cover goes with its link, unless a subscriber may still come back for it:
then it stays as a ghost until no owner entry names it, or its lease has passed.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.bundles import Bundles
from plimsoll.core.head.claim_exchange import ClaimExchange
from plimsoll.core.head.cover_updates import CoverUpdates
from plimsoll.core.head.durability.continuation import EpochContinuation
from plimsoll.core.head.durable_places import DurablePlaces
from plimsoll.core.head.groups.group_table import GroupTable
from plimsoll.core.head.groups.slice_attachments import SliceAttachments
from plimsoll.core.head.handover.coordinator import Coordinator
from plimsoll.core.head.handover.remote_members import RemoteMembers
from plimsoll.core.head.head_cordon import HeadCordon
from plimsoll.core.head.held_places import HeldPlaces, epoch_above
from plimsoll.core.head.log import Log
from plimsoll.core.head.mediator_fence import MediatorFence
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.outboxes import Outboxes
from plimsoll.core.head.ownership import OwnerEntry, OwnershipTable, ReplayStart
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.placement import Placement
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.routing import RoutingTable
from plimsoll.core.head.startup import StartupBarrier
from plimsoll.core.head.topic_owners import TopicOwners
from plimsoll.core.name_claims import ClaimTable
from plimsoll.core.permissions import NOT_PERMITTED, NameGrants, foreign_name, incarnation_fault
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import OwnerEpoch
from plimsoll.core.transport.link import Peer


class MembershipContext(Protocol):
    """The parts of a head that change when an edge or a subscriber does."""

    now: float
    counters: Counter[str]
    name_grants: NameGrants
    name: str
    epoch: int
    config: BrokerConfig
    log: Log
    continuation: EpochContinuation
    edges: dict[str, Outbox]
    members: frozenset[str]
    head_cordon: HeadCordon
    outboxes: Outboxes
    covers: CoverUpdates
    routes: RoutingTable
    durable_places: DurablePlaces
    held_places: HeldPlaces
    owners: OwnershipTable
    placement: Placement
    bundles: Bundles
    groups: GroupTable
    slice_attachments: SliceAttachments
    topics: TopicOwners
    startup: StartupBarrier
    mediator_fence: MediatorFence
    coordinator: Coordinator
    remote_members: RemoteMembers
    claim_exchange: ClaimExchange
    subscriber_claims: ClaimTable


class Membership(HeadPart):
    """The edges of a head and the subscribers that they serve."""

    def __init__(self, host: MembershipContext, lease_seconds: float) -> None:
        self.host, self.lease_seconds = host, lease_seconds
        self.ghosts: dict[str, float] = {}

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_brokers.add(msg.EdgeReport, self.on_report)
        handlers.of_brokers.add(msg.ResumeUp, self.on_resume)
        handlers.of_brokers.add(msg.Expire, self.on_expire)
        handlers.of_brokers.add(msg.Forget, self.on_forget)
        handlers.of_brokers.add(msg.Leaving, self.on_leaving)
        handlers.of_mediators.add(msg.ClusterMembers, self.on_members)

    # -- edges come and go

    def on_members(self, _: Peer, said: msg.ClusterMembers) -> None:
        """A mediator names the edges of the cluster, and those that take no newcomers."""
        host = self.host
        host.members, host.placement.cordoned = frozenset(said.edges), frozenset(said.cordoned)
        host.head_cordon.take(said)

    def on_ready(self) -> None:
        served = {name: owner.edge for name, owner in self.host.owners.entries.items() if owner.edge}
        self.host.bundles.adopt(served)
        self.host.topics.adopt(served)

    def on_report(self, outbox: Outbox, report: msg.EdgeReport) -> None:
        """Take over what an edge serves, once the last part of its report is there."""
        host = self.host
        outbox.owned += report.owned
        if report.more:
            return
        host.edges[outbox.name] = outbox
        host.placement.add(outbox.name, report.endpoint, report.public_key)
        host.mediator_fence.raise_to(report.mediator)
        host.bundles.take_report(report)
        if outbox.key in host.outboxes.joining:
            host.covers.apply(outbox, report.cover)
            host.outboxes.joining.remove(outbox.key)
        else:
            host.covers.replace(outbox, report.cover)
        owned, outbox.owned = outbox.owned, []
        for item in owned:
            reported = OwnerEntry(outbox.key, item.epoch, item.since, item.is_again, item.identity)
            loser = host.owners.adopt(item.subscriber, reported)
            if loser is not None:
                winner = host.owners.entries[item.subscriber]
                if not winner.is_of(loser.identity):
                    host.claim_exchange.outranks(item.subscriber, loser)
                self.release(loser.key, item.subscriber, epoch_above(winner, loser))
        start = host.continuation.for_edge(report)
        host.outboxes.send(outbox, msg.Welcome(host.log.last, start, host.config.advertised))
        if start is not None:
            host.continuation.send_missed(outbox, start)
        outbox.keeps_claims = report.keeps_claims
        if outbox.keeps_claims:
            host.claim_exchange.tell_all(outbox)
        if host.mediator_fence.epoch:
            host.outboxes.send(outbox, msg.MediatorEpoch(host.mediator_fence.epoch))
        host.startup.expect(host.groups.restart.edge_reported(report))
        host.startup.edge_reported(outbox.name, has_owners=bool(host.owners.entries))

    def broker_lost(self, outbox: Outbox) -> None:
        """The cover of an edge stays while an owner entry names its link: those subscribers may resume."""
        host = self.host
        if outbox.is_head:
            return
        if host.edges.get(outbox.name) is outbox:
            del host.edges[outbox.name]
        host.placement.remove(outbox.name)
        host.topics.reconcile(self.served, host.now, soon=True)
        host.coordinator.edge_lost(outbox.name)
        host.remote_members.edge_lost(outbox.name)
        self.ghosts[outbox.key] = host.now + self.lease_seconds
        self.drop_ghosts()

    def on_leaving(self, outbox: Outbox, _: msg.Leaving) -> None:
        """An edge is about to stop: its subscribers leave, and no newcomer is sent there."""
        outbox.leaving = True
        self.host.placement.remove(outbox.name)

    def served(self) -> dict[str, str]:
        """The edge of each subscriber, of those whose edge is here."""
        keys = {outbox.key: name for name, outbox in self.host.edges.items()}
        return {x: keys[owner.key] for x, owner in self.host.owners.entries.items() if owner.key in keys}

    def served_by(self, edge: str) -> list[str]:
        """The subscribers of an edge, sorted."""
        outbox = self.host.edges.get(edge)
        return sorted(self.host.owners.of(outbox.key)) if outbox is not None else []

    # -- subscribers

    def on_resume(self, outbox: Outbox, resume: msg.ResumeUp) -> None:
        """docs/handover.md, Resume: in one step apply the cover, swap the owner, answer RESUMED."""
        host, x = self.host, resume.subscriber
        host.covers.apply(outbox, resume.cover)
        newest = host.owners.newest(x, resume.identity)
        if code_and_text := self._refusal(resume, newest):
            host.counters["resumes_refused"] += 1
            host.outboxes.send(outbox, msg.Release(x, resume.epoch, *code_and_text))
            return
        if newest >= resume.epoch:
            if host.held_places.holds(outbox.key, x):
                return  # its place is kept until the owner has its own; then it is released
            used = self._left_behind(resume, newest)
            host.outboxes.send(outbox, msg.Release(x, (newest[0], newest[1] + 1), used=used))
            return
        covered = host.slice_attachments.covered_since(x)
        is_again = resume.token is not None and covered is None
        began = (host.epoch, host.log.last) if covered is None else covered
        old = host.owners.swap(x, outbox.key, resume.epoch, began, is_again, resume.identity)
        host.claim_exchange.settle()
        owner = host.owners.entries[x]
        host.durable_places.attached(outbox.key, x)
        host.held_places.swapped(x, old)
        host.bundles.attached(x, outbox.name)
        host.remote_members.resumed(x, resume.session, outbox.name)
        host.coordinator.resumed(x, resume.session, outbox.name)
        # RESUMED is a point in the edge's stream: up to it the edge fetches the log from `at.start`, later is streamed.
        at = self._start(resume, owner)
        host.slice_attachments.resumed(x, (host.name, host.epoch, at.start))
        lapsed = at.lapsed or owner.has_lapsed(host.name, resume.token)
        lease_seconds = host.durable_places.lease_seconds(x)
        host.outboxes.send(
            outbox,
            msg.ResumedDown(
                x, resume.epoch, host.log.last, at.start, owner.since, at.gap, lapsed, lease_seconds,
                x in host.held_places, owner.is_again,
            ),
        )  # fmt: skip
        self.drop_ghosts()

    def _start(self, resume: msg.ResumeUp, owner: OwnerEntry) -> ReplayStart:
        """Where it goes on; without a token where it asks to begin."""
        host = self.host
        if resume.token is not None or resume.since is None:
            return host.continuation.replay_start(resume.token, owner.since)
        at = host.continuation.start_since(resume.since)
        # What other heads published before this subscriber was covered may have passed this one by.
        return at._replace(lapsed=bool(host.routes.neighbors) and at.start < owner.since[1])

    def _refusal(self, resume: msg.ResumeUp, newest: OwnerEpoch) -> tuple[str, str] | None:
        """Why this identity may not have the subscriber, or not with this incarnation: a code and a text."""
        host, x = self.host, resume.subscriber
        host.claim_exchange.settle()
        entry = host.owners.entries.get(x)
        owner = host.subscriber_claims.whose(x) or (entry.identity if entry is not None else "")
        if not host.name_grants.permits(resume.identity, x, owner):
            return NOT_PERMITTED, foreign_name("subscriber", x)
        if (refusal := host.slice_attachments.refusal(resume)) is not None:
            return refusal
        fault = incarnation_fault(resume.epoch[0], newest[0])
        return ("range", fault) if fault else None

    def _left_behind(self, resume: msg.ResumeUp, newest: OwnerEpoch) -> int:
        """The later incarnation of a client that has gone; 0 if it may be there, or there is none."""
        host, entry = self.host, self.host.owners.entries.get(resume.subscriber)
        may_be_there = entry is not None and entry.key in host.outboxes.by_key
        if newest[0] <= resume.epoch[0] or (may_be_there and not host.durable_places.is_away(resume.subscriber)):
            return 0
        return newest[0]

    def release(self, key: str, subscriber: str, epoch: OwnerEpoch) -> None:
        if (outbox := self.host.outboxes.by_key.get(key)) is not None:
            self.host.outboxes.send(outbox, msg.Release(subscriber, epoch))

    def on_expire(self, outbox: Outbox, expire: msg.Expire) -> None:
        """The lease of a closed attachment has ended: compare-and-swap on its owner entry, then RELEASE.

        A place that the head keeps for longer goes on without the edge.
        """
        host, key, x = self.host, outbox.key, expire.subscriber
        entry = host.owners.entries.get(x)
        if entry is not None and entry.key == key and entry.epoch == expire.epoch:
            self._lapse(x)
        if (entry := host.owners.entries.get(x)) is None or entry.key != key:
            host.outboxes.send(outbox, msg.Release(x, (expire.epoch[0], expire.epoch[1] + 1)))
        self.drop_ghosts()

    def end_place(self, subscriber: str) -> None:
        """Let go what is kept for a subscriber that has no client."""
        if (entry := self.host.owners.entries.get(subscriber)) is not None:
            self.host.durable_places.end(subscriber)
            self._lapse(subscriber)
            self.release(entry.key, subscriber, (entry.epoch[0], entry.epoch[1] + 1))
            self.drop_ghosts()

    def lose_name(self, subscriber: str) -> None:
        """Another identity has had this name first: its subscriber here is refused, and nothing of it is kept."""
        host, entry = self.host, self.host.owners.entries[subscriber]
        host.durable_places.end(subscriber)
        self._lapse(subscriber, ends_name=False)
        if (outbox := host.outboxes.by_key.get(entry.key)) is not None:
            why = foreign_name("subscriber", subscriber)
            host.outboxes.send(outbox, msg.Release(subscriber, entry.epoch, NOT_PERMITTED, why))
        self.drop_ghosts()

    def _lapse(self, subscriber: str, *, ends_name: bool = True) -> None:
        host = self.host
        epoch = host.owners.entries[subscriber].epoch
        if host.durable_places.is_kept(subscriber):
            host.owners.keep(subscriber)
        else:
            host.owners.forget(subscriber, host.now, ends_name=ends_name)
        host.remote_members.lapsed(subscriber, epoch)
        host.coordinator.lapsed(subscriber, epoch)

    def on_forget(self, outbox: Outbox, gone: msg.Forget) -> None:
        entry = self.host.owners.entries.get(gone.subscriber)
        if entry is not None and entry.key == outbox.key and entry.epoch == gone.epoch:
            self.host.durable_places.end(gone.subscriber)
            self._lapse(gone.subscriber)

    # -- time

    def expire(self) -> None:
        """docs/handover.md, Time: a dead edge's entries expire at the head."""
        for key in [key for key, at in self.ghosts.items() if at <= self.host.now]:
            for subscriber in self.host.owners.of(key):
                self._lapse(subscriber)
        self.host.owners.forget_past(self.host.now - self.lease_seconds)
        self.drop_ghosts()

    def drop_ghosts(self) -> None:
        """docs/handover.md, Resume: a dead edge's cover stays until no owner entry names it."""
        if not self.ghosts:
            return
        owned = self.host.owners.keys()
        for key in [key for key in self.ghosts if key not in owned]:
            del self.ghosts[key]
            self.host.covers.drop(key)
