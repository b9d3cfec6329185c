"""A head that starts waits until all edges and neighbours have reported what they hold, or their lease has passed.

docs/handover.md, Restart of a head: until then no commands, no publications accepted, no COVER sent, no SUBACK. OPENs
and relayed publications wait here. Of what was lost meanwhile the head may not know; it logs a gap for that. It also
waits for the definition of each consumer group of which an edge serves slices: without it no publication has a stamp.
A head whose log has all that its subscribers are due waits for edges only that are there: others may be lost with the
node of the head before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from plimsoll.core.head.cover_updates import CoverUpdates
from plimsoll.core.head.distributor import Distributor
from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.publishers import AnyOpen
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import NEVER, Link

ABSENT_SECONDS = 1.0
"""An edge that has not been there for so long after the start may be lost. Those that live dial several times a second;
one that comes later is sent what it has missed."""


class HeldRelay(NamedTuple):
    """A publication or gap of a neighbour that came too early, or a message behind one. `link_id`: of the incarnation
    that it came on."""

    link: Link
    link_id: int
    message: msg.Pub | msg.Gap | msg.Route
    ends_frame: bool


class StartupBarrier(HeadPart):
    """`missing`: edges and neighbours that have not reported; `when_ready` is called when none is left.

    A neighbour or edge that reports again later passes through `reported`, too: then nothing is waiting.
    """

    def __init__(
        self,
        expected: Iterable[str],
        covers: CoverUpdates,
        distributor: Distributor,
        when_ready: Callable[[], None],
        lease_seconds: float = NEVER,
        absent_seconds: float = ABSENT_SECONDS,
    ) -> None:
        self.missing = set(expected)
        self._expected = frozenset(self.missing)
        self.covers, self.distributor, self.when_ready = covers, distributor, when_ready
        self.lease_seconds, self.absent_seconds = lease_seconds, absent_seconds
        self.needs_all = True
        """Whether those that are not there are waited for, too: what they ask for decides what is in the log."""
        self._started: float | None = None
        self.waiting: list[tuple[Link, AnyOpen]] = []
        self._held: list[HeldRelay] = []
        self._held_at: set[tuple[Link, int]] = set()
        self._epochs: dict[str, int] = {}
        self._restarted: set[str] = set()
        self.given_up: set[str] = set()
        """Neighbours that reported too late: meanwhile others were told that those ask for nothing."""
        self.answered_for: set[str] = set()
        """Neighbours that are not waited for: what they ask for is on the disk, and they are sent what they miss."""
        self._known: set[str] = set()
        self._is_restart = self._welcomed_early = self._remembers = False

    def recall(self, epochs: dict[str, int]) -> None:
        """Take over from the disk in which epoch each neighbour was heard last: nothing is uncertain about those."""
        self._epochs.update(epochs)
        self._known.update(epochs)
        self._remembers = True

    def epoch_of(self, neighbor: str) -> int:
        """The epoch in which a neighbour was linked last; 0 if it has not been."""
        return self._epochs.get(neighbor, 0)

    def has_forgotten(self, neighbor: str) -> bool:
        """Whether a neighbour has restarted without what it had had, and has not reported since."""
        return neighbor in self._restarted

    @property
    def is_starting(self) -> bool:
        return bool(self.missing)

    def lacks_places_of(self, edges: Iterable[str]) -> bool:
        """Whether one of these edges has still to report its places to a head that has recovered, in a tree."""
        return self._remembers and bool(self.covers.routes.neighbors) and not self.missing.isdisjoint(edges)

    def expect(self, names: Iterable[str]) -> None:
        """Wait for more than what was expected from the start; a head that is ready waits for nothing."""
        if self.missing:
            self.missing |= set(names)

    # -- what waits

    def wait(self, link: Link, opening: AnyOpen) -> None:
        """Keep an OPEN until the head is ready."""
        self.waiting.append((link, opening))

    def hold(self, link: Link, message: msg.Pub | msg.Gap | msg.Route, *, ends_frame: bool) -> None:
        """Keep what a neighbour relays: which links need it is not known yet.

        Its frame is not given back as taken, so the link's credit bounds what is held.
        """
        self._held.append(HeldRelay(link, link.id, message, ends_frame))
        self._held_at.add((link, link.id))

    def client_lost(self, link: Link) -> None:
        """Its OPENs are void."""
        self.waiting = [(at, opening) for at, opening in self.waiting if at is not link]

    def has_held(self, link: Link) -> bool:
        """Whether something of this link waits: what defines a point in its stream must not overtake it."""
        return (link, link.id) in self._held_at

    def take_held(self) -> list[HeldRelay]:
        """What was held; its link may be over, but the neighbour does not send it again."""
        held, self._held = self._held, []
        self._held_at.clear()
        return held

    def take_waiting(self) -> list[tuple[Link, AnyOpen]]:
        waiting, self.waiting = self.waiting, []
        return waiting

    # -- reports

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_brokers.add(msg.NeighborReport, self.on_neighbor_report)

    def on_neighbor_report(self, outbox: Outbox, report: msg.NeighborReport) -> None:
        self.covers.on_neighbor_report(outbox, report)
        self.neighbor_reported(outbox.name, holds_cover=bool(report.cover.adds))

    def neighbor_connected(self, neighbor: Info) -> None:
        """Note whether a neighbour has restarted, and has lost what it had for this head: a gap when it reports.

        The gap waits for the report because a neighbour reports when all behind it have: nothing is lost there later
        that the gap would not cover.
        """
        before = self._epochs.get(neighbor.name)
        self._epochs[neighbor.name] = neighbor.incarnation
        if before is not None and before != neighbor.incarnation:
            self.distributor.end_epoch(neighbor.name, before)
        if before is not None and before != neighbor.incarnation and not neighbor.remembers(before):
            self._restarted.add(neighbor.name)

    def neighbor_reported(self, name: str, *, holds_cover: bool) -> None:
        """A neighbour's report has been applied. `holds_cover`: it has subscriptions, so it was at work before."""
        # The lease of this neighbour had passed before it reported: whether it restarted meanwhile is not known either.
        is_late = self._is_restart and name not in self._known and name not in self.missing
        if name in self.given_up:
            # Others have published what the neighbour asks for, and have not sent it here.
            self.distributor.log_uncertainty("")
        elif name in self._restarted or is_late:
            self.distributor.log_uncertainty(name)
        self._restarted.discard(name)
        self.given_up.discard(name)
        self._known.add(name)
        # It had something for a head that has just started: so this head has been here before.
        self._is_restart |= bool(self.missing and holds_cover)
        self.reported(name)

    def edge_reported(self, name: str, *, has_owners: bool) -> None:
        """An edge's report has been applied and its WELCOME sent. `has_owners`: some edge serves a subscriber."""
        if has_owners and not self._remembers and self.missing & self.covers.routes.neighbors.keys():
            self._is_restart = self._welcomed_early = True
        self.reported(name)

    def tick(self) -> None:
        now = self.covers.outboxes.node.now
        if self._started is None:
            self._started = now
            for name in sorted(self.answered_for & self.missing):
                self.reported(name)
        if self.missing and now - self._started > self.lease_seconds:
            self.lease_passed()
        elif self.missing and not self.needs_all and now >= self._started + self.absent_seconds:
            self._leave_out_absent()

    def wake_at(self) -> float:
        if self.needs_all or not self.missing or self._started is None:
            return NEVER
        at, now = self._started + self.absent_seconds, self.covers.outboxes.node.now
        return at if at > now else NEVER

    def _leave_out_absent(self) -> None:
        """Wait no longer for edges that have no link; one that has is about to report."""
        linked = {outbox.name for outbox in self.covers.outboxes.by_key.values()}
        for name in sorted((self.missing & self._expected) - linked):
            self.reported(name)

    def lease_passed(self) -> None:
        """Wait no longer for those that have not reported."""
        neighbors = self.covers.routes.neighbors.keys()
        if self._remembers and len(neighbors) > 1:
            self.given_up |= self.missing & neighbors
        for name in sorted(self.missing):
            self.reported(name)

    def reported(self, name: str) -> None:
        self.missing.discard(name)
        self.covers.report_to_neighbors(self.missing)
        if self.missing:
            return
        if self._welcomed_early:
            # WELCOME gave subscribers a gap up to its own position. What neighbours lost after that is not in it.
            self._welcomed_early = False
            self.distributor.log_uncertainty("")
        self.when_ready()
