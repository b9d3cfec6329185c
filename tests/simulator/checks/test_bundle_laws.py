"""The laws of bundles: a settled fleet keeps them, and each way to break one is reported."""

from __future__ import annotations

import pytest
from tests.simulator.test_balancing import run

from plimsoll.core.head.machine import Head
from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.core.verify import observations as seen
from plimsoll.simulator.checks.bundle_laws import BundleLaws
from plimsoll.simulator.run import SimulationRun


@pytest.fixture(scope="module")
def over() -> SimulationRun:
    return run("sessions-bundles", 1)


def parts(over: SimulationRun) -> tuple[BundleLaws, Head]:
    head = over.fleet.heads()[0].host.node
    assert over.laws.bundles is not None
    assert isinstance(head, Head)
    return over.laws.bundles, head


def left(laws: BundleLaws) -> list[str]:
    return [each.what for each in laws.leftovers(0.0)]


def test_a_settled_fleet_keeps_them(over: SimulationRun):
    laws, _ = parts(over)
    assert left(laws) == []


def test_an_owner_that_does_not_run_is_reported(over: SimulationRun, monkeypatch: pytest.MonkeyPatch):
    laws, head = parts(over)
    monkeypatch.setattr(head.bundles, "owners", dict.fromkeys(head.bundles.owners, "elsewhere"))
    assert any("which is no edge that runs" in what for what in left(laws))


def test_units_away_from_their_owner_are_reported(over: SimulationRun, monkeypatch: pytest.MonkeyPatch):
    laws, head = parts(over)
    monkeypatch.setattr(head.bundles, "owners", dict.fromkeys(head.bundles.owners, "h0e0"))
    assert any("h0e0 owns the bundle" in what for what in left(laws))


def test_older_and_unknown_ranges_are_reported(over: SimulationRun, monkeypatch: pytest.MonkeyPatch):
    _, head = parts(over)
    found: list[seen.Observation] = []
    laws = BundleLaws(over.fleet, lambda _: {"version": 3}, found.append)
    monkeypatch.setattr(head.bundles, "version", (1, 9))
    laws.measure(0.0)
    monkeypatch.setattr(head.bundles, "version", (1, 2))
    monkeypatch.setattr(head.bundles, "partition", Partition.of_count(3))
    laws.measure(1.0)
    texts = [each.what for each in found if isinstance(each, seen.ResidueObserved) and each.where == "h0"]
    assert texts[0] == "ranges of version 9, and the store has 3"
    assert texts[1] == "ranges of version (1, 2) after those of (1, 9)"
    assert "that are not parts of" in texts[2]
