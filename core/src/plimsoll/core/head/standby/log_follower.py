"""The standby of a head: it follows the head's log into segments of its own, until a mediator has it lead.

It serves no client. Once it is in sync it has all that the head has told others, at any moment; so it never gives up
what it has for another head of the same term. A term is given out once, by the mediator's store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

from plimsoll.core.config import PeerBroker
from plimsoll.core.head.durability.segments import SUFFIX, first_of, name_of
from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.head.standby.leadership import SILENT_HEARTBEATS
from plimsoll.core.head.standby.log_feed import START, LogPlace
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info, WireError
from plimsoll.core.transport.link import Link, LinkLimits, Peer
from plimsoll.core.transport.overlay_node import OverlayNode


class StaleStandbyError(RuntimeError):
    """The head has begun another log, or misses what this standby has: it has to start over, as another incarnation."""


class LogFollower(OverlayNode):
    """`store`: where the segments go; it must be empty. `promoted`: the term in which it is to lead; 0: it follows.

    `sync`: which of the times in sync this is, so that it may be promoted; 0: none yet. `place`: the end of its log.
    """

    def __init__(
        self, head: PeerBroker, incarnation: int, store: LogStore, limits: LinkLimits, new_id: Callable[[], int],
        max_frame_bytes: int,
    ) -> None:  # fmt: skip
        super().__init__(Info(head.name, "head", incarnation), limits, new_id, max_frame_bytes=max_frame_bytes)
        self.store, self.files = store, store.files
        self.term = self.epoch = self.sync = self.promoted = 0
        self.place = self._told = START
        self._mediators: set[Peer] = set()
        self._left = False
        self.head = self.dial(head.name, head.data, head.public_key)

    # -- the stream

    def on_open(self, link: Link) -> None:
        self._told = START
        self.say(link, msg.FollowLog(self.term, self.epoch, *self.place))

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        for raw in frame.records:
            try:
                message = msg.decode(msg.to_standby, raw)
            except WireError as error:
                self.counters[f"records_refused_{error.code}"] += 1
                continue
            if not self.promoted:
                self._take(message)
        link.deals(self.now)
        self.took(link)

    def _take(self, message: msg.ToStandby) -> None:
        match message:
            case msg.LogBegins():
                self._begin(message)
            case msg.LogPart():
                self._store_part(message)
            case msg.LogTrimmed():
                self._trim(message.segment)
            case msg.StandbyInSync():
                if (message.term, message.epoch) == (self.term, self.epoch):
                    self.sync = message.sync
            case _:
                assert_never(message)

    def _begin(self, begins: msg.LogBegins) -> None:
        """Give up what is here for the log of another head.

        Raises:
            StaleStandbyError: it may be needed.

        """
        if begins.term < self.term or (begins.term == self.term and self.sync):
            raise StaleStandbyError(
                f"the head of term {begins.term} begins another log; this standby has that of term {self.term}"
            )
        for name in self.files.names():
            self.files.remove(name)
        self.term, self.epoch, self.sync = begins.term, begins.epoch, 0
        self.place = self._told = START

    def _store_part(self, part: msg.LogPart) -> None:
        name = name_of(part.segment)
        if part.segment > self.place.segment and part.start == 0:
            if self.place.segment:
                before = name_of(self.place.segment)
                self.files.settle(before)
                self.files.truncate(before, self.place.end)  # a seal is the end of its file
            room = self.store.segment_bytes
            self.files.create(name, room + room // 4 + len(part.data))
        elif (part.segment, part.start) != self.place:
            raise StaleStandbyError(f"bytes {part.start} of segment {part.segment} came behind {self.place}")
        self.files.write(name, part.start, part.data)
        self.place = LogPlace(part.segment, part.start + len(part.data))

    def _trim(self, first: int) -> None:
        for name in self.files.names():
            if name.endswith(SUFFIX) and first_of(name) < first:
                self.files.remove(name)

    def on_tick(self) -> None:
        if self.place != self._told and self.head.open and not self.promoted:
            self._told = self.place
            self.say(self.head, msg.LogStored(*self.place))

    # -- control

    def on_control(self, peer: Peer, record: msg.ControlRecord) -> None:
        """Take a record of a mediator.

        Raises:
            StaleStandbyError: this process has to start over.

        """
        if isinstance(record, msg.Identify) and record.role == "mediator":
            self._mediators.add(peer)
        elif isinstance(record, msg.StatusQuery):
            self.say_control(peer, msg.StatusReply(record.id, self.status()))
        elif peer not in self._mediators:
            return
        elif isinstance(record, msg.LeadershipQuery):
            self.say_control(peer, msg.LeadershipReply(record.id, self.leadership()))
        elif isinstance(record, msg.Promote):
            self._promote(record.term)
        elif isinstance(record, msg.Leave):
            self.leave(self.now)
        elif isinstance(record, msg.Replaced) and not self.promoted:
            raise StaleStandbyError(f"this standby does not follow the process that leads in term {record.term}")

    def _promote(self, term: int) -> None:
        """Be the head from here on. From now on the old one gets no word, so nothing leaves it any more."""
        if term > self.term and self.sync and not self.promoted:
            self.promoted = term
            self.hang_up(self.info.name, f"this standby is the head in term {term}")

    def leadership(self) -> dict[str, bool | int | float | str]:
        """What a mediator has to know to decide between the two processes."""
        return {
            "role": "standby",
            "incarnation": self.info.incarnation,
            "term": self.term,
            "sync": self.sync,
            "promoted": self.promoted,
            "linked": self.head.open,
            "head_silent": self.is_head_silent,
        }

    @property
    def is_head_silent(self) -> bool:
        """Whether the head has not been heard for three heartbeats."""
        silent = SILENT_HEARTBEATS * self.link_limits.heartbeat_seconds
        return not self.head.open or self.now - self.head.last_heard > silent

    # -- for the shell

    def regrant(self, now: float) -> None:
        """A standby admits no peers."""

    def leave(self, now: float) -> None:
        """Stop following; a mediator takes this standby off when it has gone."""
        self.now, self._left = now, True

    def done(self) -> bool:
        """Whether it has been promoted, or asked to end."""
        return self._left or self.promoted > 0

    def status(self) -> dict[str, Any]:
        """Scalars about the standby; no counters of a head."""
        return {
            "name": self.info.name,
            "role": "standby",
            "incarnation": self.info.incarnation,
            "term": self.term,
            "epoch": self.epoch,
            "sync": self.sync,
            "promoted": self.promoted,
            "head_silent": self.is_head_silent,
            "segment": self.place.segment,
            "segment_bytes": self.place.end,
            "process": dict(self.process),
        }
