"""An edge: serves subscribers from its head's stream, and never makes one of them wait for another.

Each record of the stream is dealt with in order. Subscribers that are not LIVE (resuming, catching up, blocked) are
passed over
by the stream and served from the head's log. What an edge announces upward is the covering set of all that it
answers for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import msgspec

from plimsoll.core import predicates, wire
from plimsoll.core import records as r
from plimsoll.core.attachment import REFUSALS, Attachment, Port, State, out_of_bounds
from plimsoll.core.catchup import Cursor
from plimsoll.core.config import BrokerConfig
from plimsoll.core.covering import CoveringSet, Delta
from plimsoll.core.link import Link, Peer
from plimsoll.core.load import Meter
from plimsoll.core.matching import Index
from plimsoll.core.node import HELD_ABOVE_RECORDS, Node, link_limits, output_bucket
from plimsoll.core.predicates import Subscription
from plimsoll.core.promises import Promises
from plimsoll.core.queues import Queues
from plimsoll.core.reports import Reporter
from plimsoll.core.routes import parts
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
        self.index: Index = Index()
        self.slots: dict[int, Attachment] = {}
        self.cover: CoveringSet[int] = CoveringSet()
        self.cover_seq = self.position = self.head_epoch = 0
        self.records: dict[str, Attachment] = {}
        self.ports: dict[Link, Port] = {}
        self.cursor = Cursor()
        self.queues = Queues(self, self.cursor, self.ports)
        self.server: Server[tuple[int, Any, bytes, bool]] = Server(config.hardware)
        self.meter = Meter()
        self.reporter = Reporter(self, config, epoch, self.meter)
        self.leaving_since: float | None = None
        self.promises = Promises()
        self._next_id = 0
        self._several: set[Attachment] = set()
        self._epoch_before = 0
        self._lag_until = 0.0
        self._next_progress = 0.0
        self.head = self.dial(config.head.name, config.head.data, config.head.public_key)
        self.dial_control(config.head.name, config.head.control, config.head.public_key)

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
        for attachment in list(self.records.values()):
            if attachment.state is not State.LIVE or before == self.head_epoch:
                self._shut(attachment, "head", "the head has started anew; resume from your token")
                self._drop(attachment)
        self.head.buffer.clear()
        self._report(before)

    def _report(self, before: int) -> None:
        """handover.md, Restart of a head: before anything else, the whole cover and who is served here."""
        self.cursor.reset()
        self.cover_seq = 1
        cover = r.Cover(1, [r.CoverItem(i, str(s)) for i, s in self.cover.items()], [])
        owned = [r.ReportItem(a.subscriber, a.epoch, a.since) for a in self.records.values()]
        here = (self.config.advertised, self.public_key)
        while len(owned) > REPORT_ITEMS:
            self.say(self.head, r.Report(*here, r.Cover(1, [], []), owned[:REPORT_ITEMS], True))
            owned = owned[REPORT_ITEMS:]
        self.promises.renumber(1)
        self.say(self.head, r.Report(*here, self._last_part(cover), owned))
        if self.leaving_since is not None:
            self.say(self.head, r.Leaving())
        self._epoch_before = before

    def on_lost(self, link: Link) -> None:
        if link is self.head:
            return
        port = self.ports.pop(link)
        self.queues.forget(port)
        for attachment in list(port.attachments.values()):
            self._close(attachment)

    def holds(self, link: Link) -> bool:
        """What clients ask for travels to the head; while it does not answer, no more is taken."""
        return super().holds(link) or len(self.head.buffer) > HELD_ABOVE_RECORDS

    def on_room(self, link: Link) -> None:
        if isinstance(port := link.owner, Port) and (port.queued or link.buffer):
            self.queues.refill(port)
            self.dirty[link] = None

    # -- frames of records

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        if link is self.head:
            self._on_stream(frame)
            return
        for raw in frame.records:
            try:
                record: Any = r.decode(r.from_client, raw)
                if (handler := self._HANDLERS.get(type(record))) is None:
                    raise WireError("misplaced", f"{type(record).__name__} is for a head")
                handler(self, link, record)
            except WireError as error:
                self.counters[f"records_refused_{error.code}"] += 1
        self.took(link)

    def _on_stream(self, frame: wire.Data) -> None:
        decode, last = r.to_edge.decode, len(frame.records) - 1
        transparent, mark = self.server.transparent, self.meter.deliveries
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
                cost = self.server.cost(len(self.index)) if is_pub else 0.0
                self.meter.service_seconds += cost
                self.meter.served += is_pub
                self.server.submit((self.head.id, record, piece, i == last), cost, len(piece), self.now)
            elif is_pub:
                self._on_pub(record, piece)
            else:
                self._STREAM[type(record)](self, record, piece)
            if self.meter.deliveries - mark > ROUND_DELIVERIES:
                mark = self.meter.deliveries
                self.flush()
        if transparent or last < 0:
            self.took(self.head)

    def _serve(self) -> None:
        while (item := self.server.finished(self.now)) is not None:
            waited, (link_id, record, piece, ends_frame) = item
            self.meter.input_wait_seconds += waited
            self.meter.input_waits += 1
            if link_id != self.head.id:
                continue
            self._STREAM[type(record)](self, record, piece)
            if ends_frame:
                self.took(self.head)

    # -- the stream

    def _on_pub(self, pub: r.PubOpen, piece: bytes) -> None:
        """Hot path: one publication to all that it matches; records are joined per link at the end of the round."""
        self.position = pub.position
        slots, dirty = self.slots, self.dirty
        ids: list[int] = self.index.match(pub.body.attributes)
        if self._several:
            ids = list(self._once(ids, pub.position))
        for attachment in map(slots.__getitem__, ids):
            out = attachment.out
            if not out:
                dirty[attachment.link] = None
            out.append(attachment.handle + piece)
        self.meter.deliveries += len(ids)

    def _once(self, ids: Iterable[int], position: int) -> Iterable[int]:
        """An attachment with several subscriptions gets a publication once."""
        slots = self.slots
        for i in ids:
            attachment = slots[i]
            if attachment.last_position != position:
                attachment.last_position = position
                yield i

    def _on_gap(self, gap: r.Gap, piece: bytes) -> None:
        self.position = max(self.position, gap.high)
        if gap.reason == "log" and gap.head == self.config.head_name:
            self._lag_until = self.now + 2 * self.config.limits.report_seconds * self.config.time_factor
        self.counters["gaps_in"] += 1
        for attachment in self.records.values():
            if attachment.state is State.LIVE:
                attachment.out.append(attachment.handle + piece)
                self.dirty[attachment.link] = None

    def _on_progress(self, progress: r.Progress, piece: bytes) -> None:
        self.position = max(self.position, progress.position)

    def _on_welcome(self, welcome: r.Welcome, piece: bytes) -> None:
        """handover.md, Restart of a head: LIVE subscribers get a gap from their token to here, across epochs."""
        gap = r.Gap(
            self.config.head_name,
            self._epoch_before,
            self.position + 1,
            self.head_epoch,
            welcome.position,
            [],
            "restart",
        )
        self.position = welcome.position
        for port in self.ports.values():
            port.told = 0  # the new epoch counts from 1 again
        for attachment in self.records.values():
            attachment.last_position = 0
            if attachment.state is State.LIVE:
                attachment.out.append(attachment.epoch_handle + wire.encode(gap))
                if not attachment.queue:
                    attachment.front_epoch = self.head_epoch
                self.dirty[attachment.link] = None

    def _on_cover_ack(self, ack: r.CoverAck, piece: bytes) -> None:
        for link, suback in self.promises.acknowledged(ack.seq, ack.unreached):
            self.say(link, suback)

    def _on_resumed(self, resumed: r.ResumedDown, piece: bytes) -> None:
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
        if resumed.start >= resumed.position:
            self.queues.live(attachment)
        else:
            self.cursor.join(attachment)

    def _on_release(self, release: r.Release, piece: bytes) -> None:
        attachment = self.records.get(release.subscriber)
        if attachment is not None and attachment.epoch < release.epoch:
            self._shut(attachment, "released", "another edge serves this subscriber now")
            self._drop(attachment)

    def _on_replay(self, replay: r.Replay, piece: bytes) -> None:
        if replay.cursor != self.cursor.id:
            return
        item, members = replay.item, self.cursor.members
        if isinstance(item, r.Gap):
            for member in list(members):
                gap = msgspec.structs.replace(item, low=max(item.low, member.position + 1))
                self._replay_to(member, item.high, wire.encode(gap))
            return
        record = wire.encode(item)
        for i in list(self.index.match(item.body.attributes)):
            attachment = self.slots[i]
            if attachment in members:
                self._replay_to(attachment, item.position, record)

    def _replay_to(self, attachment: Attachment, position: int, record: bytes) -> None:
        if position <= attachment.position:
            return
        attachment.position = position
        attachment.queue.append(attachment.handle + record)
        self.queues.put_aside(attachment)
        self.meter.deliveries += 1
        if attachment.count_queue() > attachment.queue_limit_bytes:
            self.queues.block(attachment)

    def _on_fetched(self, fetched: r.Fetched, piece: bytes) -> None:
        if fetched.cursor != self.cursor.id:
            return
        if fetched.done:
            self.position = max(self.position, fetched.to)
        for attachment in self.cursor.end(fetched):
            self.queues.live(attachment)

    # -- from clients

    def _on_resume(self, link: Link, resume: r.Resume) -> None:
        """handover.md, Resume: its list, its token and its epoch, in one step with the cover."""
        port, x = self.ports[link], resume.subscriber
        old = self.records.get(x)
        if code := self._refusal(resume, old):
            self.say(link, r.Shut(resume.attachment, code, REFUSALS[code]))
            return
        if (other := port.attachments.get(resume.attachment)) is not None:
            self._shut(other, "replaced", "its attachment number was used again")
        attachment = Attachment(x, resume.attachment, link, resume.epoch, resume.version, self.queues.void)
        attachment.apply(resume.policy, self.config.limits, self.config.time_factor)
        removes: list[int] = []
        if old is not None:
            self._shut(old, "replaced", "the subscriber has attached again")
            removes = [i for _, i in old.subscriptions.values()]
        self.records[x] = port.attachments[attachment.id] = attachment
        adds = self._install(attachment, resume.subscriptions, resume.version)
        cover = self._cover(self.cover.apply(adds, removes))
        self.promises.ask(cover.seq, attachment, resume.version)
        self.say(self.head, r.ResumeUp(x, resume.epoch, cover, resume.token, resume.session))

    def _refusal(self, resume: r.Resume, old: Attachment | None) -> str:
        if self.leaving_since is not None:
            return "leaving"
        if old is not None and old.epoch >= resume.epoch:
            return "epoch"
        full = old is None and len(self.records) >= self.config.limits.max_subscribers
        return "full" if full else out_of_bounds(resume)

    def _install(
        self, attachment: Attachment, items: list[r.SubscriptionItem], version: int
    ) -> list[tuple[int, Subscription]]:
        """Put subscriptions into the index; what cannot be is refused one by one."""
        adds = []
        for item in items:
            try:
                subscription = self._checked(attachment, item)
            except ValueError as error:
                self.counters["subscriptions_refused"] += 1
                self.say(attachment.link, r.SubRefused(attachment.id, version, item.id, str(error)))
                continue
            self._next_id += 1
            attachment.subscriptions[item.id] = (subscription, self._next_id)
            self.slots[self._next_id] = attachment
            self.index.add(self._next_id, subscription)
            adds.append((self._next_id, subscription))
        if len(attachment.subscriptions) > 1:
            self._several.add(attachment)
        return adds

    def _checked(self, attachment: Attachment, item: r.SubscriptionItem) -> Subscription:
        limits = self.config.limits
        if item.id in attachment.subscriptions:
            raise ValueError(f"subscription {item.id} is there already; remove it first")
        if len(attachment.subscriptions) >= limits.max_subscriptions_per_subscriber:
            raise ValueError(f"a subscriber has at most {limits.max_subscriptions_per_subscriber} subscriptions here")
        if len(self.index) >= limits.max_subscriptions:
            raise ValueError(f"edge {self.config.name} has its {limits.max_subscriptions} subscriptions")
        return predicates.parse(item.text)

    def _uninstall(self, ids: Iterable[int]) -> None:
        for i in ids:
            self.index.remove(i)
            del self.slots[i]

    def _cover(self, delta: Delta[int]) -> r.Cover:
        """The next numbered update; it is sent even when the covering set does not change."""
        self.cover_seq += 1
        adds = [r.CoverItem(i, str(subscription)) for i, subscription in delta.announce]
        return self._last_part(r.Cover(self.cover_seq, adds, list(delta.withdraw)))

    def _last_part(self, cover: r.Cover) -> r.Cover:
        """Say what is too much for one record, and return the rest."""
        *first, last = parts(cover)
        for part in first:
            self.say(self.head, part)
        return last

    def _on_subs(self, link: Link, subs: r.Subs) -> None:
        attachment = self._attached(link, subs.attachment)
        if attachment is None or subs.version <= attachment.version:
            return
        attachment.version = subs.version
        removed = [attachment.subscriptions.pop(i)[1] for i in subs.removes if i in attachment.subscriptions]
        self._uninstall(removed)
        adds = self._install(attachment, subs.adds, subs.version)
        cover = self._cover(self.cover.apply(adds, removed))
        self.promises.ask(cover.seq, attachment, subs.version)
        self.say(self.head, cover)

    def _on_detach(self, link: Link, detach: r.Detach) -> None:
        attachment = self._attached(link, detach.attachment)
        if attachment is None:
            return
        self._close(attachment)
        if detach.withdraw:
            self.say(self.head, r.Forget(attachment.subscriber, attachment.epoch))
            self._drop(attachment)

    def _on_pause(self, link: Link, pause: r.Pause) -> None:
        if (attachment := self._attached(link, pause.attachment)) is not None:
            attachment.paused = True
            self.queues.route(attachment)

    def _on_continue(self, link: Link, go: r.Continue) -> None:
        if (attachment := self._attached(link, go.attachment)) is not None:
            attachment.paused = False
            self.queues.refill(self.ports[link])
            self.queues.route(attachment)
            self.dirty[link] = None

    def _attached(self, link: Link, attachment_id: int) -> Attachment | None:
        port = self.ports.get(link)
        return port.attachments.get(attachment_id) if port else None

    # -- states of an attachment

    def _close(self, attachment: Attachment) -> None:
        """No longer attached; still in the cover until the head releases it, or its lease ends."""
        if attachment.state is State.CLOSED:
            return
        self.cursor.leave(attachment)
        attachment.state, attachment.closed_at, attachment.out = State.CLOSED, self.now, self.queues.void
        attachment.clear()
        self._several.discard(attachment)
        self.promises.forget(attachment)
        self._uninstall(i for _, i in attachment.subscriptions.values())
        if (port := self.ports.get(attachment.link)) is not None:
            port.queued.pop(attachment, None)
            if port.attachments.get(attachment.id) is attachment:
                del port.attachments[attachment.id]

    def _shut(self, attachment: Attachment, code: str, text: str) -> None:
        """Close an attachment from this side; the client sees it ahead of what was queued."""
        if attachment.state is not State.CLOSED:
            self._close(attachment)
            if attachment.link.open:
                self.say(attachment.link, r.Shut(attachment.id, code, text))

    def _drop(self, attachment: Attachment) -> None:
        """Forget a closed record and withdraw its cover."""
        if self.records.get(attachment.subscriber) is attachment:
            del self.records[attachment.subscriber]
            delta = self.cover.apply([], [i for _, i in attachment.subscriptions.values()])
            if delta:
                self.say(self.head, self._cover(delta))

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
        self._shut(attachment, "slow", "the subscriber did not keep up; its policy is to be disconnected")
        self.say(self.head, r.Forget(attachment.subscriber, attachment.epoch))
        self._drop(attachment)

    # -- time

    def on_tick(self) -> None:
        self._serve()
        self.queues.tick()
        if (fetch := self.cursor.begin() if self.head.open else None) is not None:
            self.say(self.head, fetch)
        if self.now >= self._next_progress:
            self._next_progress = self.now + self.config.limits.progress_seconds * self.config.time_factor
            self._tell_progress()
            self._expire()
        if self.reporter.due(self.now):
            self._report_load()

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
                self.say(self.head, r.Expire(attachment.subscriber, attachment.epoch))

    def wake_at(self) -> float:
        return min(self._next_progress, self.server.wake_at(), self.reporter.next_report)

    # -- control

    def on_control(self, peer: Peer, record: Any) -> None:
        if isinstance(self.reporter.on_control(peer, record, self.now), r.Leave):
            self.leave(self.now)

    def _report_load(self) -> None:
        queued = [a for port in self.ports.values() for a in port.queued]
        extra = {
            "subscribers": sum(a.state is not State.CLOSED for a in self.records.values()),
            "subscriptions": len(self.index),
            "input_queue_messages": len(self.server.queue),
            "output_queue_messages": sum(len(a.queue) for a in queued)
            + sum(len(p.link.buffer) for p in self.ports.values()),
            "output_queue_bytes": sum(a.queue_bytes for a in queued),
            "capacity": self._capacity(),
            "counters": {**self.meter.total, **self.counters},
        }
        report = self.reporter.make(self.now, "N/A" if self.lagging else "OK", extra)
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
        if self.leaving_since is not None:
            return
        self.leaving_since = now
        self.say(self.head, r.Leaving())
        for attachment in list(self.records.values()):
            if attachment.state is not State.CLOSED:
                link = attachment.link
                self._close(attachment)
                self.say(link, r.Moved(attachment.id, "", "", ""))

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
            "cover": len(self.cover),
            "subscribers": {state.value: states.count(state.value) for state in State},
            "leaving": self.leaving_since is not None,
            "plain": self.config.security.plain,
        }

    _HANDLERS: ClassVar[dict[type[Any], Callable[..., None]]] = {
        r.Resume: _on_resume,
        r.Subs: _on_subs,
        r.Detach: _on_detach,
        r.Pause: _on_pause,
        r.Continue: _on_continue,
    }
    _STREAM: ClassVar[dict[type[Any], Callable[..., None]]] = {
        r.PubOpen: _on_pub,
        r.Gap: _on_gap,
        r.Progress: _on_progress,
        r.Welcome: _on_welcome,
        r.CoverAck: _on_cover_ack,
        r.ResumedDown: _on_resumed,
        r.Release: _on_release,
        r.Replay: _on_replay,
        r.Fetched: _on_fetched,
    }
