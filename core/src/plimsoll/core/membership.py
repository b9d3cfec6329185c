"""Who is served where in a cluster: reports of edges, attaching and resuming, leases, and the covers of dead edges.

An owner entry names the link of one edge. A cover goes with its link, unless somebody may still come back for what it
asks: then it stays as a ghost until no owner entry names it, or its lease has passed.
"""

from __future__ import annotations

from typing import Protocol

from plimsoll.core import records as r
from plimsoll.core.covering import Delta
from plimsoll.core.handover.office import Office
from plimsoll.core.log import Log
from plimsoll.core.outlet import Outlet
from plimsoll.core.owners import Owners, catch_up
from plimsoll.core.routes import Routes
from plimsoll.core.seats import Seats
from plimsoll.core.streams import Streams
from plimsoll.core.wire import OwnerEpoch


class Host(Protocol):
    """What membership needs of its head."""

    now: float
    epoch: int
    log: Log
    routes: Routes
    streams: Streams
    owners: Owners
    seats: Seats
    office: Office

    @property
    def name(self) -> str: ...
    def announce(self, deltas: dict[str, Delta[int]]) -> None: ...
    def gathered(self, outlet: Outlet, last: r.Cover) -> r.Cover: ...


class Membership:
    """The edges of a head and the subscribers that they serve."""

    def __init__(self, host: Host, lease_seconds: float) -> None:
        self.host, self.lease_seconds = host, lease_seconds
        self.edges: dict[str, Outlet] = {}
        self.ghosts: dict[str, float] = {}

    # -- edges come and go

    def on_report(self, outlet: Outlet, report: r.Report) -> bool:
        """What an edge serves, in parts; whether this was the last."""
        host = self.host
        outlet.owned += report.owned
        if report.more:
            return False
        self.edges[outlet.name] = outlet
        host.seats.add(outlet.name, report.endpoint, report.public_key)
        host.office.desk.heard(report.mediator)
        host.announce(host.routes.replace(outlet.key, host.gathered(outlet, report.cover)))
        host.routes.wait(outlet.key, report.cover.seq)
        owned, outlet.owned = outlet.owned, []
        for item in owned:
            loser = host.owners.adopt(item.subscriber, outlet.key, item.epoch, item.since)
            if loser is not None:
                self.release(loser.key, item.subscriber, host.owners.entries[item.subscriber].epoch)
        host.streams.tell(outlet, r.Welcome(host.log.last))
        return True

    def lost(self, outlet: Outlet) -> None:
        """The link of an edge is over: its cover stays while somebody may come back for it."""
        host = self.host
        if self.edges.get(outlet.name) is outlet:
            del self.edges[outlet.name]
        host.seats.remove(outlet.name)
        host.office.edge_lost(outlet.name)
        self.ghosts[outlet.key] = host.now + self.lease_seconds
        self.drop_ghosts()

    # -- subscribers

    def on_resume(self, outlet: Outlet, resume: r.ResumeUp) -> None:
        """handover.md, Resume: in one step apply the cover, swap the owner and say where the subscriber goes on."""
        host, x = self.host, resume.subscriber
        host.announce(host.routes.apply(outlet.key, host.gathered(outlet, resume.cover)))
        host.routes.wait(outlet.key, resume.cover.seq)
        newest = host.owners.newest(x)
        if newest >= resume.epoch:
            host.streams.tell(outlet, r.Release(x, (newest[0], newest[1] + 1)))
            return
        is_again = resume.token is not None
        old = host.owners.swap(x, outlet.key, resume.epoch, (host.epoch, host.log.last), is_again)
        owner = host.owners.entries[x]
        host.office.resumed(x, resume.session, outlet.name)
        at = catch_up(resume.token, owner.since, host.name, host.epoch, host.log)
        lapsed = at.lapsed or owner.has_lapsed(host.name, resume.token)
        host.streams.tell(
            outlet, r.ResumedDown(x, resume.epoch, host.log.last, at.start, owner.since, at.gap, lapsed)
        )  # fmt: skip
        if old is not None and old.key != outlet.key:
            self.release(old.key, x, resume.epoch)
        self.drop_ghosts()

    def release(self, key: str, subscriber: str, epoch: OwnerEpoch) -> None:
        if (outlet := self.host.streams.outlets.get(key)) is not None:
            self.host.streams.tell(outlet, r.Release(subscriber, epoch))

    def on_expire(self, outlet: Outlet, expire: r.Expire) -> None:
        """A closed record's lease has ended: compare and swap, then RELEASE."""
        host, key, x = self.host, outlet.key, expire.subscriber
        entry = host.owners.entries.get(x)
        if entry is not None and entry.key == key and entry.epoch == expire.epoch:
            self._lapse(x)
        if (entry := host.owners.entries.get(x)) is None or entry.key != key:
            host.streams.tell(outlet, r.Release(x, (expire.epoch[0], expire.epoch[1] + 1)))
        self.drop_ghosts()

    def _lapse(self, subscriber: str) -> None:
        host = self.host
        epoch = host.owners.entries[subscriber].epoch
        host.owners.forget(subscriber)
        host.office.lapsed(subscriber, epoch)

    def on_forget(self, outlet: Outlet, gone: r.Forget) -> None:
        entry = self.host.owners.entries.get(gone.subscriber)
        if entry is not None and entry.key == outlet.key and entry.epoch == gone.epoch:
            self._lapse(gone.subscriber)

    # -- time

    def expire_ghosts(self) -> None:
        """handover.md, Time: a dead edge's entries expire at the head."""
        for key in [key for key, at in self.ghosts.items() if at <= self.host.now]:
            for subscriber in self.host.owners.of(key):
                self._lapse(subscriber)
        self.drop_ghosts()

    def drop_ghosts(self) -> None:
        """handover.md, Resume: a dead edge's cover stays until no owner entry names it."""
        if not self.ghosts:
            return
        owned = self.host.owners.keys()
        for key in [key for key in self.ghosts if key not in owned]:
            del self.ghosts[key]
            self.host.announce(self.host.routes.drop(key))
