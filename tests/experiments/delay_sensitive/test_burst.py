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
    policy = crisis_world.delay_sensitive(times, plan.balancing_seconds)
    run = run_crisis("quiet", policy, 1, GIVEN, times)
    assert (run.sessions, run.moves, run.late) == (0, [], {})
    assert run.cleared_at("b1", 8) is None, "a queue that never was cannot be gone"


def test_claims_do_not_hold_where_nothing_balances():
    times = replace(burst.small().times, ends_at=18.0)
    none = run_crisis("nothing", None, 1, GIVEN, times)
    assert not any(each.held for each in burst._claims({burst.OURS: none}, replace(burst.small(), times=times))[:3])


def test_the_texts_settings_are_judged_beside_ours_and_with_a_hand_over_that_takes_what_the_text_gives_it():
    """A look of a second, t_LB of 0.1 s: the trigger is late, but for links over which a hand-over takes 0.1 s."""
    plan = replace(burst.small(), runs=(burst.OURS, burst.SECOND, burst.QUICK))
    held = {each.claim: each.held for each in burst.run(1, plan=plan).claims}
    trigger, exact = "The deadline of topic 8 triggers balancing (figure 3)", "No message is later than required"
    second, quick = (name.removeprefix("DelaySensitive, ") for name in (burst.SECOND, burst.QUICK))
    assert (held[trigger], held[f"{trigger}; {second}"], held[f"{trigger}; {quick}"]) == (True, False, True)
    assert held[f"{exact}; {second}"]
    assert held[f"{exact}; {quick}"]
