"""The head of a cluster: accepts publications, gives them a position, and sends each to the links that need it.

A publication is matched once, when it is logged. Everything that defines a point in a stream travels in that stream,
behind what was sent before it. A restarted head has a new epoch and an empty log; it works again when its edges and
neighbours have reported what they hold, or their lease has passed.

The machine passes on to its parts what happens on its links, the time, and control records; decisions are the parts'
own, and so are the records that they register for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plimsoll.core.config import BrokerConfig
from plimsoll.core.head.durability.durable_log import DurableLog
from plimsoll.core.head.durability.journal import RecoveredLog
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.part import with_hook
from plimsoll.core.head.parts import HeadParts
from plimsoll.core.permissions import name_of_broker
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link, Peer


class Head(HeadParts):
    """The machine of a head. `epoch` is made at process start and never used again."""

    def __init__(
        self, config: BrokerConfig, epoch: int, new_id: Callable[[], int], recovered: RecoveredLog | None = None
    ) -> None:
        super().__init__(config, epoch, new_id, recovered)
        self._ticking, self._waking = with_hook(self.parts, "tick"), with_hook(self.parts, "wake_at")
        self._next_progress = 0.0
        self._left = False
        self.handlers.of_mediators.add(msg.ClusterPolicy, lambda _, said: self.policies.receive(self, self, said))
        self.handlers.of_mediators.add(msg.BundleTable, self._on_bundles)
        self.handlers.of_mediators.add(msg.Leave, lambda *_: self.leave(self.now))
        self.continuation.restore()
        self.durable_places.restore()
        for peer in config.neighbors:
            if config.name < peer.name:  # of two neighbours the one whose name sorts first dials
                self.dial(peer.name, peer.data, peer.public_key)

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
        link.acks_dealt = is_head and isinstance(self.log, DurableLog)
        outbox = self.outboxes.open(link, is_head)
        if is_head:
            self.routes.neighbors[outbox.name].up = True
            self.covers.report_to_neighbors(self.startup.missing)
            self.startup.neighbor_connected(link.remote)
        self.outboxes.pump(outbox)

    def on_lost(self, link: Link) -> None:
        outbox = link.owner
        if not isinstance(outbox, Outbox):
            for part in self.parts:
                part.client_lost(link)
            return
        self.record_input.drop(link)
        self.outboxes.lost(outbox)
        self.confirmations.lost(outbox)
        self.publishers.credits.go_on(self.publishers.credits.shares.lost(outbox.key, self.now))
        for part in self.parts:
            part.broker_lost(outbox)

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

    # -- records

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        self.record_input.on_frame(link, frame, size)

    def set_refusal(self, why: str, now: float) -> None:
        """The shell says why nothing can be written now, or, with an empty text, that it can be again."""
        if self.journal is not None and self.journal.refusing != why:
            self.now, self.journal.refusing = now, why
            self.record_input.take_held()

    def on_control(self, peer: Peer, record: msg.ControlRecord) -> None:
        message = self.reporter.on_control(peer, record, self.now)
        if message is None:
            return
        if isinstance(message, msg.LoadUpdate):
            self.placement.update_load(message.report)
        if self.load_exchange is not None and self.load_exchange.on_control(peer, message):
            return
        # What is for an edge or a mediator, or not from a mediator, is dropped: control records may be lost.
        handle = self.handlers.of_mediators.get(type(message))
        if handle is not None and peer in self.reporter.mediators:
            handle(peer, message)

    def _on_bundles(self, _: Peer, said: msg.BundleTable) -> None:
        if said.mediator >= self.mediator_fence.epoch:
            self.policies.receive_bundles(self, said)

    # -- time

    def on_tick(self) -> None:
        for part in self._ticking:
            part.tick()
        if self.now >= self._next_progress:
            self._next_progress = self.now + self.config.limits.progress_seconds * self.config.time_factor
            self.outboxes.progress()
            for part in self.parts:
                part.expire()
        if self.reporter.due(self.now):
            self.load_reports.send()

    def wake_at(self) -> float:
        parts_at = min(part.wake_at() for part in self._waking)
        return min(self._next_progress, self.reporter.next_report, parts_at)

    def served(self, frames: int, seconds: float) -> None:
        if self.server.transparent and frames:
            self.meter.count_round(seconds)

    # -- leaving

    def leave(self, now: float) -> None:
        """Stop: a head has nowhere to send its subscribers, so it only says goodbye to its links."""
        self.now = now
        for link in [*self.handshakes.accepted_links(), *self.dialled.values()]:
            if link.open:
                self._out.append((link.peer, wire.bye_frame(link.id, "the head is leaving")))
        self._left = True

    def done(self) -> bool:
        """Whether everything that leaving needs has been sent."""
        return self._left

    def status(self) -> dict[str, Any]:
        fields = {
            **super().status(),
            "cluster": self.config.cluster,
            "epoch": self.epoch,
            "ready": not self.startup.missing,
            "waiting_for": sorted(self.startup.missing),
            "log_entries": len(self.log),
            "log_bytes": self.log.bytes,
            "subscribers": len(self.owners.entries),
            "edges": sorted(o.name for o in self.outboxes.by_key.values() if not o.is_head),
            "lagging": sorted(o.name for o in self.outboxes.by_key.values() if o.lagging),
            "plain": self.config.security.plain,
        }
        for part in self.parts:
            fields |= part.status()
        return fields
