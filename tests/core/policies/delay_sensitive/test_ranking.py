"""The order in which topics leave: a fixture with all groups of Table IV."""

import pytest
from tests.core.policies.delay_sensitive.small import Topic, sample

from plimsoll.core.policies.delay_sensitive.fleet import deadline_fleet
from plimsoll.core.policies.delay_sensitive.ranking import publisher_group, queue_group, ranked_topics

TOPICS = [
    Topic(1, required=1.0, remote=0.0),
    Topic(2, required=2.0, remote=0.0),
    Topic(3, required=1.0, remote=1.0, depth=4),
    Topic(4, required=2.0, remote=1.0, depth=90),
    Topic(5, required=1.0, remote=0.5),
    Topic(6, required=2.0, remote=0.5, depth=3),
    Topic(7, required=1.0, rate=0.0, remote=0.0),
    Topic(8, rate=0.0),
]
ENDANGERED = frozenset({4})


@pytest.fixture
def topics():
    return list(deadline_fleet(sample({"a": TOPICS, "b": []})).served["a"].values())


@pytest.mark.parametrize(
    ("metric", "order"),
    [
        # Sr, Sr-l, Sl, Sn; those that may wait longer first
        ("downlink", [4, 3, 6, 5, 2, 1, 8, 7]),
        ("uplink", [4, 3, 6, 5, 2, 1, 8, 7]),
        # Sn before all others, which are equal
        ("matching", [8, 7, 2, 4, 6, 1, 3, 5]),
        # Sempty, Sw-no, Soverload
        ("depth", [8, 2, 1, 5, 7, 6, 3, 4]),
    ],
)
def test_the_order_of_table_iv(topics, metric, order):
    assert [topic.load.topic for topic in ranked_topics(topics, metric, ENDANGERED)] == order
    assert [topic.load.topic for topic in ranked_topics(reversed(topics), metric, ENDANGERED)] == order


def test_groups(topics):
    assert [publisher_group(topic) for topic in topics] == ["Sl", "Sl", "Sr", "Sr", "Sr-l", "Sr-l", "Sn", "Sn"]
    assert [queue_group(topic, ENDANGERED) for topic in topics] == [
        "Sempty", "Sempty", "Sw-no", "Soverload", "Sempty", "Sw-no", "Sempty", "Sempty",
    ]  # fmt: skip
