"""What clients send, in turns: no link's work delays the others by more than its turn.

Rules:
- A round does a bounded amount of work for clients. What does not fit waits, by link and in order, and goes on in the
  next round, a turn for each link that waits.
- A link whose work goes on and on gets half of the time: after a burst (`BURST_SECONDS`) it waits as long as each turn
  has taken, by its units. A publication would otherwise find its broker at such work more often than not.
- A frame's credit is returned once all of it is done, so a link has at most its window waiting. What waits in all is
  bounded by `inbox_bytes`: above it the link with the most is ended.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Protocol

from msgspec import Raw

from plimsoll.core.config import BrokerConfig
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.transport.handshakes import Handshakes
from plimsoll.core.transport.link import NEVER, Link
from plimsoll.core.transport.refused_records import LinkRefusals, RefusedRecord, refused_record

ROUND_UNITS = 8_000
"""Work for clients in one round, two milliseconds of it; a unit is some quarter of a microsecond."""
TURN_UNITS = 2_000
RECORD_UNITS = 20
"""Of a record that changes no list."""
UNIT_SECONDS = 0.25e-6
BURST_SECONDS = 0.1
"""Work of one link, and as long a pause for it, that may be done without pauses: some 1,000 usual subscriptions."""
BYTES_A_UNIT = 4
"""Of a record, at least: a list of numbers is read, and looked up one by one. A publication's bytes are not read."""

Handler = Callable[[Link, msg.FromClient], Iterator[int]]
"""Deals with one message of a client, in parts; yields the units of work of each beside `RECORD_UNITS`."""


class IntakeContext(Protocol):
    """What taking in requests needs of its edge."""

    now: float
    config: BrokerConfig
    counters: Counter[str]
    handshakes: Handshakes

    def took(self, link: Link, /) -> None: ...
    def say(self, link: Link, record: RefusedRecord, /) -> None: ...


class LinkIntake:
    """The frames of one link that are not done yet, and the work on the first of them.

    Those behind the first are bytes: small records would take twenty times as much as objects.
    """

    __slots__ = ("frames", "waiting_bytes", "work")

    def __init__(self) -> None:
        self.frames: deque[tuple[Sequence[Raw] | bytes, int]] = deque()
        self.waiting_bytes = 0
        self.work: Generator[int, None, None] | None = None


class ClientIntake:
    """Hands the records of clients' frames to `handle`. `record_units`: of each, at least.

    `is_paced`: whether a link's work has pauses. Publications have none: credit bounds them.
    """

    def __init__(
        self, host: IntakeContext, handle: Handler, record_units: int = RECORD_UNITS, *, is_paced: bool = True
    ) -> None:
        self.host, self.handle, self.record_units, self.is_paced = host, handle, record_units, is_paced
        self.waiting: dict[Link, LinkIntake] = {}
        self.waiting_bytes = 0
        self._left = ROUND_UNITS
        self._paid_at: dict[Link, float] = {}  # when work and pauses of a link would have ended, without its burst
        self._refusals: dict[Link, LinkRefusals] = {}

    def on_frame(self, link: Link, frame: wire.Data, size: int) -> None:
        """Take a frame; deal with it now if nothing of its link waits, and the round has time left."""
        intake = self.waiting.get(link)
        if intake is None:
            intake = LinkIntake()
            intake.frames.append((frame.records, size))
            intake.waiting_bytes = size
            if self._left > 0 and self._may_go_on(link) and self._turn(link, intake):
                return
            if intake.work is None:
                intake.frames[0] = wire.pack_records(frame.records), size
            self.waiting[link] = intake
            self.waiting_bytes += intake.waiting_bytes
        else:
            intake.frames.append((wire.pack_records(frame.records), size))
            intake.waiting_bytes += size
            self.waiting_bytes += size
        if self.waiting_bytes > self.host.config.limits.inbox_bytes:
            self._end_largest()

    def tick(self) -> None:
        """Begin a round: a turn for each link that waits, as long as the round has time left."""
        self._left = ROUND_UNITS
        for link in list(self.waiting):
            if self._left <= 0:
                break
            if not self._may_go_on(link):
                continue
            intake = self.waiting.pop(link)
            self.waiting_bytes -= intake.waiting_bytes
            if not self._turn(link, intake):
                self.waiting[link] = intake  # behind the others
                self.waiting_bytes += intake.waiting_bytes

    def wake_at(self) -> float:
        """When there is something to do for a link that waits."""
        if not self.waiting:
            return NEVER
        return min(max(self._paid_at.get(link, 0.0) - BURST_SECONDS, self.host.now) for link in self.waiting)

    def drop(self, link: Link) -> None:
        """The link is over: forget what waits."""
        self._refusals.pop(link, None)
        self._paid_at.pop(link, None)
        intake = self.waiting.pop(link, None)
        if intake is not None:
            self.waiting_bytes -= intake.waiting_bytes
            if intake.work is not None:
                intake.work.close()  # it undoes what it has begun

    def _may_go_on(self, link: Link) -> bool:
        return self._paid_at.get(link, 0.0) - BURST_SECONDS <= self.host.now

    def _turn(self, link: Link, intake: LinkIntake) -> bool:
        """Work on a link's frames for one turn. Whether all of them are done."""
        before = self._left
        is_done = self._work(link, intake)
        if self.is_paced:
            seconds = 2 * UNIT_SECONDS * (before - self._left)
            self._paid_at[link] = max(self._paid_at.get(link, 0.0), self.host.now) + seconds
        return is_done

    def _work(self, link: Link, intake: LinkIntake) -> bool:
        units = 0
        while intake.frames:
            records, size = intake.frames[0]
            work = intake.work = intake.work or self._records(link, records)
            for spent in work:
                units += spent
                self._left -= spent
                if units >= TURN_UNITS or self._left <= 0:
                    return False
            intake.work = None
            intake.frames.popleft()
            intake.waiting_bytes -= size
            self.host.took(link)
        return True

    def _records(self, link: Link, records: Sequence[Raw] | bytes) -> Generator[int, None, None]:
        for raw in wire.unpack_records(records) if isinstance(records, bytes) else records:
            units = 0
            try:
                message = msg.decode(msg.from_client, raw)
                if type(message) is not msg.Publish:
                    units = len(memoryview(raw)) // BYTES_A_UNIT
                for spent in self.handle(link, message):
                    units -= spent
                    yield spent
            except WireError as error:
                self.refuse(link, raw, error)
            yield self.record_units + max(units, 0)

    def refuse(self, link: Link, raw: bytes | Raw, error: WireError) -> None:
        """Count a record that cannot be taken, and say why, unless this link has been told of many of late."""
        self.host.counters[f"records_refused_{error.code}"] += 1
        refusals = self._refusals.get(link)
        if refusals is None:
            refusals = self._refusals[link] = LinkRefusals(self.host.now)
        if refusals.may_answer(self.host.now):
            self.host.say(link, refused_record(raw, error))
        else:
            self.host.counters["records_refused_unanswered"] += 1

    def _end_largest(self) -> None:
        link = max(self.waiting, key=lambda each: self.waiting[each].waiting_bytes)
        self.host.counters["links_ended_for_backlog"] += 1
        self.drop(link)
        self.host.handshakes.close(link, "more of your requests wait here than there is room for; connect again later")
