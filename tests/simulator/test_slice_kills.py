"""Cells of the kill matrix of slices: what holds in each, and that each step of the table is a message of a move."""

from __future__ import annotations

from collections import Counter

import pytest

from plimsoll.core.client.slice_subscriber import SliceSubscriber
from plimsoll.core.verify.slice_kill_cells import (
    MEANINGS,
    STEPS,
    TIMES,
    VICTIMS,
    WAYS,
    SliceKillCell,
    SliceKillResult,
    all_cells,
)
from plimsoll.simulator.slice_kills import SliceKill

SAMPLED = [
    SliceKillCell("Deliver", "released", "before", "giver"),
    SliceKillCell("Deliver", "assigned", "behind", "taker"),
    SliceKillCell("Cache", "giver caches", "behind", "head"),
    SliceKillCell("Cache", "taker caches", "before", "other edge"),
    SliceKillCell("Cache", "cache sent", "before", "giver"),
    SliceKillCell("Cache", "merged", "before", "taker"),
]


def result(cell: SliceKillCell) -> SliceKillResult:
    return SliceKill(cell).result()


def test_each_process_is_killed_before_and_behind_each_step():
    cells = list(all_cells())
    steps = sum(len(STEPS[way]) for way in WAYS)
    assert len(cells) == len(set(cells)) == 2 + steps * len(TIMES) * len(VICTIMS)
    assert {step for way in WAYS for step in STEPS[way]} == MEANINGS.keys()
    assert Counter(cell.victim is None for cell in cells)[True] == 2
    assert str(SAMPLED[0]) == "Deliver, before released: SIGKILL giver"


@pytest.mark.parametrize("way", WAYS)
def test_without_a_kill_the_slice_moves_as_it_says(way: str):
    found = result(next(cell for cell in all_cells() if cell.in_session == way))
    assert (found.broken, found.at, found.redelivered) == ([], "taker", 0)
    assert found.way == {"Deliver": "from the log", "Cache": "merged"}[way]
    assert (found.cached > 0) == (way == "Cache")


@pytest.mark.parametrize("cell", SAMPLED, ids=str)
def test_no_item_is_lost_repeated_or_reordered(cell: SliceKillCell):
    assert result(cell).broken == []


@pytest.mark.sweep
@pytest.mark.timeout(1800)
def test_nor_in_any_cell():
    assert {str(cell): found.broken for cell in all_cells() if (found := result(cell)).broken} == {}


def test_a_broken_rule_fails_a_cell(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(SliceSubscriber, "_may_have_been_given", lambda self, item: False)
    assert result(SliceKillCell("Cache", "cache sent", "before", "giver")).broken != []
