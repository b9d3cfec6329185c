"""What a round has to write, and the epochs that a head goes on from."""

from __future__ import annotations

import msgspec
from tests.core.head.durability.conftest import EMPTY, MemoryFiles, own, pub

from plimsoll.core.head.durability.durable_log import DurableLog
from plimsoll.core.head.durability.journal import LogJournal, RecoveredLog, durable_log, exceptions_of
from plimsoll.core.head.durability.log_state import LogState
from plimsoll.core.head.durability.records import DiskRecord, EpochBegan, GroupNamed, Logged, NumberRefused
from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.protocol import messages as msg


def recovered(files: MemoryFiles, *epochs: EpochBegan, entries: int = 0, is_whole: bool = True) -> RecoveredLog:
    store = LogStore(files, "h", 1 << 20)
    store.recover()
    store.begin(EMPTY)
    records: list[DiskRecord] = [*epochs, *(own(at, at) for at in range(1, entries + 1))]
    if records:
        store.write(records)
    state = LogState("h")
    state.apply(records)
    return RecoveredLog(store, 1, {}, state, is_whole, True, "boot")


def test_the_first_epoch_is_its_own_memory(files: MemoryFiles):
    journal = LogJournal(recovered(files), "h", 7, has_neighbors=True)
    assert (journal.memory, journal.is_unsure, journal.earlier) == (7, False, 0)
    assert journal.is_binding
    assert journal.take() == [EpochBegan(7, 1, 7, "boot", True, True)]
    assert journal.take() == []
    assert [journal.is_binding] == [False]


def test_a_whole_log_goes_on_with_its_memory_and_another_does_not(files: MemoryFiles):
    journal = LogJournal(recovered(files, EpochBegan(5, 1, 4), entries=10), "h", 7, has_neighbors=False)
    assert (journal.memory, journal.is_unsure, journal.earlier) == (4, False, 5)
    assert journal.goes_on_from(5, 10, 15) == 10
    assert journal.goes_on_from(5, 11, 15) is None, "more than the log has of that epoch"
    assert journal.goes_on_from(7, 15, 15) == 15
    assert journal.goes_on_from(6, 1, 15) is None
    unsure = LogJournal(recovered(MemoryFiles(), EpochBegan(5, 1, 4), is_whole=False), "h", 7, has_neighbors=False)
    assert (unsure.memory, unsure.is_unsure) == (7, True)


def test_a_log_has_all_without_neighbours_and_groups_unless_something_may_be_missing(files: MemoryFiles):
    began, known = EpochBegan(5, 1, 5), msgspec.structs.replace(EMPTY, group_names=[])

    def has_all(*records: DiskRecord, neighbors: bool = False, is_whole: bool = True) -> bool:
        found = recovered(MemoryFiles(), is_whole=is_whole)
        found.state.apply(records)
        return LogJournal(found, "h", 7, has_neighbors=neighbors).has_all

    assert has_all(known, began)
    assert not has_all(known), "it is the first start"
    assert not has_all(began), "a log of a version that did not note groups"
    assert not has_all(known, began, is_whole=False)
    assert not has_all(known, began, neighbors=True)
    assert not has_all(known, EpochBegan(5, 1, 5, has_neighbors=True))
    assert not has_all(known, began, GroupNamed("g"))
    assert has_all(known, began, GroupNamed("g"), GroupNamed("g", is_served=False))


def test_records_are_those_of_the_disk_and_those_of_this_round(files: MemoryFiles):
    journal = LogJournal(recovered(files, EpochBegan(5, 1, 5), entries=3), "h", 7, has_neighbors=False)
    journal.take()
    journal.logged(pub(4, 4), "g", (2, 9))
    before = journal.is_binding
    journal.gap(b"gap", "g", (2, 10))
    assert [before, journal.is_binding] == [False, True], "a gap may not be told and then be forgotten"
    assert list(journal.records_after(2)) == [
        (3, own(3, 3)), (4, Logged(pub(4, 4), "g", 2, 9)), (5, Logged(b"gap", "g", 2, 10)),
    ]  # fmt: skip


def test_exceptions_are_refusals_and_what_waited_for_edges():
    kept = [NumberRefused("p", 1, 3, "oversized", "large"), NumberRefused("p", 1, 4, "", "")]
    assert list(exceptions_of(kept, ["e1", "e2"])) == [
        msg.Refused(0, 3, "oversized", "large"), msg.Unconfirmed(0, 4, ["e1", "e2"]),
    ]  # fmt: skip


def test_a_log_begins_with_what_the_disk_has(files: MemoryFiles):
    log = durable_log(recovered(files, EpochBegan(5, 1, 5), entries=3), 10_000)
    assert isinstance(log, DurableLog)
    assert (log.first, log.last, log.memory_first) == (1, 3, 4)
