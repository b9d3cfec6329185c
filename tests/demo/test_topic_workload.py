"""The plan of a run with topics: Zipf rates, seeded, one publisher of each topic, and subscribers of some."""

import pytest

from plimsoll.demo import topic_workload
from plimsoll.demo.bundle_demo import BUNDLE_SCENARIO
from plimsoll.demo.topic_workload import plan_scenario, plan_topics, zipf_rates
from plimsoll.demo.workload import DemoScenario


def test_rates_fall_with_the_rank_and_add_up():
    rates = zipf_rates(200, 170.0)
    assert sum(rates) == pytest.approx(170.0)
    assert rates[0] == pytest.approx(2 * rates[1])
    assert rates[0] == pytest.approx(200 * rates[199])


def test_each_topic_has_one_publisher_and_the_rates_of_its_rank():
    plan = plan_topics(BUNDLE_SCENARIO)
    assert len({each.symbol for each in plan.publishers}) == 200
    assert [each.rate_per_minute / 60 for each in plan.publishers] == pytest.approx(zipf_rates(200, 200.0))
    assert all(each.quote(7).attributes()["topic"] == each.symbol for each in plan.publishers)
    assert {each.faster_at for each in plan.publishers} == {BUNDLE_SCENARIO.step_seconds}


def test_subscribers_ask_for_some_topics_each_once_and_the_popular_ones_more_often():
    plan = plan_topics(BUNDLE_SCENARIO)
    assert len(plan.subscribers) == 120
    for each in plan.subscribers:
        assert topic_workload.FEWEST_TOPICS <= len(set(each.topics)) == len(each.topics) <= topic_workload.MOST_TOPICS
        assert 0.0 <= each.joins_at <= 0.05 * BUNDLE_SCENARIO.seconds
    ranked = [each.symbol for each in plan.publishers]
    asked = [topic for each in plan.subscribers for topic in each.topics]
    assert sum(topic in ranked[:50] for topic in asked) > sum(topic in ranked[50:100] for topic in asked)


def test_a_seed_is_a_plan():
    other = DemoScenario(topics=200, topic_rate_per_second=200.0, seed=7)
    assert plan_topics(BUNDLE_SCENARIO) == plan_topics(BUNDLE_SCENARIO)
    assert plan_topics(other) != plan_topics(DemoScenario(topics=200, topic_rate_per_second=200.0, seed=8))


def test_a_scenario_says_whether_it_is_of_topics_or_of_quotes():
    assert plan_scenario(BUNDLE_SCENARIO).subscribers[0].topics
    assert not plan_scenario(DemoScenario(subscribers=3)).subscribers[0].topics


def test_there_must_be_as_many_topics_as_a_subscriber_may_ask_for():
    with pytest.raises(ValueError, match="there are only 4"):
        plan_topics(DemoScenario(topics=4, topic_rate_per_second=1.0))
