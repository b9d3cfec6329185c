"""The cells of the kill matrix of publishers."""

from __future__ import annotations

from plimsoll.soak.publisher_kills.cells import HEADS, MEANINGS, VICTIMS, PublisherKillCell, all_cells


def test_every_step_is_hit_by_every_signal_once():
    cells = list(all_cells())
    assert len(cells) == len(set(cells)) == 1 + len(MEANINGS) * len(VICTIMS)
    assert cells[0] == PublisherKillCell("moved", None)


def test_a_cell_in_words():
    assert str(PublisherKillCell("cut", "old head")) == "cut: SIGKILL old head"
    assert str(PublisherKillCell("cut", "publishers")) == "cut: SIGSTOP for 3 s publishers"
    assert str(PublisherKillCell("moved", None)) == "moved: nothing"
    assert PublisherKillCell("cut", "old head").words == {"cut", "old head"}


def test_only_heads_that_are_killed_may_cost_a_gap():
    assert {cell.victim for cell in all_cells() if cell.may_gap} == set(HEADS)
