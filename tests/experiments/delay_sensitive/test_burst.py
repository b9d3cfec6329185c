"""The burst, small: which topic moves, when, and that claims fail where nothing balances."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.demo.crisis_tables import GIVEN
from plimsoll.experiments.delay_sensitive import burst, crisis_world
from plimsoll.experiments.delay_sensitive.crisis_run import run_crisis


@pytest.fixture(scope="module")
def result():
    return burst.run(1, plan=burst.small())


def test_topic_one_goes_to_b0_when_the_deadline_of_topic_eight_is_in_danger(result):
    held = {each.claim: each.held for each in result.claims}
    assert held["The deadline of topic 8 triggers balancing (figure 3)"]
    assert held["Exactly topic 1, with its eight subscribers, goes to b0 (figure 3)"]
    assert held["No message is later than required"]
    ours, none = result.runs
    assert [(each["from"], each["to"], each["topics"]) for each in ours["moves"]] == [("b1", "b0", {"1": 8})]
    assert ours["places"] == {**none["places"], "1": ["b0"]}
    assert ours["delivered"] == pytest.approx(none["delivered"], rel=0.01)
    assert none["late_by_topic"].keys() <= {"8"}


def test_without_a_burst_nothing_moves():
    plan = burst.small()
    times = replace(plan.times, burst_at=100.0, ends_at=19.0)
    run = run_crisis("quiet", crisis_world.delay_sensitive(), 1, GIVEN, times)
    assert (run.sessions, run.moves, run.late) == (0, [], {})
    assert run.cleared_at("b1", 8) is None, "a queue that never was cannot be gone"


def test_claims_do_not_hold_where_nothing_balances():
    times = replace(burst.small().times, ends_at=18.0)
    none = run_crisis("nothing", None, 1, GIVEN, times)
    assert not any(each.held for each in burst._claims({burst.OURS: none}, replace(burst.small(), times=times))[:3])


@pytest.mark.sweep
def test_a_hand_over_over_links_of_a_tenth_of_a_second_is_judged_beside_it():
    """The same look triggers, and the same topic moves; the queue grows for as long as our hand-over takes longer."""
    runs = [run_crisis("x", crisis_world.delay_sensitive(), 1, GIVEN, times) for times in (
        burst.small().times, replace(burst.small().times, link_seconds=crisis_world.TEXT_LINK_SECONDS),
    )]  # fmt: skip
    short, long = ([each for each in run.moves if each.topics == {1: 8}] for run in runs)
    assert short[0].at == pytest.approx(long[0].at, abs=0.05)
    took = [one[0].ended_at - one[0].at for one in (short, long)]
    assert took[0] < 1.5 * crisis_world.BALANCING_SECONDS
    assert 0.8 < took[1] < 1.3
    deepest = [max(depth for _, depth in run.depths["b1", 8]) for run in runs]
    assert deepest[1] > deepest[0] + 10
    assert [run.late for run in runs] == [{}, {}]
