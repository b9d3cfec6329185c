"""The head's side of a standby: the segments of its log are sent, and what leaves the head waits for them.

A standby that has caught up is *in sync*: from then on nothing leaves the head before the standby has it, so the
standby may be promoted at any moment. Only a mediator ends that, once its store says that this standby is not to be
promoted. So a head that was replaced without noticing can tell no peer anything that its successor does not have; no
clock takes part in this. As long as a standby in sync is silent, nothing leaves the head at all, heartbeats included:
edges and neighbours then look for its successor.

The link is a node of its own beside the head's machine: what it sends never waits for what it makes others wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, assert_never

from plimsoll.core.head.durability.segments import Segment
from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.head.standby.leadership import SILENT_HEARTBEATS
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info, WireError
from plimsoll.core.transport.link import Link, LinkLimits, Peer
from plimsoll.core.transport.overlay_node import OverlayNode

PART_BYTES: Final = 32 * 1024
QUEUED_BYTES: Final = 4 * PART_BYTES
"""Parts are read ahead of what the link takes up to this size; the rest stays in the segments."""

_HELLO: Final = bytes([wire.HELLO])


class LogPlace(NamedTuple):
    """The end of a log: the first position of its last segment, and how many bytes that has. Places are ordered."""

    segment: int
    end: int


START: Final = LogPlace(0, 0)


class ReplacedHeadError(RuntimeError):
    """Another process is the head in a later term: what this one still has to say may not leave it."""


class LogFeed(OverlayNode):
    """`in_sync`: the incarnation of the standby that everything waits for; 0: none, and the head is alone.

    `syncs` numbers the times that a standby has come in sync: a mediator ends one of them, and no later one.
    `incarnation`: of the process, by which a mediator knows it. `term`: 0 as long as it has none, since the head has
    had no standby before; then none is admitted.
    """

    def __init__(
        self, name: str, epoch: int, term: int, limits: LinkLimits, new_id: Callable[[], int], max_frame_bytes: int,
        incarnation: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(Info(name, "head", epoch), limits, new_id, max_frame_bytes=max_frame_bytes)
        self.epoch, self.term, self.incarnation = epoch, term, incarnation
        self.store: LogStore | None = None
        self.in_sync = self.syncs = 0
        self.wants: Callable[[], bool] = lambda: True
        """Whether the configuration names a standby by now, as a process reads it that starts in the place of this one:
        otherwise that would lead beside a standby that it knows nothing of."""
        self.standby: Link | None = None
        self._mediators: set[Peer] = set()
        self._sent = self._stored = START
        self._follows = False
        self._trimmed = 0
        self._queued = 0

    # -- for the shell

    def claims(self, peer: Peer, frames: Sequence[bytes]) -> bool:
        """Whether these frames come from a standby of this head, which names itself as the head does."""
        if peer in self.links:
            return True
        if frames[0][2:3] != _HELLO:
            return False
        try:
            hello = wire.decode_frame(frames[0])
        except WireError:
            return False
        return isinstance(hello, wire.Hello) and (hello.info.role, hello.info.name) == ("head", self.info.name)

    def begin(self, store: LogStore) -> None:
        """Take the log that is to be sent."""
        self.store = store

    @property
    def end(self) -> LogPlace:
        """The end of what has been written."""
        return _end_of(self.store.segments[-1]) if self.store is not None and self.store.segments else START

    def is_safe(self, place: LogPlace) -> bool:
        """Whether what depends on the log up to this place may leave the head, as far as its standby is concerned."""
        return not self.in_sync or (place <= self._stored and not self.is_silent)

    @property
    def is_silent(self) -> bool:
        """Whether the standby in sync has not been heard for so long that it may have been promoted."""
        if not self.in_sync:
            return False
        link = self.standby
        if link is None or not link.open or link.incarnation != self.in_sync:
            return True
        return self.now - link.last_heard > SILENT_HEARTBEATS * self.link_limits.heartbeat_seconds

    def status(self) -> dict[str, Any]:
        """Scalars about the standby, for the status of the head."""
        behind = self._behind()
        return {
            "term": self.term,
            "standby_in_sync": self.in_sync,
            "standby_syncs": self.syncs,
            "standby_linked": 0 if self.standby is None else self.standby.incarnation,
            "standby_silent": self.is_silent,
            "standby_behind_bytes": behind,
        }

    def leadership(self) -> dict[str, bool | int | float | str]:
        """What a mediator has to know to decide between the two processes."""
        return {"role": "head", "incarnation": self.incarnation, **self.status()}

    def leave(self) -> None:
        """Tell the standby that nothing more comes."""
        if self.standby is not None:
            self.handshakes.close(self.standby, "the head has left")

    def _behind(self) -> int:
        if self.store is None or self.standby is None:
            return 0
        done = self._stored
        return sum(
            each.end - (done.end if each.first == done.segment else 0)
            for each in self.store.segments
            if each.first >= done.segment
        )

    # -- links

    def admits(self, info: Info) -> str:
        if not self.term:
            return f"{self.info.name} has no term yet"
        if not self.wants():
            return f"the configuration of {self.info.name} names no standby"
        if (info.role, info.name) != ("head", self.info.name):
            return f"{info.name} is no standby of {self.info.name}"
        return ""

    def on_open(self, link: Link) -> None:
        older, self.standby = self.standby, link
        self._follows, self._queued = False, 0
        link.on_sealed = self._on_sealed
        if older is not None and older is not link and self.knows(older):
            self.handshakes.close(older, "another standby has come")

    def on_lost(self, link: Link) -> None:
        if link is self.standby:
            self.standby, self._follows = None, False

    def on_room(self, link: Link) -> None:
        self._send()

    def _on_sealed(self, _records: int) -> None:
        self._queued = sum(map(len, self.standby.buffer)) if self.standby is not None else 0

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        for raw in frame.records:
            try:
                message = msg.decode(msg.from_standby, raw)
                if link is self.standby:
                    self._take(link, message)
            except WireError as error:
                self.counters[f"records_refused_{error.code}"] += 1
        link.deals(self.now)
        self.took(link)

    def _take(self, link: Link, message: msg.FromStandby) -> None:
        match message:
            case msg.FollowLog():
                self._on_follow(link, message)
            case msg.LogStored():
                place = LogPlace(message.segment, message.end)
                if self._follows and self._stored < place <= self._sent:
                    self._stored = place
            case _:
                assert_never(message)

    def _on_follow(self, link: Link, asked: msg.FollowLog) -> None:
        place = LogPlace(asked.segment, asked.end)
        is_same = (asked.term, asked.epoch) == (self.term, self.epoch)
        if is_same and self._segment_at(place) is not None:
            self._sent = self._stored = place
        else:
            self._start_over(link)
        self._follows = True
        self._send()

    def _start_over(self, link: Link) -> None:
        """Send the whole log: what the standby has is of another head's, or has been removed here."""
        self.say(link, msg.LogBegins(self.term, self.epoch))
        self._sent = self._stored = START

    def _segment_at(self, place: LogPlace) -> Segment | None:
        """The segment in which a standby goes on."""
        segments = self.store.segments if self.store is not None else []
        return next((each for each in segments if each.first == place.segment and place.end <= each.end), None)

    # -- what is sent

    def on_tick(self) -> None:
        self._send()

    def _send(self) -> None:
        """Send what has been written, as far as the link takes it, and say when that is all."""
        link, store = self.standby, self.store
        if link is None or not link.open or not self._follows or store is None or not store.segments:
            return
        while self._queued < QUEUED_BYTES and self._sent < self.end:
            if not self._send_part(link, store):
                self._start_over(link)
        if self._sent == self.end and self.in_sync == 0:
            self.in_sync, self.syncs = link.incarnation, self.syncs + 1
            self.say(link, msg.StandbyInSync(self.term, self.epoch, self.syncs))

    def _send_part(self, link: Link, store: LogStore) -> bool:
        """Send the next part; False if it is not kept any more."""
        at = self._sent
        i = next((i for i, each in enumerate(store.segments) if each.first == at.segment), -1)
        if at == START:
            i, at = 0, LogPlace(store.segments[0].first, 0)
        elif i < 0:
            return False
        elif at.end >= store.segments[i].end:
            i, at = i + 1, LogPlace(store.segments[i + 1].first, 0)
        if self._trimmed != store.segments[0].first:
            self._trimmed = store.segments[0].first
            self.say(link, msg.LogTrimmed(self._trimmed))
        segment = store.segments[i]
        data = store.files.read(segment.name, at.end, min(PART_BYTES, segment.end - at.end))
        self.say(link, msg.LogPart(segment.first, at.end, data))
        self._queued += len(data)
        self._sent = LogPlace(segment.first, at.end + len(data))
        return True

    # -- control

    def on_control(self, peer: Peer, record: msg.ControlRecord) -> None:
        """Take a record of a mediator.

        Raises:
            ReplacedHeadError: this process is to end at once.

        """
        if isinstance(record, msg.Identify) and record.role == "mediator":
            self._mediators.add(peer)
        elif peer not in self._mediators:
            return
        elif isinstance(record, msg.LeadershipQuery):
            self.say_control(peer, msg.LeadershipReply(record.id, self.leadership()))
        elif isinstance(record, msg.Lead) and not self.term and record.incarnation == self.incarnation:
            self.term = record.term
        elif isinstance(record, msg.GoOnAlone) and record.term == self.term:
            self.go_on_alone(record.sync)
        elif isinstance(record, msg.Replaced) and record.term > self.term:
            raise ReplacedHeadError(f"another process leads in term {record.term}; this one led in term {self.term}")

    def go_on_alone(self, sync: int) -> None:
        """The mediator's store says that the standby of this sync is not to be promoted: nothing waits for it."""
        if self.in_sync and sync == self.syncs:
            ended, self.in_sync = self.in_sync, 0
            if self.standby is not None and self.standby.incarnation == ended:
                self.handshakes.close(self.standby, "the head goes on alone")  # it may come again, and catch up


def _end_of(segment: Segment) -> LogPlace:
    return LogPlace(segment.first, segment.end)
