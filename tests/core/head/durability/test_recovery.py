"""Every way in which a system may write back what was not synced, and then again after a recovery.

Each write is lost, torn in the middle or safe, whatever became of the others. What is recovered must be the longest
beginning of the log that is whole, with all that was synced; nothing behind a hole may ever come back.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from tests.core.head.durability.conftest import EMPTY, MemoryFiles, own

from plimsoll.core.head.durability import records, recovery, segments
from plimsoll.core.head.durability.damage_note import DamageNote
from plimsoll.core.head.durability.log_state import LogState
from plimsoll.core.head.durability.records import (
    SEARCHES,
    EpochBegan,
    Logged,
    SafeBefore,
    Scan,
    SegmentSealed,
    batches_behind,
    encode_batch,
    scan,
)
from plimsoll.core.head.durability.recovery import LogRecovery, Recovery
from plimsoll.core.head.durability.store import LogStore, UnreadableLogError

SEGMENT_BYTES = 700
"""Some five batches."""


@dataclass
class UnsafeFiles(MemoryFiles):
    """`unsafe`: writes and truncations since the last sync; `safe`: the files as they were then."""

    safe: dict[str, bytes] = field(default_factory=dict)
    unsafe: list[tuple[str, int, bytes | None]] = field(default_factory=list)

    def create(self, name: str, size: int) -> None:
        super().create(name, size)
        self.safe[name] = bytes(size)

    def write(self, name: str, start: int, data: bytes) -> None:
        super().write(name, start, data)
        self.unsafe.append((name, start, data))

    def truncate(self, name: str, size: int) -> None:
        super().truncate(name, size)
        self.unsafe.append((name, size, None))

    def settle(self, name: str) -> None:
        self.safe[name] = bytes(self.files[name])
        self.unsafe = [each for each in self.unsafe if each[0] != name]

    def erase(self, name: str, start: int, size: int) -> None:
        super().erase(name, start, size)
        self.settle(name)

    def remove(self, name: str) -> None:
        super().remove(name)
        del self.safe[name]
        self.unsafe = [each for each in self.unsafe if each[0] != name]

    def sync(self) -> None:
        for name in self.files:
            self.settle(name)

    def crashes(self) -> Iterator[UnsafeFiles]:
        """The files after every possible crash: each unsafe write lost, torn or kept."""
        for fates in itertools.product((0, 1, 2), repeat=len(self.unsafe)):
            found = {name: bytearray(data) for name, data in self.safe.items()}
            for fate, (name, start, data) in zip(fates, self.unsafe, strict=True):
                if data is None:
                    del found[name][start if fate else len(found[name]) :]
                else:
                    part = data[: len(data) * fate // 2]
                    found[name].extend(bytes(max(start + len(part) - len(found[name]), 0)))
                    found[name][start : start + len(part)] = part
            yield UnsafeFiles(found, safe={name: bytes(data) for name, data in found.items()})


@dataclass
class Writer:
    """Writes batches of one entry each, and knows what it has written. `synced`: the last position that is safe."""

    files: UnsafeFiles
    life: int
    written: list[Logged] = field(default_factory=list)
    synced: int = 0

    def __post_init__(self) -> None:
        self.store = LogStore(self.files, "h", 1 << 20, SEGMENT_BYTES)
        self.store.segment_bytes = SEGMENT_BYTES
        self.found = self.store.recover()

    def write(self, *, syncs: bool) -> None:
        if self.store.is_full:
            self.store.settle()
            self.synced = len(self.written)
            self.store.begin(EMPTY)
        position = self.store.position + 1
        self.written.append(own(position, 1000 * self.life + position))
        self.store.write([self.written[-1]])
        if syncs:
            self.files.sync()
            self.synced = position
            self.store.safe(self.store.place)
            self.store.promise()


def entries(store: LogStore) -> list[Logged]:
    found: list[Logged] = []
    while batch := store.records(len(found) + 1, 1 << 20):
        found += [logged for _, logged in batch]
    return found


def check(before: Writer, after: Writer) -> None:
    """The laws of a recovery."""
    found = entries(after.store)
    assert after.found.damage == (), "nothing was damaged"
    assert after.found.is_whole
    assert found == before.written[: len(found)], "what was written, in its order"
    assert len(found) >= before.synced, "what was synced is there"
    assert after.store.position == len(found)


def recovered(before: Writer) -> Iterator[Writer]:
    for files in before.files.crashes():
        after = Writer(files, before.life + 1)
        check(before, after)
        after.written, after.synced = before.written[: after.store.position], after.store.position
        yield after


def explore(batches: int, syncs: tuple[int, ...], again: int) -> int:
    """Write, crash in every way, recover, write again, crash in every way; returns the number of recoveries."""
    first = Writer(UnsafeFiles(), 1)
    for number in range(1, batches + 1):
        first.write(syncs=number in syncs)
    count = 0
    for second in recovered(first):
        count += 1
        for _ in range(again):
            second.write(syncs=False)
        count += sum(1 for _ in recovered(second))
    return count


WORLDS = {
    "within-a-segment": (4, (1,), 3),
    "nothing-synced": (4, (), 2),
    "over-the-end-of-a-segment": (7, (4,), 1),
    "behind-a-seal": (6, (6,), 3),
}


@pytest.mark.parametrize(("batches", "syncs", "again"), WORLDS.values(), ids=WORLDS)
def test_what_is_recovered_is_a_whole_beginning_with_all_that_was_synced(
    batches: int, syncs: tuple[int, ...], again: int
):
    assert explore(batches, syncs, again) > 100


def some_world_fails() -> bool:
    for world in WORLDS.values():
        try:
            explore(*world)
        except (AssertionError, UnreadableLogError):
            return True
    return False


def test_each_rule_is_needed(monkeypatch: pytest.MonkeyPatch):
    """Each rule is switched off once, and a law breaks."""

    def past_holes(data: bytes, first: int) -> Scan:
        found = scan(data, first)
        behind = [batch for batch in batches_behind(data, found.end) if batch.start >= found.end]
        return Scan([*found.batches, *behind], behind[-1].end if behind else found.end, found.torn)

    off = {
        "what lies behind a hole is erased": (UnsafeFiles, "erase", lambda *_: None),
        "reading ends at the first hole": (recovery, "scan", past_holes),
        "a hole that was not synced is no damage": (recovery, "_was_safe", lambda *_: True),
        "a segment is settled before there is a newer one": (LogStore, "settle", lambda _: None),
        "a segment that had only begun is no end of the log": (LogRecovery, "_drop_empty_end", lambda *_: None),
    }
    assert not some_world_fails()
    for rule, (place, name, instead) in off.items():
        with monkeypatch.context() as patch:
            patch.setattr(place, name, instead)
            assert some_world_fails(), rule


def damaged(at: int) -> tuple[Recovery, int]:
    """Six batches, each synced before the next; a byte of one is changed."""
    writer = Writer(UnsafeFiles(), 1)
    while len(writer.store.segments) < 2 or writer.store.segments[-1].end < 500:
        writer.write(syncs=True)
    last = writer.store.segments[-1]
    files = next(writer.files.crashes())
    files.files[last.name][at] ^= 1
    after = Writer(files, 2)
    assert entries(after.store) == writer.written[: after.store.position]
    return after.found, after.store.position


def test_damage_of_what_had_been_safe_is_told_from_a_hole(monkeypatch: pytest.MonkeyPatch):
    found, position = damaged(150)
    assert (found.is_whole, len(found.damage)) == (False, 1)
    assert found.state.position == position
    monkeypatch.setattr(recovery, "_was_safe", lambda *_: False)
    assert not damaged(150)[0].is_whole, "the promise says it, too"
    monkeypatch.setattr(recovery, "read_promise", lambda _: None)
    assert damaged(150)[0].is_whole, "without the rule it is taken for a hole"


MIB = 1 << 20
UNKNOWN = b"\x91\x91\x63"
"""Records of no kind that a head knows."""


def torn_behind(payload: bytes) -> Recovery:
    """What is found of a log whose last batch has a publication with this payload, and is torn behind it."""
    files = MemoryFiles()
    store = LogStore(files, "h", 8 * MIB, MIB)
    store.begin(EMPTY)
    store.write([own(1, 1)])
    segment = store.segments[0]
    good = segment.end
    store.write([Logged(payload + b"torn")])
    files.erase(segment.name, segment.end - 6, 6)
    found = LogRecovery(files, "h").run()
    assert (found.bytes, found.state.position) == (good, 1)
    return found


@pytest.mark.parametrize(
    "lookalike",
    [
        encode_batch(2, [SafeBefore(1 << 62)]),
        encode_batch(2, [SegmentSealed(1, 0, [], [], b"\xff" * 8)]),
        records._HEADER.pack(records._MAGIC, len(UNKNOWN), records._checksum(2, 0, UNKNOWN), 2, 0) + UNKNOWN,
    ],
    ids=["says-that-all-was-safe", "says-that-it-is-a-seal", "is-of-another-version"],
)
def test_a_publication_that_looks_like_a_batch_makes_no_damage_of_a_torn_end(lookalike: bytes):
    found = torn_behind(lookalike)
    assert (found.damage, found.is_whole) == ((), True)


def test_the_search_behind_a_torn_end_ends_whatever_publications_hold(monkeypatch: pytest.MonkeyPatch):
    read: list[int] = []
    checksum = records._checksum

    def counted(first: int, entries: int, payload: bytes) -> int:
        read.append(len(payload))
        return checksum(first, entries, payload)

    monkeypatch.setattr(records, "_checksum", counted)
    found = torn_behind((records._MAGIC + (MIB // 2).to_bytes(4, "big")) * 1_000)
    assert sum(read) < 2 * SEARCHES * MIB
    assert not found.is_whole, "it cannot be told whether the place had been safe"
    assert not torn_behind(records._MAGIC * (MIB // 4)).is_whole, "nor with beginnings that have no good length"


def test_a_log_is_read_as_far_as_its_last_segment(monkeypatch: pytest.MonkeyPatch):
    writer = Writer(UnsafeFiles(), 1)
    while len(writer.store.segments) < 6:
        writer.write(syncs=True)
    read: dict[str, int] = {}
    plain = MemoryFiles.read

    def counted(files: MemoryFiles, name: str, start: int, size: int) -> bytes:
        found = plain(files, name, start, size)
        read[name] = read.get(name, 0) + len(found)
        return found

    monkeypatch.setattr(MemoryFiles, "read", counted)
    found = LogRecovery(writer.files, "h").run()
    assert found.segments == 6
    seals = [read[segment.name] / segment.end for segment in writer.store.segments[1:-1]]
    assert max(seals) < 0.5, "of small segments the seal is a large part"
    assert found.unchecked_bytes == sum(segment.end for segment in writer.store.segments[:-1])


def test_the_state_is_that_of_the_last_segment():
    writer = Writer(UnsafeFiles(), 1)
    while len(writer.store.segments) < 3:
        writer.write(syncs=True)
    state = LogRecovery(writer.files, "h").run().state
    assert isinstance(state, LogState)
    assert state.position == len(writer.written)


def stopped(lives: int = 1) -> Writer:
    """A log of some segments, all of it safe, whose process has ended."""
    writer = Writer(UnsafeFiles(), lives)
    while len(writer.store.segments) < 3 or writer.store.segments[-1].end < 300:
        writer.write(syncs=True)
    writer.files.sync()
    return writer


def cut(files: UnsafeFiles, name: str) -> None:
    files.truncate(name, 150)


def zeroed(files: UnsafeFiles, name: str) -> None:
    files.files[name][150:] = bytes(len(files.files[name]) - 150)


def emptied(files: UnsafeFiles, name: str) -> None:
    files.truncate(name, 0)


def gone(files: UnsafeFiles, name: str) -> None:
    files.remove(name)


@pytest.mark.parametrize("harm", [cut, zeroed, emptied, gone])
def test_a_log_that_ends_before_what_was_promised_says_so(
    harm: Callable[[UnsafeFiles, str], None], monkeypatch: pytest.MonkeyPatch
):
    for is_known in (True, False):
        writer = stopped()
        last = writer.store.segments[-1].name
        harm(writer.files, last)
        if not is_known:
            monkeypatch.setattr(recovery, "read_promise", lambda _: None)
        after = Writer(writer.files, 2)
        found = entries(after.store)
        assert found == writer.written[: len(found)]
        assert len(found) < len(writer.written)
        assert (after.found.is_whole, len(after.found.damage)) == ((False, 1) if is_known else (True, 0))


def test_a_log_with_all_that_was_promised_has_no_damage():
    writer = stopped()
    after = Writer(writer.files, 2)
    assert (after.found.is_whole, after.found.damage) == (True, ())
    assert entries(after.store) == writer.written


def test_what_is_lost_is_said_once():
    writer = stopped()
    writer.files.remove(writer.store.segments[-1].name)
    after = Writer(writer.files, 2)
    assert not after.found.is_whole
    after.written = entries(after.store)
    for _ in range(2):
        after.write(syncs=True)
    after.store.write([EpochBegan(2, after.store.position + 1, 2)])
    assert Writer(after.files, 3).found.is_whole


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_loss_is_one_until_a_life_has_begun_that_tells_it(*, has_begun: bool):
    """What an earlier start has erased, and not logged a gap for, nothing but the note knows."""
    writer = stopped()
    last = writer.store.segments[-1].name
    writer.files.remove(segments.PROMISE)
    writer.files.files[last][150:160] = bytes(10)  # a later batch says that this was safe
    dead = Writer(writer.files, 2)
    assert (dead.found.is_whole, len(dead.found.damage)) == (False, 1)
    if has_begun:
        dead.store.write([EpochBegan(2, dead.store.position + 1, 2)])
    again = Writer(writer.files, 3)
    assert (again.found.is_whole, again.found.damage, again.store.damage.found.parts) == (has_begun, (), 1)


def test_damage_is_noted_before_a_file_is_changed(monkeypatch: pytest.MonkeyPatch):
    """A start that ends at the first change has noted it; the next one finds it again, and counts it once."""
    writer = stopped()
    first, middle = (each.name for each in writer.store.segments[-3:-1])
    writer.files.remove(middle)

    def ends(_: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(writer.files, "set_aside", ends)
        with pytest.raises(KeyboardInterrupt):
            Writer(writer.files, 2)
    assert first in writer.files.files
    assert DamageNote(writer.files).read().parts == 1
    assert Writer(writer.files, 3).store.damage.found.parts == 1


def test_a_promise_that_is_torn_promises_nothing():
    writer = stopped()
    assert segments.read_promise(writer.files) is not None
    writer.files.files[segments.PROMISE][3] ^= 1
    assert segments.read_promise(writer.files) is None
    writer.files.truncate(segments.PROMISE, 5)
    assert segments.read_promise(writer.files) is None
    assert Writer(writer.files, 2).found.is_whole


def test_segments_before_a_missing_one_are_set_aside():
    writer = stopped()
    first, middle, last = (each.name for each in writer.store.segments[-3:])
    writer.files.remove(middle)
    after = Writer(writer.files, 2)
    assert first in writer.files.aside
    assert [each.name for each in after.store.segments] == [last]
