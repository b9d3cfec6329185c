"""A slice that moves back and forth, small: each claim is judged, and one fails if an item is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plimsoll.core.client.slice_subscriber import SliceSubscriber
from plimsoll.experiments.dpslb import moves


def test_a_small_run_holds_all_but_delays():
    result = moves.run(2006, plan=moves.small())
    assert (len(result.claims), len(result.runs)) == (10, 4)
    failed = [each.claim for each in result.claims if not each.held and "delayed" not in each.claim]
    assert not failed
    assert [row["moved"] for row in result.runs] == [10, 10, 0, 0]


def test_a_taker_that_begins_behind_what_had_come_breaks_a_claim(monkeypatch: pytest.MonkeyPatch):
    plain = SliceSubscriber.place

    def place(self: Any, **how: bool) -> Any:
        found = plain(self, **how)
        if how.get("is_released") and found.token is not None:
            head, epoch, position = found.token
            return type(found)(found.number, found.epoch, (head, epoch, position + 60), found.marks, True)
        return found

    monkeypatch.setattr(SliceSubscriber, "place", place)
    result = moves.run(2006, plan=replace(moves.small(), publications=800, edges=(1,)))
    assert any("exactly once" in each.claim and not each.held for each in result.claims)
