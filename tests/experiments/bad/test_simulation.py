"""The simulation, small: it runs to its end and judges every claim by what was counted."""

from dataclasses import replace

from plimsoll.experiments.bad import simulation
from plimsoll.experiments.bad.arm import BadArm

SMALL = replace(simulation.small(), subscribers=120, seconds=300.0)


def test_a_small_run_judges_all_claims():
    result = simulation.run(1, plan=SMALL)
    assert (len(result.claims), len(result.runs)) == (10, 8)
    assert all(each.paper and each.ours for each in result.claims)
    rows = {row["run"]: row for row in result.runs}
    assert rows[simulation.by_alpha("0.05")]["cov"] < rows[simulation.by_alpha("0.3")]["cov"]
    assert rows[simulation.NONE]["moved"] == 0


def test_without_balancing_claims_do_not_hold(monkeypatch):
    """A check that cannot fail is none. Without a shuffle there is no migration after it."""
    arms = [BadArm(arm.name, "Nearest") for arm in simulation.arms()]
    monkeypatch.setattr(simulation, "arms", lambda: arms)
    held = [each.claim for each in simulation.run(1, plan=SMALL).claims if each.held]
    assert held == []
