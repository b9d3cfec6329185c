"""A run of scenarios: each against a client of its own, which is always closed."""

from __future__ import annotations

import pytest
from tests.conformance.raw_client import RawClient

from plimsoll.conformance import SCENARIOS, Scenario, play, play_all
from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.conformance.scenario import PROFILES
from plimsoll.conformance.stage import Stage

RULE = Rule("6.4", "words")


def broken(stage: Stage) -> None:
    stage.order(do="stop")
    raise RuleBrokenError(RULE, "it did not")


def kept(stage: Stage) -> None:
    stage.client.poll(2.0)


def failing(stage: Stage) -> None:
    raise ValueError("a fault of the scenario")


def test_a_broken_rule_is_in_the_verdict():
    client = RawClient()
    verdict = play(Scenario("x", "6.4", "title", broken), lambda: client)
    assert (verdict.is_kept, verdict.rule, verdict.found) == (False, RULE, "it did not")
    assert len(verdict.exchange) == len(verdict.lines) == 1
    assert client.is_closed


def test_a_kept_scenario_has_no_rule():
    verdict = play(Scenario("x", "6.4", "title", kept), RawClient)
    assert (verdict.is_kept, verdict.rule, verdict.seconds) == (True, None, 2.0)


def test_a_fault_of_a_scenario_is_not_the_clients():
    client = RawClient()
    with pytest.raises(ValueError, match="a fault of the scenario"):
        play(Scenario("x", "6.4", "title", failing), lambda: client)
    assert client.is_closed


def test_verdicts_come_in_the_order_of_scenarios():
    scenarios = [Scenario(str(n), "6.4", "title", (kept, broken)[n % 2]) for n in range(6)]
    verdicts = list(play_all(scenarios, RawClient, jobs=3))
    assert [verdict.scenario.name for verdict in verdicts] == list("012345")
    assert [verdict.is_kept for verdict in verdicts] == [True, False] * 3


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_has_scenarios(profile: str):
    assert len([scenario for scenario in SCENARIOS if profile in scenario.profiles]) > 30
