"""Channels: equal parameters are one back-end subscription, and a result matches exactly that one."""

import random

from plimsoll.core import predicates
from plimsoll.experiments.bad.channels import ChannelSubscriber, ChannelWorld, Parameters, Results, asked_for, gathered

NEAR, TYPE = Parameters("Near Me", (("event", 3), ("user", 5))), Parameters("Type", (("event", 3),))
SUBSCRIBERS = [
    ChannelSubscriber("s1", (0.1, 0.1), 1.0, (NEAR, TYPE)),
    ChannelSubscriber("s2", (0.9, 0.9), 2.0, (TYPE,)),
]
WORLD = ChannelWorld(
    {"b1": (0.0, 0.0)}, SUBSCRIBERS, {NEAR: Results((1.0,), (10,)), TYPE: Results((), ())}, 60.0
)  # fmt: skip


def test_equal_parameters_are_one_back_end_subscription():
    assert (WORLD.front_end, WORLD.back_end) == (3, 2)
    assert asked_for(SUBSCRIBERS) == [NEAR, TYPE]


def test_a_result_matches_its_own_subscription_alone():
    for one in (NEAR, TYPE):
        matching = [each for each in (NEAR, TYPE) if predicates.parse(each.text).matches(one.attributes)]
        assert matching == [one]


def test_traffic_has_a_publisher_for_each_subscription_with_results():
    traffic = WORLD.traffic()
    assert [(each.times, each.payload_sizes) for each in traffic.publishers] == [((1.0,), (10,))]
    assert [(each.location, each.joins_at) for each in traffic.subscribers] == [((0.1, 0.1), 1.0), ((0.9, 0.9), 2.0)]


def test_places_are_in_the_unit_square():
    drawn = random.Random(1)
    assert all(0.0 <= each < 1.0 for _ in range(500) for each in gathered(drawn, ((0.0, 1.0),), 0.3))
