"""The head of a cluster: accepts publications, gives them a position, and sends each to the links that need it.

A publication is matched once, when it is logged. Everything that defines a point in a stream travels in that stream,
behind what was sent before it. A restarted head has a new epoch and an empty log; it works again when its edges and
neighbours have reported what they hold, or their lease has passed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from plimsoll.core import reading, wire
from plimsoll.core import records as r
from plimsoll.core.balancing.exchange import Exchange
from plimsoll.core.config import BrokerConfig
from plimsoll.core.confirm import Confirmations
from plimsoll.core.covering import Delta
from plimsoll.core.handover.office import Office
from plimsoll.core.link import Link, Peer
from plimsoll.core.load import Meter
from plimsoll.core.log import Entry, Log
from plimsoll.core.membership import Membership
from plimsoll.core.node import Node, link_limits, output_bucket
from plimsoll.core.outlet import Outlet
from plimsoll.core.owners import Owners
from plimsoll.core.placing import Placing
from plimsoll.core.publishers import Publisher, Publishers
from plimsoll.core.reports import Reporter
from plimsoll.core.routes import Routes, joined, parts
from plimsoll.core.seats import Seats
from plimsoll.core.service import Server
from plimsoll.core.streams import Streams
from plimsoll.core.wire import FLAG_CONFIRM_EDGES, Info, WireError


class Head(Node):
    """The machine of a head. `epoch` is made at process start and never used again."""

    def __init__(self, config: BrokerConfig, epoch: int, new_id: Callable[[], int]) -> None:
        super().__init__(
            Info(config.name, "head", epoch),
            link_limits(config),
            new_id,
            max_frame_bytes=config.limits.max_frame_bytes,
            bucket=output_bucket(config),
        )
        self.config, self.epoch = config, epoch
        self.log = Log(config.limits.log_bytes)
        self.origin = (config.name, epoch)
        self.offset = 0
        self.routes = Routes((peer.name for peer in config.neighbors), compiled=config.hardware.may_compile)
        self.owners = Owners()
        self.publishers = Publishers(config.limits)
        self.seats = Seats()
        self.streams = Streams(self, self.log, self.origin)
        confirm_seconds = config.limits.confirm_seconds * config.time_factor
        self.confirmations = Confirmations(self.streams, self.publishers, confirm_seconds)
        self.server: Server[tuple[Link, int, Any, bool]] = Server(config.hardware)
        self.meter = Meter()
        self.reporter = Reporter(self, config, epoch, self.meter)
        self.members = frozenset(config.edges)
        self.missing: set[str] = {*config.edges, *(peer.name for peer in config.neighbors)}
        factor = config.time_factor
        self.membership = Membership(self, config.limits.lease_seconds * factor)
        self.office = Office(self, config.limits.progress_seconds * factor, factor)
        self.placing = Placing(self, factor)
        self.exchange = Exchange(self, config.limits.report_seconds * factor) if config.policy is not None else None
        self.seen: dict[tuple[str, int], int] = {}
        self._epochs: dict[str, int] = {}
        self._renewed: set[str] = set()
        self._met: set[str] = set()
        self._is_restart = self._welcomed_early = False
        self._waiting: list[tuple[Link, r.Open]] = []
        self._held: list[tuple[Link, int, Any, bool]] = []
        self._started: float | None = None
        self._next_progress = 0.0
        self._left = False
        self._reported_last, self._reported_at = 0, 0.0
        for peer in config.neighbors:
            if config.name < peer.name:
                self.dial(peer.name, peer.data, peer.public_key)

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def is_starting(self) -> bool:
        """Whether some edge or neighbour has not reported yet what it holds."""
        return bool(self.missing)

    @property
    def edges(self) -> dict[str, Outlet]:
        return self.membership.edges

    def send_to_head(self, head: str, record: Any) -> bool:
        return self.office.post.send(head, record)

    # -- links

    def admits(self, info: Info) -> str:
        if info.role == "edge" and info.name not in self.members:
            return f"{info.name} is not an edge of {self.config.name}; its cluster names it first"
        if info.role == "head" and info.name not in self.routes.upstreams:
            return f"{info.name} is not a neighbour of {self.config.name}; name it in spec.neighbors"
        return ""

    def on_open(self, link: Link) -> None:
        if link.remote is None or link.remote.role == "client":
            return
        is_head = link.remote.role == "head"
        outlet = self.streams.open(link, is_head)
        if is_head:
            self.routes.upstreams[outlet.name].up = True
            self._report_to_neighbors()
            self._note_epoch(link.remote)
        self.streams.pump(outlet)

    def _report_to_neighbors(self) -> None:
        """What a neighbour is told depends on all the others: on a tree, reports come in and go out leaf by leaf."""
        for name, upstream in self.routes.upstreams.items():
            outlet = self.streams.outlets.get(name)
            if outlet is not None and not upstream.synced and not self.missing - {name}:
                *first, last = parts(self.routes.whole(name))
                for record in (*first, r.NeighborReport(last, self.office.desk.mediator)):
                    self.streams.tell_first(outlet, record)

    def _note_epoch(self, neighbor: Info) -> None:
        """A neighbour that has restarted has lost what it had for us: a gap, as soon as it reports.

        It reports when all behind it have, so nothing is lost there later that the gap would not speak of.
        """
        before = self._epochs.get(neighbor.name)
        self._epochs[neighbor.name] = neighbor.incarnation
        if before is not None and before != neighbor.incarnation:
            self._renewed.add(neighbor.name)

    def _log_doubt(self, source: str) -> None:
        """Something may be lost, and nobody knows what: an entry of our log."""
        at = self.log.last + 1
        self._log_gap(r.Gap(self.config.name, self.epoch, at, self.epoch, at, [], "restart"), source)

    def on_lost(self, link: Link) -> None:
        outlet = link.owner
        if not isinstance(outlet, Outlet):
            self.publishers.lost(link)
            self._waiting = [(at, opening) for at, opening in self._waiting if at is not link]
            return
        self.streams.lost(outlet)
        self.confirmations.lost(outlet)
        if outlet.is_head:
            self.routes.down(outlet.name)
            self.office.neighbor_lost(outlet.name)
        else:
            self.membership.lost(outlet)

    def on_granted(self, link: Link) -> None:
        for refused in self.publishers.regranted(link, self.now):
            self.say(link, refused)

    def holds(self, link: Link) -> bool:
        """Publishers that open while this head is starting wait here, and are asked to say no more."""
        return super().holds(link) or bool(self._waiting)

    def on_room(self, link: Link) -> None:
        if isinstance(outlet := link.owner, Outlet):
            self.streams.pump(outlet)
            if through := outlet.settle():
                self.confirmations.acknowledged(outlet, through)

    # -- frames of records

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        role = link.remote.role if link.remote else "client"
        decoder = {"client": r.from_client, "edge": r.from_edge, "head": r.between_heads}[role]
        last = len(frame.records) - 1
        if not frame.records:
            self.took(link)
        for i, raw in enumerate(frame.records):
            try:
                record: Any = r.decode(decoder, raw)
            except WireError as error:
                self.counters[f"records_refused_{error.code}"] += 1
                record = None
            if self.server.transparent:
                self._handle(link, record, i == last)
            else:
                self._queue(link, record, len(memoryview(raw)), i == last)

    def _queue(self, link: Link, record: Any, size: int, ends_frame: bool) -> None:
        is_publication = isinstance(record, r.Publish | r.Pub)
        self.server.submit((link, link.id, record, ends_frame), size, self.now, is_publication=is_publication)

    def _serve(self) -> None:
        while (done := self.server.finished(self.now, self._subscriptions())) is not None:
            self.meter.serve(done)
            link, link_id, record, ends_frame = done.item
            if link.id == link_id and self.knows(link):
                self._handle(link, record, ends_frame)

    def _subscriptions(self) -> int:
        """What a publication is compared with here: the covers of all links."""
        return sum(self.routes.size(key) for key in self.streams.outlets)

    def _handle(self, link: Link, record: Any, ends_frame: bool) -> None:
        if self.missing and isinstance(record, r.Pub | r.Gap):
            # Who needs it is not known yet. Its frame is not taken, so the credit of the link bounds what is held.
            self._held.append((link, link.id, record, ends_frame))
            return
        if record is not None:
            try:
                if (handler := self._HANDLERS.get(type(record))) is None:
                    raise WireError("misplaced", f"{type(record).__name__} is for an edge")
                handler(self, link, record)
            except WireError as error:
                self.counters[f"records_refused_{error.code}"] += 1
        if ends_frame:
            self.took(link)

    # -- publishing

    def _on_open_publisher(self, link: Link, opening: r.Open) -> None:
        if self.missing:
            self._waiting.append((link, opening))
            return
        try:
            opened = self.publishers.open(link, opening, self.config.name, self.epoch, self.now)
        except WireError as error:
            self.counters["publishers_refused"] += 1
            self.say(link, r.Refused(opening.handle, 0, error.code, str(error)))
            return
        if opened is None:
            text = f"publisher {opening.publisher!r} is open in a newer incarnation; give each its own name"
            self.say(link, r.Refused(opening.handle, 0, "incarnation", text))
            return
        self.say(link, opened)
        for exception in self.publishers.again(link, opening.handle):
            self.say(link, exception)

    def _on_close_publisher(self, link: Link, closing: r.Close) -> None:
        self.publishers.close(link, closing.handle)

    def _on_publish(self, link: Link, record: r.Publish) -> None:
        self.meter.arrivals += 1
        publisher = self.publishers.get(link, record.handle)
        if publisher is None:
            self.say(link, r.Refused(record.handle, record.seq, "not-open", "open a publisher with this handle first"))
        elif record.seq <= publisher.last_seq:
            self.counters["publications_repeated"] += 1
            self.publishers.touch(publisher.name)
        elif record.seq > publisher.through:
            text = f"number {record.seq} is above the credit of {publisher.through}; wait for CREDIT"
            self.say(link, r.Refused(record.handle, record.seq, "over-credit", text))
        else:
            self._accept(link, publisher, record)

    def _accept(self, link: Link, publisher: Publisher, record: r.Publish) -> None:
        size = len(memoryview(record.body))
        self.publishers.took(publisher, record.seq, size, self.now)
        try:
            if size > self.config.limits.max_publication_bytes:
                most = self.config.limits.max_publication_bytes
                raise WireError("oversized", f"a publication of {size} bytes; at most {most} are taken")
            attributes = r.decode(r.body, record.body).attributes
        except WireError as error:
            self.counters["publications_refused"] += 1
            refused = r.Refused(record.handle, record.seq, error.code, str(error))
            self.publishers.single_out(publisher, refused)
            self.say(link, refused)
            return
        self.offset += 1
        pub = r.Pub(
            self.log.last + 1, self.config.name, self.epoch, self.offset, publisher.name, publisher.incarnation,
            record.seq, record.flags, record.sent_us, record.body,
        )  # fmt: skip
        keys = self._log_pub(pub, attributes, "")
        if record.flags & FLAG_CONFIRM_EDGES and keys:
            pending = self.publishers.await_edges(publisher, record.seq)
            self.confirmations.of_publisher(pub.position, publisher.name, pending, keys, self.now)

    def _log_pub(self, pub: r.Pub, attributes: dict[str, wire.Scalar], source: str) -> set[str]:
        """Log a publication and offer it to every link that needs it; returns the keys of those links."""
        piece = wire.encode(pub)
        position = self.log.append(Entry(piece, (((pub.head, pub.epoch), pub.offset),), False))
        keys = self.routes.match(attributes)
        keys.discard(source)
        self.streams.offer(sorted(keys) if len(keys) > 1 else keys, position, piece)
        return keys

    # -- between heads

    def _on_pub(self, link: Link, pub: r.Pub) -> None:
        outlet = self._outlet(link)
        origin = (pub.head, pub.epoch)
        if pub.offset <= self.seen.get(origin, 0):
            self.counters["relays_repeated"] += 1
            if pub.flags & FLAG_CONFIRM_EDGES:
                self.streams.tell(outlet, r.Confirmed([pub.position], []))
            return
        self.meter.arrivals += 1
        self.seen[origin] = pub.offset
        attributes = r.decode(r.body, pub.body).attributes
        upstream = pub.position
        pub = r.Pub(
            self.log.last + 1, pub.head, pub.epoch, pub.offset, pub.publisher, pub.incarnation, pub.seq, pub.flags,
            pub.sent_us, pub.body,
        )  # fmt: skip
        keys = self._log_pub(pub, attributes, outlet.name)
        if pub.flags & FLAG_CONFIRM_EDGES:
            self.confirmations.of_neighbor(pub.position, outlet.name, upstream, keys, self.now)

    def _on_gap(self, link: Link, gap: r.Gap) -> None:
        """handover.md, Gaps inside a session: a gap between heads is an entry of the receiver's log."""
        at = self.log.last + 1
        own = r.Gap(self.config.name, self.epoch, at, self.epoch, at, gap.last, gap.reason)
        for head, epoch, offset in gap.last:
            self.seen[head, epoch] = max(offset, self.seen.get((head, epoch), 0))
        self._log_gap(own, self._outlet(link).name)

    def _log_gap(self, gap: r.Gap, source: str) -> None:
        last = tuple(((head, epoch), offset) for head, epoch, offset in gap.last)
        record = wire.encode(gap)
        position = self.log.append(Entry(record, last, True))
        self.counters["gaps_logged"] += 1
        keys = [key for key in self.streams.all_keys() if key != source and self.routes.size(key)]
        self.streams.offer(keys, position, record)

    def _on_neighbor_report(self, link: Link, report: r.NeighborReport) -> None:
        outlet = self._outlet(link)
        name, known = outlet.name, outlet.name in self.routes
        self.office.desk.heard(report.mediator)
        self.announce(self.routes.replace(name, self.gathered(outlet, report.cover)))
        self.routes.wait(name, report.cover.seq)
        if not known and self.log.last:
            # What came in before this neighbour was known has not been sent to it.
            self.streams.tell(outlet, self.streams.logged())
        # Of a neighbour that was not waited for any longer, nobody here knows whether it has restarted, too.
        if name in self._renewed or (self._is_restart and name not in self._met and name not in self.missing):
            self._log_doubt(name)
        self._renewed.discard(name)
        self._met.add(name)
        self._is_restart |= bool(self.missing and report.cover.adds)
        self._reported(name)

    # -- covers

    def _on_cover(self, link: Link, cover: r.Cover) -> None:
        outlet = self._outlet(link)
        if cover.more:
            outlet.parts.append(cover)
            return
        self.announce(self.routes.apply(outlet.key, self.gathered(outlet, cover)))
        self.routes.wait(outlet.key, cover.seq)

    def gathered(self, outlet: Outlet, last: r.Cover) -> r.Cover:
        gathered, outlet.parts = outlet.parts, []
        return joined(gathered, last) if gathered else last

    def announce(self, deltas: dict[str, Delta[int]]) -> None:
        """Send what neighbours must know. A restarted head waits, so as not to shrink what they know of it."""
        for name, delta in deltas.items():
            outlet = self.streams.outlets.get(name)
            if outlet is not None and self.routes.upstreams[name].synced:
                for part in parts(self.routes.update(name, delta)):
                    self.streams.tell(outlet, part)

    def _on_cover_ack(self, link: Link, ack: r.CoverAck) -> None:
        self.routes.acknowledged(self._outlet(link).name, ack.seq, ack.unreached)

    def _acknowledge_covers(self) -> None:
        """Once a round: acknowledgements are cumulative, and one answers for all covers that came together."""
        if self.missing or not self.routes.waits:
            return
        for key, seq, unreached in self.routes.settled():
            if (outlet := self.streams.outlets.get(key)) is not None:
                self.streams.tell(outlet, r.CoverAck(seq, unreached))

    # -- edges and subscribers

    def _on_report(self, link: Link, report: r.Report) -> None:
        outlet = self._outlet(link)
        if self.membership.on_report(outlet, report):
            if self.office.desk.mediator:
                self.streams.tell(outlet, r.Mediator(self.office.desk.mediator))
            if self.owners.entries and self.missing & self.routes.upstreams.keys():
                self._is_restart = self._welcomed_early = True
            self._reported(outlet.name)

    def _on_resume(self, link: Link, resume: r.ResumeUp) -> None:
        self.membership.on_resume(self._outlet(link), resume)

    def _on_fetch(self, link: Link, fetch: r.Fetch) -> None:
        reading.read(fetch, self._outlet(link), self.log, self.streams, self.routes.match)

    def _on_expire(self, link: Link, expire: r.Expire) -> None:
        self.membership.on_expire(self._outlet(link), expire)

    def _on_forget(self, link: Link, gone: r.Forget) -> None:
        self.membership.on_forget(self._outlet(link), gone)

    def _on_leaving(self, link: Link, leaving: r.Leaving) -> None:
        outlet = self._outlet(link)
        outlet.leaving = True
        self.seats.remove(outlet.name)

    def _on_join(self, link: Link, join: r.Join) -> None:
        self.placing.on_join(link, join)

    def _on_handover(self, link: Link, record: Any) -> None:
        self.office.from_edge(self._outlet(link), record)

    def _on_cut_request(self, link: Link, request: r.CutRequest) -> None:
        self.office.on_cut_request(self._outlet(link), request)

    def _on_route(self, link: Link, route: r.Route) -> None:
        self.office.post.on_route(self._outlet(link).name, route)

    def _on_mediator(self, link: Link, mediator: r.Mediator) -> None:
        self.office.desk.heard(mediator.epoch)

    def _on_confirmed(self, link: Link, confirmed: r.Confirmed) -> None:
        self.confirmations.confirmed(self._outlet(link), confirmed)

    def _outlet(self, link: Link) -> Outlet:
        if not isinstance(link.owner, Outlet):
            raise WireError("order", f"{link.name} is not an open link of an edge or neighbour")
        return link.owner

    # -- time

    def on_tick(self) -> None:
        if self._started is None:
            self._started = self._next_progress = self.now
            self.meter.started = self.now
        if self.missing and self.now - self._started > self.config.limits.lease_seconds * self.config.time_factor:
            for name in sorted(self.missing):
                self._reported(name)
        self._acknowledge_covers()
        self._serve()
        self.office.tick()
        self.confirmations.expire(self.now)
        for link, answer in self.publishers.answers(self.now):
            self.say(link, answer)
        if self.now >= self._next_progress:
            self._next_progress = self.now + self.config.limits.progress_seconds * self.config.time_factor
            self._every_progress()
        if self.reporter.due(self.now):
            self._report()

    def _report(self) -> None:
        extra = {
            "subscribers": len(self.owners.entries),
            "subscriptions": self._subscriptions(),
            "input_queue_messages": len(self.server.queue),
            "output_queue_messages": self.streams.waiting(),
            **self._log_figures(),
            **(self.exchange.cluster() if self.exchange is not None else {}),
            "counters": {**self.meter.total, **self.counters},
        }
        self.reporter.tell(self.reporter.make(self.now, "OK", extra))
        if self.exchange is not None:
            self.exchange.tell_loads()

    def _log_figures(self) -> dict[str, Any]:
        """How much the log holds and how fast it fills: how long a subscriber may be away without a gap.

        And who publishes, and how large the covering set of each link is.
        """
        log, before = self.log, self._reported_last
        self._reported_last = log.last
        seconds = max(self.now - self._reported_at, 1e-9)
        rate = (log.last - before) / seconds
        self._reported_at = self.now
        bytes_each = log.bytes / len(log) if len(log) else 0.0
        return {
            "log_bytes": log.bytes,
            "log_limit_bytes": log.limit_bytes,
            "log_bytes_per_second": rate * bytes_each,
            **self.publishers.rates(seconds),
            "covers": {outlet.name: self.routes.size(outlet.key) for outlet in self.streams.outlets.values()},
        }

    def _every_progress(self) -> None:
        self.streams.progress()
        self.membership.expire_ghosts()
        self.office.expire()
        self.placing.expire()
        self.publishers.forget_idle(self.now, 10 * self.config.limits.lease_seconds * self.config.time_factor)

    def _reported(self, name: str) -> None:
        self.missing.discard(name)
        self._report_to_neighbors()
        if self.missing:
            return
        if self._welcomed_early:
            # What its edges were told at WELCOME does not speak of what was lost behind a neighbour since then.
            self._welcomed_early = False
            self._log_doubt("")
        held, self._held = self._held, []
        for link, link_id, record, ends_frame in held:
            if link.id == link_id:
                self._handle(link, record, ends_frame)
        waiting, self._waiting = self._waiting, []
        for link, opening in waiting:
            self._on_open_publisher(link, opening)

    def wake_at(self) -> float:
        return min(
            self._next_progress, self.server.wake_at(), self.publishers.wake_at(self.now), self.reporter.next_report,
            self.office.wake_at(),
        )  # fmt: skip

    # -- control

    def on_control(self, peer: Peer, record: Any) -> None:
        record = self.reporter.on_control(peer, record, self.now)
        if isinstance(record, r.Load):
            self.seats.heard(record.report)
        if self.exchange is not None and self.exchange.on_control(peer, record):
            return
        if isinstance(record, r.Members | r.Command | r.Serving) and peer in self.reporter.mediators:
            self._on_mediators_record(peer, record)
        elif isinstance(record, r.Leave):
            self.leave(self.now)

    def _on_mediators_record(self, peer: Peer, record: r.Members | r.Command | r.Serving) -> None:
        if isinstance(record, r.Members):
            self.members, self.seats.cordoned = frozenset(record.edges), frozenset(record.cordoned)
        elif isinstance(record, r.Command):
            self.office.desk.on_command(peer, record)
        else:
            self.office.desk.on_serving(peer, record)

    def leave(self, now: float) -> None:
        """Go: a head has nowhere to send its subscribers, so it says goodbye and stops."""
        self.now = now
        for link in [*self.accepted_links(), *self.dialled.values()]:
            if link.open:
                self._out.append((link.peer, wire.bye_frame(link.id, "the head is leaving")))
        self._left = True

    def done(self) -> bool:
        """Whether everything that leaving needs has been said."""
        return self._left

    def served(self, frames: int, seconds: float) -> None:
        if self.server.transparent and frames:
            self.meter.service_seconds += seconds
            self.meter.served = self.meter.arrivals

    def status(self) -> dict[str, Any]:
        return {
            **super().status(),
            "cluster": self.config.cluster,
            "epoch": self.epoch,
            "ready": not self.missing,
            "waiting_for": sorted(self.missing),
            "log_entries": len(self.log),
            "log_bytes": self.log.bytes,
            "publishers": len(self.publishers),
            "subscribers": len(self.owners.entries),
            "edges": sorted(o.name for o in self.streams.outlets.values() if not o.is_head),
            **self.office.status(),
            "lagging": sorted(o.name for o in self.streams.outlets.values() if o.lagging),
            "plain": self.config.security.plain,
        }

    _HANDLERS: ClassVar[dict[type[Any], Callable[..., None]]] = {
        r.Publish: _on_publish,
        r.Open: _on_open_publisher,
        r.Close: _on_close_publisher,
        r.Join: _on_join,
        r.Pub: _on_pub,
        r.Gap: _on_gap,
        r.NeighborReport: _on_neighbor_report,
        r.Confirmed: _on_confirmed,
        r.Cover: _on_cover,
        r.CoverAck: _on_cover_ack,
        r.Report: _on_report,
        r.ResumeUp: _on_resume,
        r.Fetch: _on_fetch,
        r.Expire: _on_expire,
        r.Forget: _on_forget,
        r.Leaving: _on_leaving,
        r.Slot: _on_handover,
        r.Attached: _on_handover,
        r.Done: _on_handover,
        r.Nak: _on_handover,
        r.Counts: _on_handover,
        r.CutRequest: _on_cut_request,
        r.Route: _on_route,
        r.Mediator: _on_mediator,
    }
