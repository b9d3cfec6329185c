"""Which line is believed: of an index, of emulated hardware, and of neither while nothing tells them apart."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from tests.core.policies.hand import named

from plimsoll.core.policies.model.delay_choice import CarefulMatchDelay, MatchDelayFits, reported_model
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.match_delay import FittedMatchDelay, MatchLoadChange, SubscriptionMatchDelay
from plimsoll.core.policies.model.plan import BrokerAction
from plimsoll.core.policies.model.profile import ProfileRow, SubscriptionProfile
from plimsoll.core.policies.model.traffic import SampleBlock, SampledTraffic
from plimsoll.core.policies.padres import Padres

PUBLICATIONS = 200


def index(subscriptions: float, matches: float) -> float:
    """Seconds of a publication in an index: its matches cost, and its subscriptions do not."""
    return 1e-5 + 1e-6 * matches


def emulated(subscriptions: float, matches: float) -> float:
    """Seconds of a publication of emulated hardware."""
    return 1e-4 + 1e-6 * subscriptions


def measured(
    cost: Callable[[float, float], float], *, joining: bool, noise: float = 0.05, matches: float = 0.4
) -> MatchDelayFits:
    """Twenty intervals: subscribers join, and publications match a part of the subscriptions that varies by a third."""
    fits, seeded = MatchDelayFits(), random.Random(3)
    for number in range(20):
        count = 100 * (number + 1) if joining else 2000
        each = matches * count * seeded.uniform(0.67, 1.33)
        seconds = PUBLICATIONS * cost(count, each) * seeded.uniform(1 - noise, 1 + noise)
        fits.note(count, each * PUBLICATIONS, seconds, PUBLICATIONS)
    return fits


@pytest.mark.parametrize("joining", [True, False])
def test_the_line_that_predicts_is_believed(joining: bool):
    assert measured(index, joining=joining).believed == "Matches"
    assert measured(emulated, joining=joining, noise=0.0).believed == "Subscriptions"


def test_neither_is_believed_before_there_is_something_to_tell_them_apart():
    fits = MatchDelayFits()
    for _ in range(30):
        fits.note(100, 40.0 * PUBLICATIONS, 1e-3 * PUBLICATIONS, PUBLICATIONS)
    assert fits.believed == ""
    assert MatchDelayFits().believed == ""
    assert MatchDelayFits("Subscriptions").believed == "Subscriptions", "emulated hardware is known to be so"
    report = {**fits.report(100), "subscriptions": 100, "input_rate": 10.0, "output_rate": 400.0}
    careful = reported_model(report)
    assert isinstance(careful, CarefulMatchDelay)
    gone = careful.delay_seconds - careful.after(MatchLoadChange(-50, 0.0))
    assert gone == pytest.approx(0.0, abs=1e-6), "those that match nothing may be no relief"
    assert careful.after(MatchLoadChange(50, 0.0)) == pytest.approx(1.5e-3, rel=0.01), "and may be a burden"
    assert careful.after(MatchLoadChange(-50, -20.0)) == pytest.approx(0.5e-3, rel=0.01)


def test_without_a_measurement_there_is_no_model():
    assert reported_model({}) is None
    assert (
        reported_model({**MatchDelayFits().report(5), "subscriptions": 5, "input_rate": 0.0, "output_rate": 0.0})
        is None
    )
    line = {"match_base_seconds": 0.1, "match_seconds_per_match": 0.2, "input_rate": 1.0, "output_rate": 3.0}
    assert reported_model(line) == FittedMatchDelay(0.1, 0.2, 3.0)
    by_count = {"match_subscription_base_seconds": 0.1, "match_seconds_per_subscription": 0.2, "subscriptions": 3}
    assert reported_model(by_count) == SubscriptionMatchDelay(0.1, 0.2, 3)
    assert reported_model({**by_count, "match_seconds_per_subscription": -1.0}) is None


def test_the_first_session_of_an_index_relieves_as_much_as_it_promises():
    """1,000 of 2,000 subscribers match nothing; each of the others matches 40 % of 3,000/s and all together use 1.23.

    By eq. 4 those without matches are half of the delay: they go, nothing changes, and the edge is as overloaded as it
    was. By what was measured some of the others go, and what is promised comes.
    """
    fits, rate, wide = measured(index, joining=True), 3000.0, 10
    rows = (
        ProfileRow("none", 0, named("n", 1000)),
        *(ProfileRow(f"r{number}", 15 << number, named(f"r{number}-", 143)) for number in range(7)),
    )
    traffic = SampledTraffic([SampleBlock(wide, rate / wide, 10.0)])
    matches = sum(row.bits.bit_count() / wide * row.count for row in rows)
    delay = index(2001, matches)
    report = {
        "broker": "s", "subscribers": 2001, "subscriptions": 2001, "input_rate": rate, "output_rate": rate * matches,
        "match_delay_seconds": delay, "input_utilization": rate * delay, **fits.report(2001),
    }  # fmt: skip
    source = BrokerLoad.from_report(report, delay=reported_model(report))
    target = BrokerLoad(name="t", bandwidth=1e9)
    action, profile = BrokerAction("t", "match", 1.0, ("input",)), SubscriptionProfile(traffic, rows)
    assert source.input_utilization > 1.2
    plan = Padres().plan(source, target, profile, action)
    gone = sum(
        row.bits.bit_count() / wide * sum(len(m.subscribers) for m in plan.moves if m.key == row.key) for row in rows
    )
    came = rate * index(0, matches - gone)
    assert plan.predicted_source.input_utilization < 0.86
    assert came == pytest.approx(plan.predicted_source.input_utilization, abs=0.03)
    paper = Padres().plan(BrokerLoad.from_report(report), target, profile, action)
    assert {move.key for move in paper.moves} == {"none"}


def test_rounding_leaves_no_base_below_0_for_which_a_report_would_be_read_by_the_other_line():
    """With one number of subscriptions the line is that through the origin, whose base may come out as -4e-19."""
    for subscriptions in range(1, 120):
        fits = MatchDelayFits("Subscriptions")
        for publications in range(300, 320):
            fits.note(subscriptions, 13.2 * publications, 8e-5 * subscriptions * publications, publications)
            report = {"subscriptions": subscriptions, "input_rate": 96.0, "output_rate": 1267.0}
            found = reported_model({**fits.report(subscriptions), **report})
            assert isinstance(found, SubscriptionMatchDelay), fits.report(subscriptions)
