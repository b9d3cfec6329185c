"""What the files of a log hold when a head starts: the last segment record by record, older ones by their seals.

Nothing behind the first place of the last segment that is not good is used, whatever lies there: pages are written back
in any order. What lies there is erased, so that no later batch can lead to it. What is found is compared with what had
been promised; what is given up for damage is set aside, and noted before (`damage_note.py`).
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from plimsoll.core.head.durability.damage_note import DamageNote, FoundDamage
from plimsoll.core.head.durability.log_state import LogState
from plimsoll.core.head.durability.records import (
    BatchPlace,
    Checkpoint,
    DamagedBatchError,
    LookalikesError,
    SafeBefore,
    Scan,
    SegmentSealed,
    batches_behind,
    decode_batch,
    scan,
)
from plimsoll.core.head.durability.segments import (
    SUFFIX,
    LogFiles,
    SafePlace,
    Segment,
    first_batch,
    first_of,
    place_of_seal,
    read_promise,
    read_seal,
)


class Recovery(NamedTuple):
    """What was found. `torn_bytes`: cut off behind the last good batch; `damage`: segments given up, and why.

    `is_whole`: nothing that was written and synced is missing at the end of the log. `unchecked_bytes`: of segments
    that were found by their seals.
    """

    state: LogState
    segments: int
    bytes: int
    torn_bytes: int
    damage: tuple[str, ...]
    is_whole: bool
    unchecked_bytes: int = 0


def compared(found: Recovery, epoch: int, position: int) -> Recovery:
    """The same, or with a loss: what is kept elsewhere says that the log was safe up to this position of an epoch.

    That tells a log that an older copy has taken the place of, or that of another head. An epoch that began later has
    compared before.
    """
    last = found.state.epochs[-1].epoch if found.state.epochs else 0
    if not found.is_whole:
        return found
    if other := _another_head(found.state, epoch):
        why = f"the log is that of {other}; {found.state.name} had its own"
    elif (last, found.state.position) < (epoch, position):
        why = f"the log ends at position {found.state.position}; it had been safe"
    else:
        return found
    damage = f"{why} up to position {position} of epoch {epoch} by what the status of its cluster says; "
    return found._replace(is_whole=False, damage=(*found.damage, f"{damage}what is missing is given up"))


def _another_head(state: LogState, epoch: int) -> str:
    """Which other head has written a log in which this head's epoch is missing; empty if none has that is known.

    The publications that were accepted in the newest epoch that has any say it.
    """
    if not epoch or any(began.epoch == epoch for began in state.epochs):
        return ""
    for began in reversed(state.epochs):
        names = {name for name, at in state.offsets if at == began.epoch}
        if names:
            return "" if state.name in names else min(names)
    return ""


class LogRecovery:
    """Finds the segments of the log of head `name`. `position`: of its last entry. `note`: of what is damaged."""

    def __init__(self, files: LogFiles, name: str, note: DamageNote | None = None) -> None:
        self.files, self.name = files, name
        self.note = DamageNote(files) if note is None else note
        self.segments: list[Segment] = []
        self.position = self._highest = 0
        self._damage: list[str] = []
        self._torn = 0
        self._is_whole = True
        self._promised = SafePlace(0, 0, 0)

    def run(self) -> Recovery:
        """Find what the files hold; a torn end is erased, and what lies before damage is given up.

        Raises:
            OSError: the files cannot be read, or the end not be erased.
            DamagedBatchError: a batch is of another version, or not of a head.

        """
        names = sorted(name for name in self.files.names() if name.endswith(SUFFIX))
        for name in names:
            first_of(name)  # a file that is no segment is not touched
        self._promised = read_promise(self.files) or self._promised
        noted = self.note.read()
        self._drop_empty_end(names)
        self._find_older(names[:-1])
        state = LogState(self.name)
        last = names[-1] if names else ""
        while last and not self._find_last(last, state):
            last = self._take_back()
        self._check_oldest()
        self._check_promise()
        self._is_whole &= noted.is_whole or _has_begun(state, noted)
        if not self.segments:
            self._is_whole &= not self._damage  # the end of the log itself was damaged
            state.position = self._highest
        self.position = state.position
        unchecked = sum(segment.end for segment in self.segments if not segment.is_checked)
        size = sum(segment.end for segment in self.segments)
        damage = tuple(self._damage)
        return Recovery(state, len(self.segments), size, self._torn, damage, self._is_whole, unchecked)

    def _drop_empty_end(self, names: list[str]) -> None:
        """Remove segments that were begun just before the end, and of which nothing was safe yet.

        They are no end of the log: what was not synced may have been torn in the segment before them.
        """
        while names:
            data = self.files.read(names[-1], 0, 1 << 62)
            found = scan(data, first_of(names[-1]))
            if found.batches or _was_safe(data, 0) or self._was_promised(first_of(names[-1]), 0):
                break
            self._torn += found.torn
            self.files.remove(names.pop())

    # -- segments that have a successor

    def _find_older(self, names: list[str]) -> None:
        for name in names:
            found = read_seal(self.files, name)
            segment, beyond = found if found is not None else self._scan_older(name)
            self._join(segment)
            self.position = self._highest = beyond - 1

    def _scan_older(self, name: str) -> tuple[Segment, int]:
        """A segment without a good seal: it is read as far as it is good, and the next one says whether that is all."""
        data = self.files.read(name, 0, 1 << 62)
        segment = Segment(name, first_of(name))
        found = scan(data, segment.first)
        _take(segment, data, found)
        return segment, _beyond(segment, found)

    def _join(self, segment: Segment) -> None:
        """Add a segment; if positions before it are missing, all that lies before it is given up.

        An end that is torn is no damage if the next segment goes on with the next position: then it was the seal.
        """
        if self.segments and segment.first != self.position + 1:
            before = self.segments[-1]
            self._give_up(
                f"{before.name}: byte {before.end} is damaged; positions {self.position + 1} to {segment.first - 1} "
                "are missing, and the log up to there is given up, and set aside"
            )
            for each in self.segments:
                self.files.set_aside(each.name)
            self.segments.clear()
        self.segments.append(segment)

    # -- the last one

    def _find_last(self, name: str, state: LogState) -> bool:
        """Take the last segment record by record; False if nothing of it can be used, and it was removed."""
        data = self.files.read(name, 0, 1 << 62)
        segment = Segment(name, first_of(name))
        found = scan(data, segment.first)
        self._torn += found.torn
        if not found.batches:
            self._give_up(f"{name}: byte 0 is damaged; the segment is given up, and set aside", is_whole=False)
            self.files.set_aside(name)
            return False
        if found.torn:
            if _was_safe(data, found.end) or self._was_promised(segment.first, found.end):
                self._give_up(
                    f"{name}: byte {found.end} is damaged; what lies behind it is given up, and set aside",
                    is_whole=False,
                )
                self.files.keep_aside(name, data[found.end : found.end + found.torn])
            self.files.erase(name, found.end, found.torn)
        if _is_sealed(data, found.batches[-1]):
            found = Scan(found.batches[:-1], found.batches[-1].start, 0)
            self.files.erase(name, found.end, len(data) - found.end)
        _take(segment, data, found)
        self._join(segment)
        state.position = segment.first - 1
        for batch in found.batches:
            state.apply(decode_batch(data, batch))
        return True

    def _take_back(self) -> str:
        """The segment that is the last one now; empty if there is none."""
        if not self.segments:
            return ""
        before = self.segments.pop()
        self.position = before.first - 1
        return before.name

    def _check_oldest(self) -> None:
        """The oldest segment has to say what came before it."""
        while len(self.segments) > 1:
            found = first_batch(self.files, self.segments[0].name)
            if found is not None and isinstance(found[1][0], Checkpoint):
                return
            gone = self.segments.pop(0)
            self._give_up(f"{gone.name}: byte 0 is damaged; the segment is given up, and set aside")
            self.files.set_aside(gone.name)

    def _was_promised(self, first: int, end: int) -> bool:
        """Whether more had been safe than the log up to this byte of the segment with this first position."""
        return (self._promised.segment, self._promised.end) > (first, end)

    def _check_promise(self) -> None:
        """A log that ends before the place up to which it was safe, without a trace of damage, has lost its end."""
        last = self.segments[-1] if self.segments else Segment("the log", 0)
        if self._is_whole and self._was_promised(last.first, last.end):
            promised = self._promised
            self._give_up(
                f"{last.name}: the log ends at byte {last.end}; it had been safe up to byte "
                f"{promised.end} of the segment of position {promised.segment} when its last position was "
                f"{promised.position}; what is missing is given up",
                is_whole=False,
            )

    def _give_up(self, why: str, *, is_whole: bool = True) -> None:
        """Note damage, before the log is changed for it. Not `is_whole`: the end of the log is missing."""
        self.note.add(why, 0, is_whole=is_whole)
        self._damage.append(why)
        self._is_whole &= is_whole


def _has_begun(state: LogState, noted: FoundDamage) -> bool:
    """Whether the log has the beginning of a life that has found this damage, and with it the gap."""
    return 0 < noted.epoch <= max((began.epoch for began in state.epochs), default=0)


def _take(segment: Segment, data: bytes, found: Scan) -> None:
    for batch in found.batches:
        segment.note(batch.first, batch.start)
    segment.end = found.end
    segment.checksum = zlib.crc32(memoryview(data)[: found.end])


def _beyond(segment: Segment, found: Scan) -> int:
    last = found.batches[-1] if found.batches else None
    return last.first + last.entries if last is not None else segment.first


def _is_sealed(data: bytes, last: BatchPlace) -> bool:
    return not last.entries and isinstance(decode_batch(data, last)[-1], SegmentSealed)


def _was_safe(data: bytes, place: int) -> bool:
    """Whether a batch behind this place says that the place had been safe on the disk: what lies before a seal was."""
    try:
        return any(_safe_end(data, batch) > place for batch in batches_behind(data, place))
    except LookalikesError:
        return True  # rather a gap that is not needed than a loss without one


def _safe_end(data: bytes, batch: BatchPlace) -> int:
    """Up to where the segment was safe, as this batch says.

    It may be a part of a publication that looks like a batch. One that cannot have been written there does not count.
    """
    try:
        records = decode_batch(data, batch)
    except DamagedBatchError:
        return 0
    ends = [record.end for record in records if isinstance(record, SafeBefore)]
    ends += [place_of_seal(record) for record in records if isinstance(record, SegmentSealed)]
    return max((end for end in ends if end <= batch.start), default=0)
