"""Cells of the kill matrix of heads whose logs outlast them: what holds in each, and that broken rules fail some."""

from __future__ import annotations

import pytest

from plimsoll.core.head.standby.log_feed import LogFeed
from plimsoll.core.verify.head_kill_cells import (
    KEEPS,
    MEANINGS,
    MODES,
    STEPS,
    TIMES,
    VICTIMS,
    HeadKillCell,
    HeadKillResult,
    all_cells,
)
from plimsoll.simulator.head_kills import HeadKill
from plimsoll.simulator.world.durable_heads import HeadDisk

SAMPLED = [
    HeadKillCell("drain", "cut done", "behind", "head", "disk"),
    HeadKillCell("drain", "cut asked", "before", "head", "standby"),
    HeadKillCell("drain", "draining", "behind", "head", "standby and disk"),
    HeadKillCell("replay", "cut sent", "behind", "head", "standby, node lost"),
    HeadKillCell("replay", "draining", "before", "head", "disk"),
    HeadKillCell("across", "cut done", "behind", "far head", "standby"),
    HeadKillCell("across", "cut sent", "before", "head", "standby, node lost"),
    HeadKillCell("across", "draining", "behind", "far head", "disk"),
]


ASLEEP = [
    HeadKillCell("drain", "cut done", "behind", "head", "disk"),
    HeadKillCell("drain", "draining", "before", "head", "standby"),
    HeadKillCell("replay", "draining", "behind", "head", "disk"),
    HeadKillCell("across", "cut done", "behind", "far head", "disk"),
]
"""Cells in a tree in which members sleep behind their cut."""


def result(cell: HeadKillCell) -> HeadKillResult:
    return HeadKill(cell).result()


def test_each_head_is_killed_before_and_behind_each_step_with_each_thing_that_it_keeps():
    cells = list(all_cells())
    steps = sum(len(STEPS[mode]) * len(VICTIMS[mode]) for mode in MODES)
    assert len(cells) == len(set(cells)) == len(MODES) + steps * len(TIMES) * len(KEEPS)
    assert {step for mode in MODES for step in STEPS[mode]} == MEANINGS.keys()
    assert str(SAMPLED[0]) == "drain, behind cut done: SIGKILL head (disk)"


@pytest.mark.parametrize("mode", MODES)
def test_without_a_kill_all_members_move(mode: str):
    found = result(next(cell for cell in all_cells() if cell.mode == mode))
    assert (found.broken, found.outcomes, found.homes) == ([], {"moved": 4}, {"target": 4})


@pytest.mark.parametrize("cell", SAMPLED, ids=str)
def test_nothing_is_lost_and_there_is_no_gap(cell: HeadKillCell):
    found = result(cell)
    assert (found.broken, found.lost, found.gaps, found.unknown) == ([], 0, 0, 0)
    assert found.delivered > 1_000


@pytest.mark.sweep
@pytest.mark.timeout(1800)
def test_nor_in_any_cell():
    assert {str(cell): found.broken for cell in all_cells() if (found := result(cell)).broken} == {}


@pytest.mark.parametrize("cell", ASLEEP, ids=str)
def test_there_is_no_gap_in_a_tree_for_members_that_sleep_behind_their_cut(cell: HeadKillCell):
    found = HeadKill(cell, sleeps=True).result()
    assert (found.broken, found.lost, found.gaps, found.unknown) == ([], 0, 0, 0)
    assert found.delivered > 1_000


@pytest.mark.sweep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mode", MODES)
def test_there_is_no_gap_for_members_that_sleep_whenever_a_head_is_killed(mode: str):
    cells = [cell for cell in all_cells() if cell.mode == mode and cell.victim and cell.keeps in ("disk", "standby")]
    behind_cut = [cell for cell in cells if cell.step in ("cut asked", "cut done", "draining")]
    assert len(behind_cut) >= 8
    for cell in behind_cut:
        found = HeadKill(cell, sleeps=True).result()
        assert (found.broken, found.lost, found.gaps, found.unknown) == ([], 0, 0, 0), str(cell)


def test_what_leaves_before_the_standby_has_it_fails_a_cell(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(LogFeed, "is_safe", lambda self, place: True)
    assert result(HeadKillCell("drain", "cut done", "behind", "head", "standby")).broken != []


def test_what_leaves_before_it_is_on_the_disk_fails_a_cell(monkeypatch: pytest.MonkeyPatch):
    end_round = HeadDisk.end_round
    monkeypatch.setattr(HeadDisk, "end_round", lambda self, send: (send(), end_round(self, lambda: None)))
    assert result(HeadKillCell("drain", "cut done", "behind", "head", "disk")).broken != []


def test_half_of_the_members_have_moved_when_a_head_is_killed_while_they_drain():
    kill = HeadKill(HeadKillCell("across", "draining", "behind", "far head", "disk"))
    assert kill.result().outcomes == {"detached": 2, "moved": 2}
