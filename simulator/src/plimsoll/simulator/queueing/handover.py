"""A hand-over as its edges and clients play it: the messages of docs/handover.md, each with the time that it takes.

The head's coordinator decides; what is here is the answers to it. Within a cluster a cut is exact, as in the product:
its messages travel in the streams behind the publications that they are about. Across clusters it is exact for
publications that enter at the head of the source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from plimsoll.core.edge.attachment import AttachmentState
from plimsoll.core.protocol import messages as msg
from plimsoll.simulator.queueing.broker import EPOCH
from plimsoll.simulator.queueing.edge import QueueingEdge
from plimsoll.simulator.queueing.head import QueueingHead
from plimsoll.simulator.queueing.replay import Replays
from plimsoll.simulator.queueing.upward import HandoverWorld, MemberInTransit, Upward


class Handovers:
    """`decider`: the head that decides each hand-over; `moving`: members by name; `replays`: the part by replay."""

    def __init__(self, world: HandoverWorld) -> None:
        self.world, self.upward = world, Upward(world, self.from_edge)
        self.decider: dict[str, QueueingHead] = {}
        self.moving: dict[str, MemberInTransit] = {}
        self.replays = Replays(world, self.upward, self.moving)

    def begin(self, head: QueueingHead, session: str) -> None:
        """A PREPARE has come to the head of the source."""
        self.decider[session] = head

    def leave(self, subscriber: str) -> None:
        """Forget a member that leaves in between; an edge that it has attached to already serves it no longer."""
        member = self.moving.pop(subscriber, None)
        if member is None:
            return
        self.replays.leave(subscriber)
        target = self.world.edges.get(member.target)
        if target is not None and subscriber in target.attachments.by_subscriber:
            target.advance(self.world.now)
            target.stop_serving(subscriber)
            self.upward.cover(target, target.withdraw([subscriber]), 0, self.world.bit(subscriber))

    # -- at edges, in the turn of the stream

    def handle(self, edge: QueueingEdge, message: msg.ToEdge) -> None:
        """Deal with a message of the stream."""
        match message:
            case msg.Prepare():
                self.upward.send(edge, msg.Slot(message.session, message.members, edge.name, ""))
            case msg.StartMove():
                self._start_move(edge, message)
            case msg.Install():
                self._install(edge, message)
            case msg.ResumedDown():
                self.replays.resumed_at_edge(edge, message)
            case msg.Installed():
                self._installed(edge, message)
            case msg.Cut():
                self._cut(edge, message)
            case msg.Abort():
                self._abort(edge, message)
            case msg.ForceDetach():
                self._force_detach(edge, message)
            case msg.Release():
                self.upward.cover(edge, edge.withdraw([message.subscriber]), 0, self.world.bit(message.subscriber))
            case _:
                raise TypeError(f"the queueing model sends no {type(message).__name__} to an edge")

    def _start_move(self, source: QueueingEdge, move: msg.StartMove) -> None:
        """MOVE_TO waits behind what is queued for the clients, which then attach to the target."""
        source.count_sent([msg.MoveTo] * len(move.members))
        for item in move.members:
            epoch = (item.epoch[0], item.epoch[1] + 1)
            self.moving[item.subscriber] = MemberInTransit(move.session, epoch, source.name, move.edge)
        names = [item.subscriber for item in move.members]
        later = 2 * self.world.client_seconds
        source.output.when_sent(names, later, self._attach, move.session, move.edge, names)

    def _attach(self, session: str, target_name: str, names: Sequence[str]) -> None:
        target = self.world.edges[target_name]
        target.advance(self.world.now)
        here = [x for x in names if x in self.moving and self.moving[x].session == session]
        for x in here:
            covers = target.attach(x, self.world.texts(x), self.moving[x].epoch, AttachmentState.STANDBY)
            self.upward.cover(target, covers, self.world.bit(x), 0)
        if here:
            self.upward.send(target, msg.TargetAttached(session, here))

    def _install(self, target: QueueingEdge, install: msg.Install) -> None:
        here = [x for x in install.members if x in self.moving and x in target.attachments.by_subscriber]
        if missing := [x for x in install.members if x not in here]:
            self.upward.send(target, msg.HandoverRejected(install.session, missing, "is not attached at the target"))
        if here:
            *first, last = target.subscription_table.step((), ())
            self.upward.cover(target, first, 0, 0)
            items = [msg.MemberItem(x, self.moving[x].epoch) for x in here]
            self.upward.send(target, msg.CutRequest(install.session, last, items))

    def _installed(self, target: QueueingEdge, installed: msg.Installed) -> None:
        for x in installed.members:
            member = self.moving.get(x)
            if member is not None:
                member.is_installed = True
                target.serve(x, is_held=True)
        self._go_live(target, installed.session, installed.members)

    def _cut(self, source: QueueingEdge, cut: msg.Cut) -> None:
        """END goes behind all that is queued for the clients, which then say GO to the target."""
        names = [item.subscriber for item in cut.members if item.subscriber in self.moving]
        for x in names:
            source.stop_serving(x)
        source.output.when_sent(names, self.world.client_seconds, self._ended, source.name, names, cut)

    def _ended(self, source_name: str, names: Sequence[str], cut: msg.Cut) -> None:
        source = self.world.edges[source_name]
        source.count_sent([msg.End] * len(names))
        if not cut.across:
            self.upward.cover(source, source.withdraw(names), 0, self.world.mask(names))
        by_target: defaultdict[str, list[str]] = defaultdict(list)
        for x in names:
            if (member := self.moving.get(x)) is not None:
                member.silent_from = self.world.now
                by_target[member.target].append(x)
        for target, members in by_target.items():
            self.world.at(self.world.now + self.world.client_seconds, self._go, cut.session, target, members)

    def _go(self, session: str, target_name: str, names: Sequence[str]) -> None:
        target = self.world.edges[target_name]
        target.advance(self.world.now)
        for x in names:
            if (member := self.moving.get(x)) is not None and member.session == session:
                member.has_go = True
        self._go_live(target, session, names)

    def _go_live(self, target: QueueingEdge, session: str, names: Sequence[str]) -> None:
        """Members that are installed and have said GO are served from here on."""
        done = []
        for x in names:
            member = self.moving.get(x)
            if member is not None and member.session == session and member.is_installed and member.has_go:
                target.release_held(x)
                del self.moving[x]
                heard_at = self.world.now + self.world.client_seconds
                self.world.pauses.add(member.way, min(member.silent_from, heard_at), heard_at)
                done.append(x)
        if done:
            self.upward.send(target, msg.Done(session, done))

    def _abort(self, edge: QueueingEdge, abort: msg.Abort) -> None:
        gone = []
        for item in abort.members:
            member = self.moving.get(item.subscriber)
            if member is not None and member.session == abort.session and member.target == edge.name:
                edge.stop_serving(item.subscriber)
                gone.append(item.subscriber)
                del self.moving[item.subscriber]
        if gone:
            self.upward.cover(edge, edge.withdraw(gone), 0, self.world.mask(gone))

    def _force_detach(self, edge: QueueingEdge, detach: msg.ForceDetach) -> None:
        """Members that are late resume at the target at once; what the source has queued still comes from there."""
        late = [item.subscriber for item in detach.members]
        for x in late:
            if (member := self.moving.get(x)) is not None and member.target == edge.name:
                member.has_go = True
        self._go_live(edge, detach.session, late)

    # -- upward

    def from_edge(self, edge: QueueingEdge, message: msg.FromEdge) -> None:
        """At the head of an edge: decide here, or pass on to the head that decides."""
        head = self.world.heads[edge.config.head_name]
        if isinstance(message, msg.ResumeUp):
            self.replays.resumed(head, edge, message)
        elif isinstance(message, msg.CutRequest):
            self._cut_request(head, edge, message)
        elif isinstance(message, msg.Slot | msg.TargetAttached | msg.Done | msg.HandoverRejected):
            decider = self.decider[message.session]
            far = self.world.paths.hops(head.name, decider.name) * self.world.link_seconds
            self.world.at(self.world.now + far, self._decide, decider, message)
        else:
            raise TypeError(f"the queueing model sends no {type(message).__name__} to a head")

    def _decide(
        self, head: QueueingHead, message: msg.Slot | msg.TargetAttached | msg.Done | msg.HandoverRejected
    ) -> None:
        match message:
            case msg.Slot():
                head.coordinator.on_slot(message)
            case msg.TargetAttached():
                head.coordinator.on_attached(message)
            case msg.Done():
                head.coordinator.on_done(message)
            case msg.HandoverRejected():
                head.coordinator.on_rejected(message)
        head.coordinator.tick()
        head.plan_tick()

    def _cut_request(self, head: QueueingHead, edge: QueueingEdge, request: msg.CutRequest) -> None:
        head.apply_cover(edge.name, request.cover)
        decider, token = self.decider[request.session], (head.name, EPOCH, head.log.last)
        if decider is head:
            good = head.coordinator.cut_decision.cut_members(request.session, request.members, edge.name, token)
            self._install_cut(head, edge, request.session, good)
            head.coordinator.tick()
            head.plan_tick()
            return
        for item in request.members:
            head.owners.swap(item.subscriber, edge.name, item.epoch, (EPOCH, head.log.last))
        far = self.world.paths.hops(head.name, decider.name) * self.world.link_seconds
        marker = msg.Marker(request.session, [item.subscriber for item in request.members], token)
        self.world.at(self.world.now + far, self._marked, decider, head, edge, marker)

    def _marked(self, decider: QueueingHead, head: QueueingHead, edge: QueueingEdge, marker: msg.Marker) -> None:
        session = decider.coordinator.sessions.get(marker.session)
        open_ones = set(session.of("cutting")) if session is not None else set[str]()
        decider.coordinator.cut_decision.on_marker(marker)
        good = [x for x in marker.members if x in open_ones and session is not None and x in session.of("cut")]
        far = self.world.paths.hops(head.name, decider.name) * self.world.link_seconds
        self.world.at(self.world.now + far, self._install_cut, head, edge, marker.session, good)
        decider.coordinator.tick()
        decider.plan_tick()

    def _install_cut(self, head: QueueingHead, edge: QueueingEdge, session: str, good: Sequence[str]) -> None:
        if good:
            since = [(EPOCH, head.log.last)] * len(good)
            head.send_to_edge(head.name, edge.name, msg.Installed(session, list(good), head.log.last, since))
