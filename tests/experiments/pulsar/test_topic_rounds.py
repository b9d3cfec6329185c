"""Rounds over topics: loads follow from the topics of an edge, and what a plan moves is counted."""

from __future__ import annotations

from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.experiments.pulsar.shedding import policy
from plimsoll.experiments.pulsar.topic_rounds import Round, TopicRounds, Topics, zipf_topics

FOUR = Partition.of_count(4).ranges


def made(rules: str = "Plimsoll") -> TopicRounds:
    """Bundles 0 and 1 at a, with usages of 0.5 and 0.3; bundle 2 at b, with 0.1."""
    topics = Topics({FOUR[0].low: 5.0, FOUR[1].low: 3.0, FOUR[2].low: 1.0}, dict.fromkeys([b.low for b in FOUR], 1))
    found = TopicRounds(policy(4, rules=rules), ("a", "b"), 1000.0, topics)
    for bundle, edge in zip(FOUR, "aab", strict=False):
        found.put(bundle.low, edge)
    return found


def test_usage_is_what_topics_send_by_bandwidth():
    assert [round(load.output_utilization, 6) for load in made().loads()] == [0.8, 0.1]
    (bundle,) = made().loads()[1].bundles
    assert (bundle.topics, bundle.sessions, bundle.input_rate, bundle.output_bytes) == (1, 1, 1.0, 100.0)


def test_a_round_moves_what_the_policy_says_and_counts_it():
    rounds = made()
    first = rounds.round()
    assert (first.usage, first.topics_moved, first.subscribers_moved) == ((0.5, 0.4), 1, 1)
    assert rounds.place[FOUR[1].low] == "b"
    assert rounds.bundles.owners[FOUR[1]] == "b"
    assert [rounds.round().topics_moved for _ in range(5)] == [0] * 5
    assert rounds.times == {FOUR[1].low: 1}


def test_by_the_letter_the_busiest_bundle_goes_and_another_comes_the_other_way():
    rounds = made("Text")
    assert rounds.round().usage == (0.3, 0.6)
    assert rounds.place[FOUR[0].low] == "b"


def test_topics_look_their_edge_up_by_bundle():
    rounds = TopicRounds(policy(4), ("a", "b"), 1000.0, Topics({5: 1.0, 6: 1.0, FOUR[1].low: 1.0}, {}))
    rounds.look_up()
    assert rounds.place[5] == rounds.place[6] != rounds.place[FOUR[1].low]


def test_figures_of_a_round():
    assert (Round((0.25, 0.75), 0, 0, 1).highest, Round((0.25, 0.75), 0, 0, 1).cov) == (0.75, 0.5)
    assert Round((0.0, 0.0), 0, 0, 1).cov == 0.0


def test_rates_fall_and_sum_up():
    topics = zipf_topics(50, 100.0, 3)
    rates = sorted(topics.rates.values(), reverse=True)
    assert round(sum(rates), 6) == 100.0
    assert round(rates[0] / rates[1], 6) == 2.0
    assert zipf_topics(50, 100.0, 3, seed=2).rates.keys() != topics.rates.keys()
