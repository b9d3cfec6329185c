"""Batches and positions on a disk, with a crash before every step: each result is published once, in order."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.channels.scripted_fleet import ScriptedFleet
from tests.feeds.stores import CrashError as StoreCrashError
from tests.feeds.stores import ScriptedStore, place

from plimsoll.channels import ledger as ledger_module
from plimsoll.channels.batch import BatchCommit, Result, RowCounts, first_commit, next_commit
from plimsoll.channels.ledger import BATCHES, ChannelLedger, LedgerError
from plimsoll.channels.publisher import ResultPublisher
from plimsoll.feeds import commit_log
from plimsoll.feeds.object_path import DatasetPath

STEPS = (
    *((commit_log, name) for name in ("write_synced", "link", "unlink", "sync_folder")),
    *((ledger_module, name) for name in ("write_synced", "replace", "unlink", "sync_folder")),
)
BATCH_SIZES = (2, 0, 3, 1)
DUE = [(batch, row) for batch, size in enumerate(BATCH_SIZES, 1) for row in range(1, size + 1)]


class CrashError(BaseException):
    """The process is killed here."""


class Steps:
    """Counts the steps of a life, on the disk and towards the fleet, and crashes before one, half of it done."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count, self.crash_at = 0, 0
        for module, name in STEPS:
            patch.setattr(module, name, self._step(getattr(module, name)))

    def _step(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any) -> Any:
            if self.count + 1 == self.crash_at and real.__name__ == "write_synced":
                arguments[0].write_bytes(b"half of it")
            self.next()
            return real(*arguments)

        return step

    def next(self) -> None:
        self.count += 1
        if self.count == self.crash_at:
            raise CrashError

    def arm(self, crash_at: int) -> None:
        self.count, self.crash_at = 0, crash_at


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # a killed process loses nothing that it has written
    return Steps(monkeypatch)


Life = Callable[[DatasetPath, ScriptedFleet, list[ChannelLedger]], ResultPublisher]
"""In a folder and a fleet; what it opens is closed by the caller."""


def undisturbed_life(root: DatasetPath, fleet: ScriptedFleet, opened: list[ChannelLedger]) -> ResultPublisher:
    """One life of a driver: what is missing of the batches, each committed and then published."""
    ledger = ChannelLedger(root)
    opened.append(ledger)
    fleet.new_life()
    if ledger.last is None:
        ledger.commit(first_commit({"f": 0}, 1))
    publisher = ResultPublisher(ledger, fleet.opened, fleet.clock, fleet.wait)
    while (last := ledger.last) is not None and last.number < len(BATCH_SIZES):
        number, place = last.number + 1, last.places["f"]
        results = tuple(Result({"batch": number, "batch_row": row + 1}) for row in range(BATCH_SIZES[number - 1]))
        commit = next_commit(
            last, {"f": place + 10}, RowCounts(10, 10), (), results,
            unasked=0, invalid=0, at_us=fleet.clock(), query_us=1,
        )  # fmt: skip
        ledger.commit(commit)
        publisher.publish(commit.results)
        fleet.wait(0.1)
        publisher.save()
    publisher.close()
    return publisher


def until_crash(
    root: Path, fleet: ScriptedFleet, steps: Steps, crash_at: int, life: Life = undisturbed_life
) -> ResultPublisher | None:
    """What the life returns; None if it has crashed."""
    steps.arm(crash_at)
    fleet.step = steps.next
    opened: list[ChannelLedger] = []
    try:
        return life(root, fleet, opened)
    except CrashError:
        return None
    finally:
        for ledger in opened:
            ledger.close()
        steps.arm(0)


def behind(ledger: ChannelLedger, results: tuple[Result, ...]) -> BatchCommit:
    assert ledger.last is not None
    return next_commit(
        ledger.last, {}, RowCounts(), (), results, unasked=0, invalid=0, at_us=1, query_us=1,
    )  # fmt: skip


def published(fleet: ScriptedFleet) -> list[tuple[int, int]]:
    return [(each["batch"], each["batch_row"]) for each in fleet.log]


def test_a_crash_before_every_step_publishes_each_result_once(tmp_path: Path, steps: Steps) -> None:
    for crash_at in itertools.count(1):
        root, fleet = tmp_path / str(crash_at), ScriptedFleet()
        ended = until_crash(root, fleet, steps, crash_at)
        after = until_crash(root, fleet, steps, 0)
        assert published(fleet) == DUE, crash_at
        assert after is not None
        assert (after.counts.accepted, after.counts.unknown, after.counts.refused) == (len(DUE), 0, 0)
        if ended:
            break
    assert crash_at > 40


def test_a_crash_before_every_request_to_a_store_publishes_each_result_once() -> None:
    for crash_at in itertools.count(1):
        store, fleet = ScriptedStore(), ScriptedFleet()
        root, is_over = place(store, "channels/fires"), False
        store.arm(crash_at)
        try:
            undisturbed_life(root, fleet, [])
        except StoreCrashError:
            store.arm(0)
        else:
            is_over = True
        after = undisturbed_life(root, fleet, [])
        assert published(fleet) == DUE, crash_at
        assert (after.counts.accepted, after.counts.unknown, after.counts.refused) == (len(DUE), 0, 0)
        if is_over:
            break
    assert crash_at > 10


