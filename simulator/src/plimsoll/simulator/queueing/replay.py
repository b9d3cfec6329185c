"""Hand-over by replay in the queueing model: the source lets go at once, and the log gives what it has not served."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import OwnerEpoch
from plimsoll.simulator.queueing.broker import EPOCH
from plimsoll.simulator.queueing.edge import QueueingEdge
from plimsoll.simulator.queueing.head import QueueingHead
from plimsoll.simulator.queueing.publications import Publication
from plimsoll.simulator.queueing.upward import HandoverWorld, MemberInTransit, Upward


class Replays:
    """`moving`: members of all hand-overs, by name; `missing`: those between two edges, by bit."""

    def __init__(self, world: HandoverWorld, upward: Upward, moving: dict[str, MemberInTransit]) -> None:
        self.world, self.upward, self.moving = world, upward, moving
        self.missing: dict[int, MemberInTransit] = {}
        self._missing_mask = 0
        self._catching_up: dict[str, MemberInTransit] = {}

    def note(self, pub: Publication, mask: int) -> None:
        """Keep a publication for those of this mask that are between two edges."""
        missed = pub.mask & mask
        while missed:
            bit = missed & -missed
            self.missing[bit].missed.append(pub)
            missed ^= bit

    def log_missed(self, pub: Publication) -> None:
        """A publication has entered the log."""
        self.note(pub, self._missing_mask)

    def on_revoke(self, source: QueueingEdge, revoke: msg.Revoke) -> None:
        """The source lets members go at once; what it has not served they get from the log, by way of the target."""
        source.advance(self.world.now)
        members = {
            item.subscriber: MemberInTransit(
                revoke.session, _raised(item.epoch), source.name, revoke.edge, is_installed=True, way="replay"
            )
            for item in revoke.members if item.subscriber not in self.moving
        }  # fmt: skip
        if members:
            self._let_go(source, members)
            self.world.at(self.world.now + 2 * self.world.client_seconds, self._resume, list(members))

    def look_up(self, source: QueueingEdge, units: Sequence[str]) -> None:
        """Units of released bundles are sent away, behind what is queued for them, and ask their head for an edge."""
        source.advance(self.world.now)
        attached = source.attachments.by_subscriber
        members = {
            x: MemberInTransit("", _raised(attached[x].epoch), source.name, "", is_installed=True, way="lookup")
            for x in units if x not in self.moving
        }  # fmt: skip
        if members:
            self._let_go(source, members)
            source.output.when_sent(members, 2 * self.world.client_seconds, self._answer, list(members))

    def _answer(self, names: Sequence[str]) -> None:
        """At the head: each unit is told the edge of its bundle, and resumes there."""
        here = [x for x in names if x in self.moving]
        for x in here:
            self.moving[x].target = self.world.edge_for(x).name
        self.world.at(self.world.now + 2 * self.world.client_seconds, self._resume, here)

    def _let_go(self, source: QueueingEdge, members: Mapping[str, MemberInTransit]) -> None:
        """The source serves them no longer; what it has not served they will ask the log for."""
        names = list(members)
        mask = self.world.mask(names)
        for x, member in members.items():
            self.moving[x] = self.missing[self.world.bit(x)] = member
            source.stop_serving(x)
        for pub in source.waiting_for(mask):
            self.note(pub, mask)
        self._missing_mask |= mask
        source.output.when_sent(members, self.world.client_seconds, _silent, members, self.world)
        source.count_sent([msg.Moved])

    def leave(self, subscriber: str) -> None:
        """A member has left: it asks the log for nothing."""
        self.missing.pop(bit := self.world.bit(subscriber), None)
        self._missing_mask &= ~bit
        self._catching_up.pop(subscriber, None)

    def _resume(self, names: Sequence[str]) -> None:
        for x in names:
            if (member := self.moving.get(x)) is None:
                continue
            target = self.world.edges[member.target]
            target.advance(self.world.now)
            if member.source == member.target:  # a lookup may draw the same edge again
                self.upward.cover(target, target.withdraw([x]), 0, 0)
            covers = target.attach(x, self.world.texts(x), member.epoch)
            self.upward.cover(target, covers[:-1], 0, 0)
            self.upward.send(target, msg.ResumeUp(x, member.epoch, covers[-1], None, member.session))

    def resumed(self, head: QueueingHead, edge: QueueingEdge, resume: msg.ResumeUp) -> None:
        """At the head: the owner changes; publications from here on go to the target, those before it are replayed."""
        x, bit = resume.subscriber, self.world.bit(resume.subscriber)
        head.apply_cover(edge.name, resume.cover)
        if (member := self.moving.pop(x, None)) is None:  # it has left meanwhile, and the edge withdraws the cover
            return
        head.routed[edge.name] |= bit
        self._missing_mask &= ~bit
        del self.missing[bit]
        source = self.world.edges[member.source]
        head.owners.swap(x, edge.name, resume.epoch, (EPOCH, head.log.last))
        head.coordinator.resumed(x, resume.session, edge.name)
        head.plan_tick()
        if source is not edge:
            self.upward.cover(source, source.withdraw([x]), 0, bit)
        self.world.paths.changed()
        self._catching_up[x] = member
        self.resume_in_stream(head, edge, x, resume.epoch)

    def resume_in_stream(self, head: QueueingHead, edge: QueueingEdge, x: str, epoch: OwnerEpoch) -> None:
        """From this place in the stream on, publications are the subscriber's: a newcomer's, or one's by replay."""
        at = head.log.last
        head.send_to_edge(head.name, edge.name, msg.ResumedDown(x, epoch, at, at, (EPOCH, at), None, False))

    def resumed_at_edge(self, edge: QueueingEdge, resumed: msg.ResumedDown) -> None:
        x = resumed.subscriber
        if x in edge.attachments.by_subscriber:
            if (member := self._catching_up.pop(x, None)) is not None:
                heard_at = self.world.now + self.world.client_seconds
                self.world.pauses.add(member.way, member.silent_from, heard_at)
                bit = self.world.bit(x)
                for pub in member.missed:
                    edge.output.send(pub, bit, self.world.now)
            edge.serve(x)


def _silent(members: Mapping[str, MemberInTransit], world: HandoverWorld) -> None:
    """The last of what the source has sent has reached them."""
    for member in members.values():
        member.silent_from = world.now


def _raised(epoch: OwnerEpoch) -> OwnerEpoch:
    """The owner epoch with which a subscriber resumes."""
    return epoch[0], epoch[1] + 1
