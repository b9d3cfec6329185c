"""An edge: serves subscribers from its head's stream, and never makes one of them wait for another.

Each record of the stream is dealt with in order. Subscribers that are not LIVE (resuming, catching up, blocked) are
passed over by the stream and served from the head's log. What an edge announces upward is the covering set of all
that it answers for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from plimsoll.core import records as r
from plimsoll.core import wire
from plimsoll.core.attaching import Attaching
from plimsoll.core.attachment import SERVED, Attachment, Port, State
from plimsoll.core.balancing import settings
from plimsoll.core.balancing.watch import Note, Watch
from plimsoll.core.catchup import Cursor
from plimsoll.core.config import BrokerConfig
from plimsoll.core.grants import NOT_GRANTED
from plimsoll.core.handover.giving import Giving
from plimsoll.core.handover.receiving import Receiving
from plimsoll.core.holdings import Holdings
from plimsoll.core.link import Link, Peer
from plimsoll.core.load import Meter
from plimsoll.core.node import HELD_ABOVE_RECORDS, NEVER, Node, link_limits, output_bucket
from plimsoll.core.queues import Queues
from plimsoll.core.replay import Replayer
from plimsoll.core.reports import Reporter
from plimsoll.core.roster import Roster
from plimsoll.core.service import Server
from plimsoll.core.wire import Info, WireError

LEAVING_SECONDS = 10.0
ROUND_DELIVERIES = 20_000
"""So many deliveries of one frame gather before links are flushed, and their buffers bounded."""
REPORT_ITEMS = 256
"""So many subscribers are told of in one REPORT: a record must fit into a frame, whatever their names are."""


class Edge(Node):
    """The machine of an edge. `epoch` is made at process start and never used again."""

    def __init__(self, config: BrokerConfig, epoch: int, new_id: Callable[[], int], public_key: str = "") -> None:
        super().__init__(
            Info(config.name, "edge", epoch),
            link_limits(config),
            new_id,
            max_frame_bytes=config.limits.max_frame_bytes,
            bucket=output_bucket(config),
        )
        if config.head is None:
            raise ValueError(f"edge {config.name}: config.head is missing; an edge needs the head that it belongs to")
        self.config, self.epoch, self.public_key = config, epoch, public_key
        self.position = self.head_epoch = 0
        self.holdings = Holdings(config.name, config.limits, compiled=config.hardware.may_compile)
        self.ports: dict[Link, Port] = {}
        self.cursor = Cursor()
        self.queues = Queues(self, self.cursor, self.ports)
        self.roster = Roster(self, self.holdings, self.ports, self.cursor, self.queues)
        self.giving = Giving(self, self.roster)
        self.receiving = Receiving(self, self.roster)
        self.replayer = Replayer(self, self.cursor, self.holdings, self.queues)
        # What the hot path needs, within reach.
        self.index, self.holders, self._several = self.holdings.index, self.holdings.holders, self.holdings.several
        self.records = self.roster.records
        self.server: Server[tuple[int, Any, bytes, bool]] = Server(config.hardware)
        self.meter = Meter()
        self.reporter = Reporter(self, config, epoch, self.meter)
        policy = settings.policy_of(config.policy)
        self.watch = Watch(self, config, policy) if policy is not None else None
        self._note: Note | None = None
        self.leaving_since: float | None = None
        self.mediator = 0
        self._position_epoch = 0
        self._lag_until = 0.0
        self._next_progress = 0.0
        attaching = Attaching(self, self.roster, self.receiving)
        self._of_clients: dict[type[Any], Callable[[Link, Any], None]] = {
            r.Resume: attaching.on_resume,
            r.Subs: attaching.on_subs,
            r.Detach: attaching.on_detach,
            r.Pause: attaching.on_pause,
            r.Continue: attaching.on_continue,
            r.Attach: self.receiving.on_attach,
            r.Go: self.receiving.on_go,
            r.Counted: self.receiving.counting.on_counted,
        }
        self._of_head: dict[type[Any], Callable[[Any], None]] = {
            r.Gap: self._on_gap,
            r.Progress: self._on_progress,
            r.Welcome: self._on_welcome,
            r.CoverAck: self._on_cover_ack,
            r.ResumedDown: self._on_resumed,
            r.Release: self._on_release,
            r.Replay: self.replayer.on_replay,
            r.Fetched: self.replayer.on_fetched,
            r.Prepare: self.receiving.on_prepare,
            r.Install: self.receiving.on_install,
            r.Installed: self.receiving.on_installed,
            r.Orphan: self.receiving.on_orphan,
            r.Move: self.giving.on_move,
            r.Cut: self.giving.on_cut,
            r.Abort: self._on_abort,
            r.Part: self._on_part,
            r.Mediator: self._on_mediator,
            r.DueList: self.receiving.counting.on_due,
        }
        self.head = self.dial(config.head.name, config.head.data, config.head.public_key)
        self.dial_control(config.head.name, config.head.control, config.head.public_key)

    @property
    def name(self) -> str:
        return self.config.name

    # -- links

    def admits(self, info: Info) -> str:
        if info.role != "client":
            return f"{self.config.name} is an edge; a {info.role} belongs to a head"
        return "" if self.leaving_since is None else f"{self.config.name} is leaving; ask the head for another edge"

    def on_open(self, link: Link) -> None:
        if link is not self.head:
            link.owner = self.ports[link] = Port(link)
            return
        before, self.head_epoch = self.head_epoch, link.incarnation
        gone = [a for a in self.records.values() if a.state is not State.LIVE or before == self.head_epoch]
        self.roster.evict(gone, "head", "the head has started anew; resume from your token")
        self.giving.restart()
        self.receiving.restart()
        self.head.buffer.clear()
        self._report()

    def _report(self) -> None:
        """handover.md, Restart of a head: before anything else, the whole cover and who is served here."""
        self.cursor.reset()
        owned = [r.ReportItem(a.subscriber, a.epoch, a.since) for a in self.records.values()]
        here = (self.config.advertised, self.public_key)
        while len(owned) > REPORT_ITEMS:
            self.say(self.head, r.Report(*here, r.Cover(1, [], []), owned[:REPORT_ITEMS], True))
            owned = owned[REPORT_ITEMS:]
        *first, last = self.holdings.whole()
        for part in first:
            self.say(self.head, part)
        self.roster.promises.renumber(last.seq)
        self.say(self.head, r.Report(*here, last, owned, mediator=self.mediator))
        if self.is_leaving:
            self.say(self.head, r.Leaving())

    def on_lost(self, link: Link) -> None:
        if link is self.head:
            return
        port = self.ports.pop(link)
        self.queues.forget(port)
        for attachment in list(port.attachments.values()):
            self.roster.close(attachment)

    def on_granted(self, link: Link) -> None:
        """Whoever may not subscribe any more is shut out for good; its record stays, like that of any who is away."""
        if isinstance(port := link.owner, Port) and not link.grant.subscribes:
            for attachment in list(port.attachments.values()):
                self.counters["roles_refused"] += 1
                self.roster.shut(attachment, NOT_GRANTED, link.grant.why_not_subscribe)

    def holds(self, link: Link) -> bool:
        """What clients ask for travels to the head; while it does not answer, no more is taken."""
        return super().holds(link) or len(self.head.buffer) > HELD_ABOVE_RECORDS

    def on_room(self, link: Link) -> None:
        if isinstance(port := link.owner, Port) and (port.queued or link.buffer):
            self.queues.refill(port)
            self.dirty[link] = None

    def up(self, record: Any) -> None:
        """Say something to the head, behind what has gathered for it."""
        for told in self.receiving.gathered():
            self.say(self.head, told)
        self.say(self.head, record)

    @property
    def is_leaving(self) -> bool:
        return self.leaving_since is not None

    # -- frames of records

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        if link is self.head:
            self._on_stream(frame)
            return
        for raw in frame.records:
            try:
                record: Any = r.decode(r.from_client, raw)
                if (handler := self._of_clients.get(type(record))) is None:
                    raise WireError("misplaced", f"{type(record).__name__} is for a head")
                handler(link, record)
            except WireError as error:
                self.counters[f"records_refused_{error.code}"] += 1
        self.took(link)

    def _on_stream(self, frame: wire.Data) -> None:
        decode, last = r.to_edge.decode, len(frame.records) - 1
        transparent, mark = self.server.transparent, self.meter.deliveries
        # Credit is held back only when the inbox is full: what waits upstream would not be seen as load.
        is_held = self.server.waiting_bytes > self.config.limits.inbox_bytes
        for i, raw in enumerate(frame.records):
            piece = bytes(raw)
            try:
                record = decode(piece)
            except (ValueError, RecursionError) as error:
                self.counters["streams_unreadable"] += 1
                self.reopen(self.head, f"a record of the stream cannot be read: {error}")
                return
            is_pub = type(record) is r.PubOpen
            self.meter.arrivals += is_pub
            if not transparent:
                item = (self.head.id, record, piece, is_held and i == last)
                self.server.submit(item, len(piece), self.now, is_publication=is_pub)
            elif is_pub:
                self._on_pub(record, piece)
            else:
                self._of_head[type(record)](record)
            if self.meter.deliveries - mark > ROUND_DELIVERIES:
                mark = self.meter.deliveries
                self.flush()
        if not is_held or last < 0:
            self.took(self.head)

    def _serve(self) -> None:
        while (done := self.server.finished(self.now, len(self.index))) is not None:
            link_id, record, piece, ends_frame = done.item
            self.meter.serve(done)
            if link_id != self.head.id:
                continue
            if type(record) is r.PubOpen:
                self._on_pub(record, piece)
            else:
                self._of_head[type(record)](record)
            if ends_frame:
                self.took(self.head)

    # -- the stream

    def _on_pub(self, pub: r.PubOpen, piece: bytes) -> None:
        """Hot path: one publication to all that it matches; records are joined per link at the end of the round."""
        self.position = pub.position
        holders, dirty = self.holders, self.dirty
        ids: list[int] = self.index.match(pub.body.attributes)
        if self._several:
            ids = list(self._once(ids, pub.position))
        for attachment in map(holders.__getitem__, ids):
            out = attachment.out
            if not out:
                dirty[attachment.link] = None
            out.append(attachment.handle + piece)
        self.meter.deliveries += len(ids)
        if self._note is not None:
            self._note(pub.publisher, pub.body.attributes, len(piece), self.now)

    def _once(self, ids: Iterable[int], position: int) -> Iterable[int]:
        """An attachment with several subscriptions gets a publication once."""
        holders = self.holders
        for i in ids:
            attachment = holders[i]
            if attachment.last_position != position:
                attachment.last_position = position
                yield i

    def _on_gap(self, gap: r.Gap) -> None:
        self.position = max(self.position, gap.high)
        if gap.reason == "log" and gap.head == self.config.head_name:
            self._lag_until = self.now + 2 * self.config.limits.report_seconds * self.config.time_factor
        self.counters["gaps_in"] += 1
        piece = wire.encode(gap)
        for attachment in self.records.values():
            if attachment.state in (State.LIVE, State.HOLD):
                attachment.out.append(attachment.handle + piece)
                self.dirty[attachment.link] = None

    def _on_progress(self, progress: r.Progress) -> None:
        self.position = max(self.position, progress.position)

    def _on_welcome(self, welcome: r.Welcome) -> None:
        """handover.md, Restart of a head: LIVE subscribers get a gap from their token to here, across epochs."""
        gap = r.Gap(
            self.config.head_name,
            self._position_epoch,
            self.position + 1,
            self.head_epoch,
            welcome.position,
            [],
            "restart",
        )
        self.position, self._position_epoch = welcome.position, self.head_epoch
        for port in self.ports.values():
            port.told = 0  # the new epoch counts from 1 again
        for attachment in self.records.values():
            attachment.last_position = 0
            if attachment.state is State.LIVE:
                attachment.out.append(attachment.epoch_handle + wire.encode(gap))
                if not attachment.queue:
                    attachment.front_epoch = self.head_epoch
                self.dirty[attachment.link] = None

    def _on_cover_ack(self, ack: r.CoverAck) -> None:
        for link, suback in self.roster.promises.acknowledged(ack.seq, ack.unreached):
            self.say(link, suback)

    def _on_resumed(self, resumed: r.ResumedDown) -> None:
        self.position = max(self.position, resumed.position)
        attachment = self.records.get(resumed.subscriber)
        if attachment is None or attachment.epoch != resumed.epoch:
            return
        attachment.since, attachment.position = resumed.since, resumed.start
        attachment.front_epoch = self.head_epoch
        if attachment.state is not State.RESUMING:
            return
        self.say(
            attachment.link,
            r.Resumed(
                attachment.id, self.config.head_name, self.head_epoch, resumed.start, resumed.gap, resumed.lapsed
            ),
        )
        self.receiving.resumed(attachment)
        if resumed.start >= resumed.position:
            self.queues.live(attachment)
        else:
            self.cursor.join(attachment)

    def _on_release(self, release: r.Release) -> None:
        attachment = self.records.get(release.subscriber)
        if attachment is not None and attachment.epoch < release.epoch:
            self.roster.evict([attachment], "released", "another edge serves this subscriber now")

    # -- hand-over: what concerns both sides of it

    def _on_abort(self, abort: r.Abort) -> None:
        self.giving.on_abort(abort)
        self.receiving.on_abort(abort)

    def _on_part(self, part: r.Part) -> None:
        self.giving.on_part(part)
        self.receiving.on_part(part)

    def _on_mediator(self, mediator: r.Mediator) -> None:
        self.mediator = max(self.mediator, mediator.epoch)

    def hold_full(self, attachment: Attachment) -> None:
        self.receiving.hold_full(attachment)

    def ended(self, attachment: Attachment) -> None:
        self.giving.end([attachment])

    # -- links that do not take what there is, and subscribers that do not

    def on_stuck(self, link: Link) -> None:
        if isinstance(port := link.owner, Port):
            link.is_stuck = True
            self.queues.stuck(port)

    def on_moving(self, link: Link) -> None:
        if isinstance(port := link.owner, Port):
            port.sent()
            if port.stuck_since is not None:
                self.meter.output_wait_seconds += self.now - port.stuck_since
            port.stuck_since = self.now if link.buffer else None
            link.is_stuck = bool(link.buffer)

    def disconnect(self, attachment: Attachment) -> None:
        """The policy `disconnect`: the subscriber is gone for good."""
        self.counters["subscribers_disconnected"] += 1
        self.roster.shut(attachment, "slow", "the subscriber did not keep up; its policy is to be disconnected")
        self.up(r.Forget(attachment.subscriber, attachment.epoch))
        self.roster.drop([attachment])

    # -- time

    def on_tick(self) -> None:
        self._serve()
        self.queues.tick()
        for told in self.receiving.gathered():
            self.say(self.head, told)
        if (fetch := self.cursor.begin() if self.head.open else None) is not None:
            self.say(self.head, fetch)
        if self.now >= self._next_progress:
            self._next_progress = self.now + self.config.limits.progress_seconds * self.config.time_factor
            self._tell_progress()
            self._expire()
            self.receiving.expire()
            self.receiving.counting.ask()
        if self.reporter.due(self.now):
            self._report_load()
        if self.watch is not None:
            self._note = self._note or self.watch.begin()
            self.watch.tick()

    def _tell_progress(self) -> None:
        for port in self.ports.values():
            if port.attachments and port.told < self.position and port.stuck_since is None:
                port.told = self.position
                self.say(port.link, r.Progress(self.position, port.lagging()))

    def _expire(self) -> None:
        """handover.md, Time: a closed record's lease ends as EXPIRE, a compare and swap at the head."""
        lease = self.config.limits.lease_seconds * self.config.time_factor
        for attachment in self.records.values():
            if attachment.state is State.CLOSED and not attachment.expiring and self.now - attachment.closed_at > lease:
                attachment.expiring = True
                self.up(r.Expire(attachment.subscriber, attachment.epoch))

    def wake_at(self) -> float:
        watch_at = self.watch.wake_at() if self.watch is not None else NEVER
        return min(self._next_progress, self.server.wake_at(), self.reporter.next_report, watch_at)

    # -- control

    def on_control(self, peer: Peer, record: Any) -> None:
        record = self.reporter.on_control(peer, record, self.now)
        if isinstance(record, r.Leave):
            self.leave(self.now)
        elif peer != self.config.head_name:
            return
        elif isinstance(record, r.Revoke):
            self.giving.on_revoke(record)
        elif self.watch is not None:
            self.watch.on_control(record)

    def to_head(self, record: Any) -> None:
        """Say something on the control socket."""
        self.say_control(self.config.head_name, record)

    def _report_load(self) -> None:
        queued = [a for port in self.ports.values() for a in port.queued]
        extra = {
            "subscribers": sum(a.state in SERVED for a in self.records.values()),
            "subscriptions": len(self.index),
            "cover_subscriptions": len(self.holdings.cover),
            "input_queue_messages": len(self.server.queue),
            "output_queue_messages": sum(len(a.queue) for a in queued)
            + sum(len(p.link.buffer) for p in self.ports.values()),
            "output_queue_bytes": sum(a.queue_bytes for a in queued),
            "capacity": self._capacity(),
            "counters": {**self.meter.total, **self.counters},
        }
        state: r.BrokerState = "OK"
        if self.watch is not None:
            extra |= self.watch.measured(self.meter)
            state = self.watch.state
        report = self.reporter.make(self.now, "N/A" if self.lagging else state, extra)
        if self.watch is not None:
            self.watch.sensing.reported(report)
        self.say_control(self.config.head_name, r.Identify(self.config.name, "edge", self.epoch), r.Load(report))

    @property
    def lagging(self) -> bool:
        """Whether the head's log has run away from this edge lately."""
        return self.now < self._lag_until

    def _capacity(self) -> float:
        """Relative size, for placing newcomers before there is load to go by."""
        bandwidth = self.config.hardware.output_bytes_per_second
        return 1.0 if bandwidth is None else bandwidth / 100_000

    def served(self, frames: int, seconds: float) -> None:
        if self.server.transparent and frames:
            self.meter.service_seconds += seconds
            self.meter.served = self.meter.arrivals

    # -- leaving

    def leave(self, now: float) -> None:
        """Send every subscriber elsewhere; each goes on from its token, so nothing is lost."""
        self.now = now
        if self.is_leaving:
            return
        self.leaving_since = now
        self.say(self.head, r.Leaving())
        self.receiving.leave()
        told: defaultdict[Link, list[int]] = defaultdict(list)
        for attachment in list(self.records.values()):
            if attachment.state in SERVED and attachment.end is None:
                told[attachment.link].append(attachment.id)
                self.roster.close(attachment)
        for link, numbers in told.items():
            self.say(link, r.Moved(numbers, "", "", ""))

    def done(self) -> bool:
        """Whether everybody has arrived elsewhere, or the time for it is over."""
        if self.leaving_since is None:
            return False
        waited = self.now - self.leaving_since
        return not self.records or waited > LEAVING_SECONDS * self.config.time_factor or not self.head.was_open

    def status(self) -> dict[str, Any]:
        states = [a.state.value for a in self.records.values()]
        return {
            **super().status(),
            "cluster": self.config.cluster,
            "epoch": self.epoch,
            "ready": self.head.open,
            "head_epoch": self.head_epoch,
            "position": self.position,
            "subscriptions": len(self.index),
            "cover": len(self.holdings.cover),
            "slots": len(self.receiving.slots),
            "mediator": self.mediator,
            "subscribers": {state.value: states.count(state.value) for state in State},
            "leaving": self.is_leaving,
            "plain": self.config.security.plain,
        }