def test_of_two_drivers_of_a_ledger_in_a_store_one_goes_on() -> None:
    root, fleet = place(ScriptedStore(), "channels/fires"), ScriptedFleet()
    undisturbed_life(root, fleet, [])
    first, second = ChannelLedger(root), ChannelLedger(root)
    first.commit(behind(first, ()))
    with pytest.raises(LedgerError, match="another driver has written this batch"):
        second.commit(behind(second, ()))
    position = first.position
    assert position is not None
    first.save_position(msgspec.structs.replace(position, at_us=position.at_us + 1))
    with pytest.raises(LedgerError, match="another driver works on this channel"):
        second.save_position(position)
    assert ChannelLedger(root).position == first.position


def test_two_crashes_in_a_row(tmp_path: Path, steps: Steps) -> None:
    for first, second in itertools.product(range(1, 60, 5), range(1, 40, 4)):
        root, fleet = tmp_path / f"{first}-{second}", ScriptedFleet()
        until_crash(root, fleet, steps, first)
        until_crash(root, fleet, steps, second)
        until_crash(root, fleet, steps, 0)
        assert published(fleet) == DUE, (first, second)


def test_if_the_head_forgets_as_well_nothing_is_repeated_and_the_rest_is_counted(tmp_path: Path, steps: Steps) -> None:
    """What the head had taken before it restarted may have reached its subscribers; what it lost is not known."""
    for crash_at in itertools.count(1):
        root, fleet = tmp_path / str(crash_at), ScriptedFleet()
        ended = until_crash(root, fleet, steps, crash_at)
        fleet.restart_head()
        until_crash(root, fleet, steps, 0)
        after = until_crash(root, fleet, steps, 0)
        found = published(fleet)
        assert found == sorted(set(found)), crash_at
        assert after is not None
        assert after.counts.answered == len(DUE), crash_at
        assert len(DUE) - len(found) <= after.counts.unknown, crash_at
        if ended:
            break


def life_while_the_head_restarts(
    root: DatasetPath, fleet: ScriptedFleet, opened: list[ChannelLedger]
) -> ResultPublisher:
    """One life of a driver: two batches, with a restart of its head before and behind each."""
    ledger = ChannelLedger(root)
    opened.append(ledger)
    fleet.new_life()
    ledger.commit(first_commit({"f": 0}, 1))
    publisher = ResultPublisher(ledger, fleet.opened, fleet.clock, fleet.wait)
    fleet.restart_head()
    fleet.wait(20.0)
    for number in (1, 2):
        results = (Result({"batch": number, "batch_row": 1}), Result({"batch": number, "batch_row": 2}))
        ledger.commit(behind(ledger, results))
        publisher.publish(results)
        fleet.restart_head()
        fleet.wait(20.0)
        publisher.save()
    return publisher


def test_a_head_that_restarts_under_a_driver_and_then_the_driver_dies(tmp_path: Path, steps: Steps) -> None:
    for crash_at in itertools.count(1):
        root, fleet = tmp_path / str(crash_at), ScriptedFleet()
        ended = until_crash(root, fleet, steps, crash_at, life_while_the_head_restarts)
        fleet.new_life()
        ledger = ChannelLedger(root)
        after = ResultPublisher(ledger, fleet.opened, fleet.clock, fleet.wait)
        fleet.wait(20.0)
        after.save()
        ledger.close()
        found = published(fleet)
        assert found == sorted(set(found)), crash_at
        due = ledger.last.totals.results if ledger.last is not None else 0
        assert after.counts.answered == due
        assert due - len(found) <= after.counts.unknown
        if ended:
            break


def test_only_batches_that_are_needed_are_kept(tmp_path: Path, steps: Steps) -> None:
    fleet = ScriptedFleet()
    until_crash(tmp_path, fleet, steps, 0)
    kept = sorted(path.stem for path in (tmp_path / BATCHES).glob("*.batch"))
    assert kept[-1] == f"{len(BATCH_SIZES):012d}"
    assert len(kept) <= 2


def test_a_second_driver_and_a_damaged_file_are_refused(tmp_path: Path) -> None:
    ledger = ChannelLedger(tmp_path)
    ledger.commit(first_commit({}, 1))
    for _ in range(3):
        ledger.commit(behind(ledger, (Result({"a": 1}),)))
    last = ledger.last
    assert last is not None
    with pytest.raises(LedgerError, match="another driver works on this channel"):
        ChannelLedger(tmp_path)
    with pytest.raises(LedgerError, match="another driver has written this batch"):
        ledger.commit(last)
    ledger.close()
    middle = tmp_path / BATCHES / f"{2:012d}.batch"
    middle.write_bytes(b"\xc1")
    with pytest.raises(LedgerError, match="this is not a batch of a channel"):
        ChannelLedger(tmp_path)
    middle.unlink()
    with pytest.raises(LedgerError, match="batch 2 is missing"):
        ChannelLedger(tmp_path)
    (tmp_path / "position.json").write_bytes(b"{")
    with pytest.raises(LedgerError, match="not a position"):
        ChannelLedger(tmp_path)
