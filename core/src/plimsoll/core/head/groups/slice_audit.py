"""The audit of slices that have moved: what two members have counted across a move, against what the log has for it.

The giver has counted up to the place at which it let go, the taker from there on. Both counts are those of members, and
neither is what a hand-over is decided by. What was due is read from the log, from the giver's place when it was told to
let go, to a place of the taker behind all that was in the log when it took over; after `COUNT_SECONDS`, to where the
taker has got by then. A slice that has moved because a member died, that has no place in the log of this life of the
head, or whose member does not count is not audited.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from plimsoll.core.head.groups.consumer_group import ConsumerGroup
from plimsoll.core.head.groups.slices import CountedPlace, GroupSlice
from plimsoll.core.head.handover.log_pass import AuditCase, LogPasses
from plimsoll.core.head.handover.outcomes import REMEMBERED_SESSIONS
from plimsoll.core.head.log import Log
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import slice_name, slice_subscription

COUNT_SECONDS: Final = 5.0
"""How long a taker has for what was in the log when it took over, before less than that is audited."""

WAITING_AT_MOST: Final = 4096
FAULTS_AT_MOST: Final = 2**32 - 1
"""Of one slice that has moved."""


class SliceAuditHost(Protocol):
    """What the audit needs of a head."""

    now: float
    name: str
    epoch: int
    log: Log


@dataclass(slots=True)
class MovedSlice:
    """A slice from its giver's place `began`, over `released`, to a place of its taker; at `until` at the latest."""

    session: str
    group: str
    slice: GroupSlice
    began: CountedPlace
    released: CountedPlace
    taken_under: int
    behind: int
    until: float

    def end(self, now: float) -> tuple[CountedPlace | None, bool]:
        """The taker's place to audit up to, if it is there; and whether there is any use in waiting."""
        each = self.slice
        if each.epoch != self.taken_under or not each.holder:
            last = each.released
            return (last if last is not None and last.epoch == self.taken_under else None), False
        place = each.place
        if place.counted is None or place.token is None:
            return None, now < self.until
        has_passed = place.token[2] >= self.behind
        return (place, False) if has_passed or now >= self.until else (None, True)


@dataclass(slots=True)
class SliceCase(AuditCase):
    """What was due of a slice across its move, beside what both members have counted."""

    items: int = 0
    duplicated: int = 0
    reordered: int = 0

    def faults(self) -> tuple[int, int, int]:
        """Items lost, duplicated and reordered. Members count as they like: no more of each than a report can hold."""
        due = sum(count for _, count in self.due.values())
        found = (due - self.items, self.duplicated + max(0, self.items - due), self.reordered)
        lost, duplicated, reordered = (min(max(0, each), FAULTS_AT_MOST) for each in found)
        return lost, duplicated, reordered


class SliceAudit:
    """`changed` is called with a session when more of its slices have been counted."""

    def __init__(
        self,
        host: SliceAuditHost,
        group_of: Callable[[str], ConsumerGroup | None],
        changed: Callable[[str], None],
    ) -> None:
        self.host, self.group_of, self.changed = host, group_of, changed
        self._moved: list[MovedSlice] = []
        self._counted: list[SliceCase] = []
        self._passes: LogPasses[SliceCase] = LogPasses(host)
        self._sums: OrderedDict[str, msg.AuditItem] = OrderedDict()

    def moved(self, session: str, group: str, each: GroupSlice, began: CountedPlace) -> None:
        """A slice is with its taker: audit it once that has got far enough."""
        released, log = each.released, self.host.log
        if released is None or released.epoch != began.epoch or released.counted is None or not self._is_here(began):
            return
        if len(self._moved) + len(self._counted) < WAITING_AT_MOST:
            until = self.host.now + COUNT_SECONDS
            self._moved.append(MovedSlice(session, group, each, began, released, each.epoch, log.last, until))

    def _is_here(self, place: CountedPlace) -> bool:
        log, token = self.host.log, place.token
        is_ours = token is not None and token[:2] == (self.host.name, self.host.epoch)
        return is_ours and token is not None and log.first - 1 <= token[2] <= log.last

    def tick(self) -> None:
        """Take moves whose taker has got far enough, and read a piece of the log for those that were taken before."""
        if self._moved:
            self._moved = [each for each in self._moved if not self._take(each)]
        if self._counted and not self._passes:
            counted, self._counted = self._counted, []
            self._passes.read(counted, self._sum_up)
        self._passes.tick()

    def _take(self, moved: MovedSlice) -> bool:
        """Whether this move needs no more waiting."""
        end, waits = moved.end(self.host.now)
        if waits:
            return False
        group = self.group_of(moved.group)
        given, began = moved.released.counted, moved.began
        if end is None or end.counted is None or given is None or group is None or not self._is_here(end):
            return True
        before = began.counted or msg.SliceCount(0)
        low, high = began.token, end.token
        if low is None or high is None:
            return True
        number = moved.slice.number
        self._counted.append(
            SliceCase(
                moved.session, slice_name(moved.group, number), (moved.taken_under, 0), self.host.name, "",
                low[2], high[2], {(head, epoch): offset for head, epoch, offset in began.marks},
                [slice_subscription(moved.group, group.definition.filter, number)],
                items=given.items - before.items + end.counted.items,
                duplicated=given.duplicated - before.duplicated + end.counted.duplicated,
                reordered=given.reordered - before.reordered + end.counted.reordered,
            )
        )  # fmt: skip
        return True

    def _sum_up(self, known: list[SliceCase]) -> None:
        for each in known:
            lost, duplicated, reordered = each.faults()
            sums = self._sums.setdefault(each.session, msg.AuditItem(0, 0, 0, 0, 0))
            self._sums[each.session] = msg.AuditItem(
                sums.members + 1, sums.lost + lost, sums.duplicated + duplicated, sums.reordered + reordered, 0
            )
        while len(self._sums) > REMEMBERED_SESSIONS:
            self._sums.popitem(last=False)
        for session in dict.fromkeys(each.session for each in known):
            self.changed(session)

    def of(self, session: str) -> msg.AuditItem | None:
        """The sums of a move; None as long as no slice of it has been counted."""
        return self._sums.get(session)

    def wake_at(self) -> float:
        """When to go on: to read, or to take less than all."""
        if self._counted and not self._passes:
            return self.host.now
        return min([self._passes.wake_at(), *(each.until for each in self._moved)])
