"""What keeps publishers from publishing again after a node was lost is found, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plimsoll.core.head.durability.journal import LogJournal
from plimsoll.core.transport.silent_heads import SilentHeads
from plimsoll.simulator.checks.promotion_laws import PromotionLaws
from plimsoll.simulator.run import SimulationRun
from plimsoll.simulator.scenarios.catalogue import SCENARIOS


def lost_nodes(monkeypatch: pytest.MonkeyPatch, scenario: str = "standby-lost") -> tuple[int, list[str]]:
    """How many losses of nodes were looked at in one run, and what was found."""
    laws: list[PromotionLaws] = []
    monkeypatch.setattr(PromotionLaws, "node_lost", _noted(laws))
    run = SimulationRun(SCENARIOS[scenario], 1)
    outcome = run.go()
    found = [text for text in map(str, outcome.verdict.violations) if "after its loss" in text]
    return max((each.checked for each in laws), default=0), found


def _noted(laws: list[PromotionLaws]) -> Callable[[PromotionLaws, str, bool], None]:
    original = PromotionLaws.node_lost

    def node_lost(self: PromotionLaws, head: str, with_edge: bool) -> None:
        laws.append(self)
        original(self, head, with_edge)

    return node_lost


@pytest.mark.parametrize("scenario", ["standby-lost", "standby-node-lost"])
def test_publishers_publish_again_within_the_lease_and_a_second(monkeypatch: pytest.MonkeyPatch, scenario: str):
    checked, found = lost_nodes(monkeypatch, scenario)
    assert checked > 1
    assert found == []


def test_a_publisher_and_an_edge_that_wait_for_the_lost_head_are_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(SilentHeads, "opened", lambda self, link, now: None)
    _, found = lost_nodes(monkeypatch)
    assert any("has not found its successor" in text for text in found)
    assert any("still waits for others" in text for text in found)


def test_a_head_that_waits_for_an_edge_that_is_lost_with_it_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(LogJournal, "has_all", False)
    _, found = lost_nodes(monkeypatch, "standby-node-lost")
    assert any("still waits for others" in text for text in found)
