"""The fleet of the scenario: five edges, one feed, seven channels, and tables that the queries join."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll.demo.emergency.fleet import ARMS, emergency_resources, write_tables
from plimsoll.demo.emergency.plan import CHANNELS, EmergencyScenario, emergency_plan

PLAN = emergency_plan(EmergencyScenario(people=5, reports=3, shelters=4))


@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_is_a_valid_fleet(arm):
    resources = emergency_resources(PLAN, arm, "round-robin")
    assert len(resources.clusters["city"].spec.edges) == 5
    assert set(resources.channels) == {each.name for each in CHANNELS}
    for each in CHANNELS:
        every = resources.channels[each.name].spec.every
        assert every is not None
        assert every.seconds == each.period_seconds * PLAN.scenario.period_factor


def test_tables_are_whole(tmp_path: Path):
    write_tables(PLAN, tmp_path / "tables")
    around = (tmp_path / "tables" / "around.csv").read_text().split()
    assert around[:5] == ["area,other", "0,0", "0,1", "0,4", "0,5"]
    assert len(around) == 1 + 100
    assert len((tmp_path / "tables" / "shelters.csv").read_text().split()) == 1 + 4
