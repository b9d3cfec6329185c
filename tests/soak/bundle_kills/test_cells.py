"""The cells of the kill matrix of bundles, and what is read of a fleet in them."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.policies.model.bundle_load import BundleLoad, report_fields
from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.soak.bundle_kills import bundle_watch
from plimsoll.soak.bundle_kills.cell_run import SCENARIO, fleet_of, unit_count
from plimsoll.soak.bundle_kills.cells import CHANGES, MEANINGS, all_cells, victims_of

TWO = Partition.of_count(2)
LOW, HIGH = TWO.ranges


def edge(name: str, *loads: BundleLoad) -> dict[str, Any]:
    return {"broker": name, **report_fields(loads)}


def head(owners: dict[str, str], bundles: int = 2) -> dict[str, Any]:
    return {"broker": "h", "bundle_owners": owners, "bundles": bundles}


RIGHT = head({LOW.name: "a", HIGH.name: "b"})
EDGES = [edge("a", BundleLoad(LOW, 2, 3)), edge("b", BundleLoad(HIGH, 1, 2))]


def test_each_process_is_killed_at_each_step():
    cells = list(all_cells())
    assert len(cells) == len(set(cells)) == 3 + 12 + 12 + 12
    for change in CHANGES:
        mine = [cell for cell in cells if cell.change == change]
        assert mine[0].victim is None, "the baseline comes first"
        assert {(cell.step, cell.victim) for cell in mine[1:]} == {
            (step, victim) for step in MEANINGS[change] for victim in victims_of(change)
        }
    assert str(cells[1]) == "transfer, planned: SIGKILL mediator"


@pytest.mark.parametrize("change", CHANGES)
def test_its_fleet_is_one_that_users_could_write(change: Any):
    policy = fleet_of(change).fleet.spec.defaults.policy
    assert policy is not None
    assert policy.pulsar is not None
    assert policy.pulsar.unload == ("Lookup" if change == "lookup" else "Transfer")
    assert unit_count(SCENARIO) > SCENARIO.subscribers


def test_ranges_and_owners_are_right_or_it_is_said_what_is_wrong():
    def faults(head: dict[str, Any] = RIGHT, edges: Any = EDGES, units: int = 5, sessions: int = 0) -> list[str]:
        return list(bundle_watch.faults(head, edges, TWO, units, sessions))

    assert faults() == []
    assert faults(units=6) == ["5 of 6 units are served"]
    assert faults(sessions=1) == ["1 sessions are open"]
    assert faults(head({LOW.name: "a"})) == [f"b serves units of {HIGH.name}, and no edge owns it"]
    assert faults(head({LOW.name: "b", HIGH.name: "b"})) == [f"a serves units of {LOW.name}, and b owns it"]
    assert "the head has 3 bundles, and the store 2" in faults(head(RIGHT["bundle_owners"], 3))
    whole = Partition.of_count(1).ranges[0]
    assert faults(head({**RIGHT["bundle_owners"], whole.name: "a"})) == [
        f"the head names an owner of {whole.name}, which is no bundle"
    ]
    other = [edge("a", BundleLoad(whole, 2, 3)), EDGES[1]]
    assert faults(edges=other) == [f"a serves units of {whole.name}, which is no bundle"]


def test_what_the_store_has():
    stored = {"status": {"policyMemory": {"policy": "Pulsar", "memory": {"boundaries": [0, 9, 0xFFFFFFFF]}}}}
    assert bundle_watch.stored_ranges(stored, 4).boundaries == (0, 9, 0xFFFFFFFF)
    assert len(bundle_watch.stored_ranges({}, 4)) == 4
    assert bundle_watch.largest_bundle(EDGES) == LOW
    assert bundle_watch.owners_of({}) == {}
