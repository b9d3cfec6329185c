"""Hand-over by replay in the queueing model: the source lets go at once, and the log gives what it has not served."""

from __future__ import annotations

from collections.abc import Sequence

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
        self._catching_up: dict[str, list[Publication]] = {}

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
        fresh = [item for item in revoke.members if item.subscriber not in self.moving]
        names = [item.subscriber for item in fresh]
        mask = self.world.mask(names)
        for item in fresh:
            member = MemberInTransit(
                revoke.session, (item.epoch[0], item.epoch[1] + 1), source.name, revoke.edge, is_installed=True
            )  # fmt: skip
            self.moving[item.subscriber] = self.missing[self.world.bit(item.subscriber)] = member
            source.stop_serving(item.subscriber)
        for pub in source.waiting_for(mask):
            self.note(pub, mask)
        self._missing_mask |= mask
        source.count_sent([msg.Moved] * bool(names))
        if names:
            self.world.at(self.world.now + 2 * self.world.client_seconds, self._resume, names)

    def _resume(self, names: Sequence[str]) -> None:
        for x in names:
            member = self.moving[x]
            target = self.world.edges[member.target]
            target.advance(self.world.now)
            covers = target.attach(x, self.world.texts(x), member.epoch)
            self.upward.cover(target, covers[:-1], 0, 0)
            self.upward.send(target, msg.ResumeUp(x, member.epoch, covers[-1], None, member.session))

    def resumed(self, head: QueueingHead, edge: QueueingEdge, resume: msg.ResumeUp) -> None:
        """At the head: the owner changes; publications from here on go to the target, those before it are replayed."""
        x, bit = resume.subscriber, self.world.bit(resume.subscriber)
        member = self.moving.pop(x)
        head.apply_cover(edge.name, resume.cover)
        head.routed[edge.name] |= bit
        self._missing_mask &= ~bit
        del self.missing[bit]
        source = self.world.edges[member.source]
        head.owners.swap(x, edge.name, resume.epoch, (EPOCH, head.log.last))
        head.coordinator.resumed(x, resume.session, edge.name)
        head.plan_tick()
        self.upward.cover(source, source.withdraw([x]), 0, bit)
        self.world.paths.changed()
        self._catching_up[x] = member.missed
        self.resume_in_stream(head, edge, x, resume.epoch)

    def resume_in_stream(self, head: QueueingHead, edge: QueueingEdge, x: str, epoch: OwnerEpoch) -> None:
        """From this place in the stream on, publications are the subscriber's: a newcomer's, or one's by replay."""
        at = head.log.last
        head.send_to_edge(head.name, edge.name, msg.ResumedDown(x, epoch, at, at, (EPOCH, at), None, False))

    def resumed_at_edge(self, edge: QueueingEdge, resumed: msg.ResumedDown) -> None:
        x = resumed.subscriber
        if x in edge.attachments.by_subscriber:
            for pub in self._catching_up.pop(x, ()):
                edge.send(pub, 1, self.world.now)
            edge.serve(x)
