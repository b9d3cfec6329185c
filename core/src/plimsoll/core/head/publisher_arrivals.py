"""Publishers that come to this head from another one: on standby until the MARKER of the head that decides.

The MARKER comes behind the publisher's last publication at the other head, on the one path from there. What it
publishes here is taken behind that, so every broker and subscriber of the tree gets its publications in its order.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final, Protocol

from plimsoll.core.head.part import HeadPart
from plimsoll.core.head.publisher_audit import PublisherAudit
from plimsoll.core.head.publishers import AnyOpen, PublisherTable
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.head.router import TreeRouter
from plimsoll.core.identity_shares import NamesByIdentity
from plimsoll.core.permissions import NameGrants
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.transport.link import Link

STANDBY_SECONDS: Final = 60.0
"""How long a publisher is kept on standby."""
ORPHANED: Final = "orphaned"
"""Code of REFUSED: it does not come to this head by this move."""


@dataclass(slots=True)
class Standby:
    """A publisher of this identity that waits for the head `source` to decide."""

    link: Link
    opening: msg.OpenStandby
    ends_at: float
    identity: str


class ArrivalContext(Protocol):
    """The parts of a head that take publishers in."""

    now: float
    publishers: PublisherTable
    publisher_audit: PublisherAudit
    router: TreeRouter
    counters: Counter[str]
    name_grants: NameGrants

    def say(self, link: Link, record: msg.ToClient) -> None: ...


class PublisherOpener(Protocol):
    def open_now(self, link: Link, opening: AnyOpen) -> None:
        """Open it, and send it the answer."""


class PublisherArrivals(HeadPart):
    """`standbys`: by the name of the publisher. `sources`: the heads that wait to hear of those that have arrived."""

    def __init__(self, host: ArrivalContext, opener: PublisherOpener, time_factor: float) -> None:
        self.host, self.opener, self.time_factor = host, opener, time_factor
        self.standbys: NamesByIdentity[Standby] = NamesByIdentity()
        self._sources: dict[str, tuple[str, str]] = {}

    def register(self, handlers: RecordHandlers) -> None:
        handlers.of_heads.add(msg.PublisherMarker, lambda head, _, marker: self.on_marker(head, marker))

    def stand_by(self, link: Link, opening: msg.OpenStandby) -> None:
        """Keep a publisher for the decision on its move; open it if that has come already.

        Raises:
            WireError: as `PublisherTable.check`.

        """
        host = self.host
        known = host.publishers.check(link, opening, host.name_grants)
        if known is not None and known.arrived == opening.session and known.incarnation == opening.incarnation:
            self._open(link, opening)
            return
        if known is None and opening.publisher not in self.standbys:
            # A MARKER takes any free place: the other head has cut the publisher already, and its name has to be here.
            standbys = self.standbys
            if why := host.publishers.places.refusal(link, len(standbys), standbys.count(link.identity)):
                raise WireError("full", why)
        ends_at = host.now + STANDBY_SECONDS * self.time_factor
        self.standbys[opening.publisher] = Standby(link, opening, ends_at, link.identity)
        host.say(link, msg.PublisherStandby(opening.handle))

    def _open(self, link: Link, opening: msg.OpenStandby) -> None:
        if opening.publisher in self.standbys:
            del self.standbys[opening.publisher]
        self.opener.open_now(link, opening)
        if (waiting := self._sources.get(opening.publisher)) is not None and waiting[0] == opening.session:
            del self._sources[opening.publisher]
            self.host.router.send(waiting[1], msg.PublisherArrived(opening.session, opening.publisher))

    def close(self, link: Link, handle: int) -> bool:
        """End a standby; False if this is none."""
        for name, standby in self.standbys.items():
            if standby.link is link and standby.opening.handle == handle:
                del self.standbys[name]
                return True
        return False

    def client_lost(self, link: Link) -> None:
        """Its publishers ask again on the next one."""
        for name in [name for name, each in self.standbys.items() if each.link is link]:
            del self.standbys[name]

    def on_marker(self, source: str, marker: msg.PublisherMarker) -> None:
        """From here on this publisher's next number is taken at this head."""
        host, standby = self.host, self.standbys.get(marker.publisher)
        if standby is not None and standby.opening.session != marker.session:
            return  # of a move that the publisher has given up: it has begun another
        if not host.publishers.arrive(marker, host.now, host.name_grants):
            host.counters["publishers_not_taken"] += 1
            return
        self._sources[marker.publisher] = (marker.session, source)
        host.publisher_audit.begins(marker.session)
        if standby is not None and standby.opening.incarnation == marker.incarnation:
            self._open(standby.link, standby.opening)

    # -- what happens meanwhile

    def sources(self) -> list[str]:
        """The heads that decide on those that are on standby."""
        return sorted({standby.opening.source for standby in self.standbys.values()})

    def heads_lost(self, heads: list[str]) -> None:
        """These heads can no longer be reached: what they have decided may be lost on the way."""
        for name, standby in list(self.standbys.items()):
            if standby.opening.source in heads:
                self._orphan(name, standby, f"the way to {standby.opening.source} was lost")

    def expire(self) -> None:
        for name, standby in list(self.standbys.items()):
            if self.host.now >= standby.ends_at:
                self._orphan(name, standby, f"{standby.opening.source} has not decided in time")
        known = self.host.publishers.by_name
        self._sources = {name: each for name, each in self._sources.items() if name in known}

    def _orphan(self, name: str, standby: Standby, why: str) -> None:
        del self.standbys[name]
        self.host.say(standby.link, msg.Refused(standby.opening.handle, 0, ORPHANED, why))
