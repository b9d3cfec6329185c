"""The hand-over side of a head: what comes for sessions from mediators, edges and other heads, and where answers go.

Everything that defines a point in a stream is said in that stream. Only commands, outcomes and REVOKE go by the
control socket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Protocol

from plimsoll.core import records as r
from plimsoll.core.covering import Delta
from plimsoll.core.handover.coordinator import Coordinator
from plimsoll.core.handover.desk import Desk
from plimsoll.core.handover.guests import KEPT_SECONDS, Guests
from plimsoll.core.handover.post import Post
from plimsoll.core.link import Peer
from plimsoll.core.log import Log
from plimsoll.core.outlet import Outlet
from plimsoll.core.owners import Owner, Owners
from plimsoll.core.placing import Placing
from plimsoll.core.reports import Reporter
from plimsoll.core.routes import Routes
from plimsoll.core.streams import Streams


class Host(Protocol):
    """What the office needs of its head."""

    now: float
    epoch: int
    log: Log
    owners: Owners
    routes: Routes
    streams: Streams
    reporter: Reporter
    placing: Placing

    @property
    def edges(self) -> dict[str, Outlet]: ...
    @property
    def name(self) -> str: ...
    @property
    def is_starting(self) -> bool: ...
    def announce(self, deltas: dict[str, Delta[int]]) -> None: ...
    def gathered(self, outlet: Outlet, last: r.Cover) -> r.Cover: ...
    def say_control(self, peer: Peer, *said: Any) -> None: ...


class Office:
    """Sessions that are decided here, and guests of those that are decided elsewhere."""

    def __init__(self, host: Host, progress_seconds: float, time_factor: float) -> None:
        self.host = host
        self.coordinator = Coordinator(self, progress_seconds)
        self.guests = Guests(self, KEPT_SECONDS * time_factor)
        self.post = Post(self)
        self.desk = Desk(self)

    # -- what the parts ask

    @property
    def now(self) -> float:
        return self.host.now

    @property
    def epoch(self) -> int:
        return self.host.epoch

    @property
    def name(self) -> str:
        return self.host.name

    @property
    def owners(self) -> Owners:
        return self.host.owners

    @property
    def log(self) -> Log:
        return self.host.log

    @property
    def is_starting(self) -> bool:
        return self.host.is_starting

    def owner_edge(self, owner: Owner) -> str:
        outlet = self.host.streams.outlets.get(owner.key)
        return outlet.name if outlet is not None and not outlet.is_head else ""

    def has_edge(self, edge: str) -> bool:
        return edge in self.host.edges

    def reaches(self, head: str) -> bool:
        return self.post.reaches(head)

    def is_guest(self, subscriber: str) -> bool:
        return subscriber in self.guests

    def served_by(self, edge: str) -> list[str]:
        outlet = self.host.edges.get(edge)
        return sorted(self.owners.of(outlet.key)) if outlet is not None else []

    def neighbors(self) -> list[str]:
        outlets, upstreams = self.host.streams.outlets, self.host.routes.upstreams
        return [name for name, upstream in upstreams.items() if upstream.synced and name in outlets]

    def mediators(self) -> list[Peer]:
        return list(self.host.reporter.mediators)

    # -- where things go

    def to_edge(self, head: str, edge: str, record: Any) -> None:
        if head != self.name:
            self.post.send(head, record, edge)
        elif (outlet := self.host.edges.get(edge)) is not None:
            self.host.streams.tell(outlet, record)

    def to_head(self, head: str, record: Any) -> None:
        if head == self.name:
            self._decide(record)
        else:
            self.post.send(head, record)

    def to_neighbor(self, neighbor: str, record: Any) -> None:
        self.host.streams.tell(self.host.streams.outlets[neighbor], record)

    def revoke(self, edge: str, record: r.Revoke) -> None:
        if (peer := self.host.reporter.brokers.get(edge)) is not None:
            self.host.say_control(peer, record)

    def say_control(self, peer: Peer, *said: Any) -> None:
        self.host.say_control(peer, *said)

    def told(self, outcome: r.Outcome) -> None:
        self.desk.told(outcome)

    def spread_mediator(self, epoch: int) -> None:
        for outlet in self.host.edges.values():
            self.host.streams.tell(outlet, r.Mediator(epoch))
        for neighbor in self.neighbors():
            self.to_neighbor(neighbor, r.Mediator(epoch))

    # -- what comes in

    def from_edge(self, outlet: Outlet, record: Any) -> None:
        """SLOT, ATTACHED, DONE, NAK or COUNTS of an edge here: for this head, or for the one that decides."""
        if isinstance(record, r.Counts):
            self.to_head(record.judge, record)
            return
        local = self.coordinator.sessions.get(record.session)
        if local is not None:
            self._decide(record)
        elif isinstance(record, r.Done):
            self.guests.done(record)
            self._judge(self.name, record)  # by replay its members may all have moved before
        else:
            for head, members in sorted(self.guests.by_coordinator(record.session, record.members).items()):
                self.to_head(head, _about(record, members))
            if isinstance(record, r.Nak):
                self.guests.refused(record.session, record.members)

    def on_cut_request(self, outlet: Outlet, request: r.CutRequest) -> None:
        """In one step: the cover, the owners, and the two ends of the cut."""
        host = self.host
        host.announce(host.routes.apply(outlet.key, host.gathered(outlet, request.cover)))
        host.routes.wait(outlet.key, request.cover.seq)
        token = (host.name, host.epoch, host.log.last)
        if request.session in self.coordinator.sessions:
            good = self.coordinator.cut_members(request.session, request.members, outlet.key, token)
        else:
            good = self.guests.cut_request(request, outlet.key, token)
        cut = set(good)
        if bad := [item for item in request.members if item.subscriber not in cut]:
            at_source = [r.MemberItem(i.subscriber, (i.epoch[0], max(i.epoch[1] - 1, 0))) for i in bad]
            host.streams.tell(outlet, r.Abort(request.session, at_source))
        if good:
            since = [host.owners.entries[x].since for x in good]
            host.streams.tell(outlet, r.Installed(request.session, good, host.log.last, since))

    def arrived(self, source: str, edge: str, record: Any) -> None:
        """Something from another head, for an edge of ours or for us."""
        if isinstance(record, r.JoinFor | r.PlacedFor):
            self.host.placing.arrived(source, record)
        elif not edge:
            self._decide(record, source)
        elif why := self._refusal(source, edge, record):
            self.to_head(source, r.Nak(record.session, record.members, why))
        else:
            if isinstance(record, r.Abort):
                self.guests.aborted(record)
            elif isinstance(record, r.Part):
                self.guests.parted(record, edge, source)
            self.to_edge(self.name, edge, record)

    def _refusal(self, source: str, edge: str, record: Any) -> str:
        if not isinstance(record, r.Prepare | r.Install):
            return ""
        if edge not in self.host.edges:
            return f"{edge} is not an edge of {self.name}, or is down"
        if isinstance(record, r.Prepare) and not self.guests.prepared(record, edge, source):
            return f"{self.name} has as many guests as it may have"
        return ""

    def _decide(self, record: Any, source: str = "") -> None:
        if (handler := self._DECIDED.get(type(record))) is not None:
            handler(self.coordinator, record)
        if isinstance(record, r.Done):
            self._judge(source or self.name, record)
        elif isinstance(record, r.Counts):
            self.coordinator.judging.counted(record, self.coordinator.moved(record.session))

    def _judge(self, target_head: str, done: r.Done) -> None:
        """Those who have moved ask what was due to them."""
        if done.checks:
            self.coordinator.judging.done(target_head, done, self.coordinator.moved(done.session))

    # -- what happens meanwhile

    def resumed(self, subscriber: str, named: str | None, edge: str) -> None:
        self.guests.resumed(subscriber, named, edge)
        self.coordinator.resumed(subscriber, named, edge)

    def lapsed(self, subscriber: str, epoch: tuple[int, int]) -> None:
        self.guests.lapsed(subscriber, epoch)
        self.coordinator.lapsed(subscriber, epoch)

    def edge_lost(self, edge: str) -> None:
        self.coordinator.edge_lost(edge)
        self.guests.edge_lost(edge)

    def neighbor_lost(self, neighbor: str) -> None:
        """What was on its way is gone, and whoever lies behind may have forgotten."""
        self.guests.heads_lost(self.post.behind(neighbor, self.guests.coordinators()))
        targets = {session.plan.target_head for session in self.coordinator.sessions.values()} - {self.name}
        self.coordinator.head_lost(self.post.behind(neighbor, sorted(targets)))
        self.post.lost(neighbor)

    def expire(self) -> None:
        self.guests.expire()
        self.coordinator.expire()

    def tick(self) -> None:
        self.coordinator.tick()

    def wake_at(self) -> float:
        return self.coordinator.wake_at()

    def status(self) -> dict[str, Any]:
        return {
            "mediator": self.desk.mediator,
            "sessions": len(self.coordinator.sessions),
            "guests": len(self.guests),
            "outcomes": dict(sorted(self.coordinator.outcomes.items())),
        }

    _DECIDED: ClassVar[dict[type[Any], Callable[[Coordinator, Any], None]]] = {
        r.Slot: Coordinator.on_slot,
        r.Attached: Coordinator.on_attached,
        r.Marker: Coordinator.on_marker,
        r.Done: Coordinator.on_done,
        r.Nak: Coordinator.on_nak,
    }


def _about(record: Any, members: Iterable[str]) -> Any:
    """The same, about these members only."""
    if isinstance(record, r.Slot):
        return r.Slot(record.session, list(members), record.endpoint, record.public_key)
    if isinstance(record, r.Nak):
        return r.Nak(record.session, list(members), record.reason)
    return type(record)(record.session, list(members))
