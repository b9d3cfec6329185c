"""The order in which publishers leave an overloaded head: groups, allowed waiting times, bundles of a topic."""

from __future__ import annotations

import math
import random

import pytest

from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad
from plimsoll.core.policies.publisher_priority import (
    HeadMetric,
    PublisherGroup,
    bundles_to_offload,
    group_of,
    publishers_to_offload,
)

NONE, REMOTE, BOTH, LOCAL = (0.0, 0.0), (0.0, 10.0), (10.0, 10.0), (10.0, 0.0)


def load(
    name: str, topic: int | None, takers: tuple[float, float], size: float = 100.0, out: float = 1.0
) -> PublisherTopicLoad:
    local, remote = takers
    return PublisherTopicLoad(name, topic, 10.0, size, local, remote, size * out * (local > 0), size * (remote > 0))


# Two topics of each group, a strict and a lenient one, and a third without a deadline; two publishers of some.
ALLOWED = {10: 0.2, 11: 0.9, 20: 0.3, 21: 0.8, 30: 0.1, 31: 0.7, 40: 0.25, 41: 0.6}
LOADS = [
    load("n-strict", 10, NONE), load("n-lenient", 11, NONE), load("n-free", 12, NONE),
    load("r-strict", 20, REMOTE), load("r-lenient-small", 21, REMOTE, 50.0), load("r-lenient-large", 21, REMOTE, 70.0),
    load("r-free", 22, REMOTE),
    load("b-strict", 30, BOTH), load("b-lenient", 31, BOTH), load("b-free", 32, BOTH),
    load("l-strict", 40, LOCAL), load("l-lenient", 41, LOCAL), load("l-free", 42, LOCAL),
]  # fmt: skip
PN = ["n-free", "n-lenient", "n-strict"]
PR = ["r-free", "r-lenient-large", "r-lenient-small", "r-strict"]
PRL = ["b-free", "b-lenient", "b-strict"]
PL = ["l-free", "l-lenient", "l-strict"]


@pytest.mark.parametrize(("metric", "order"), [("downlink", [*PN, *PR, *PRL, *PL]), ("uplink", [*PR, *PRL, *PL, *PN])])
def test_all_groups_in_the_order_of_the_text(metric: HeadMetric, order: list[str]):
    for seed in range(20):
        shuffled = random.Random(seed).sample(LOADS, len(LOADS))
        assert [one.publisher for one in publishers_to_offload(shuffled, metric, ALLOWED)] == order


def test_publishers_of_a_topic_are_one_bundle():
    bundles = bundles_to_offload(LOADS, "uplink", ALLOWED)
    assert [bundle.topic for bundle in bundles] == [22, 21, 20, 32, 31, 30, 42, 41, 40, 12, 11, 10]
    assert [one.publisher for one in bundles[1].publishers] == ["r-lenient-large", "r-lenient-small"]
    assert (bundles[0].group, bundles[0].allowed_seconds) == ("Pr", math.inf)


def test_a_bundle_with_local_and_with_remote_subscribers_is_of_both():
    mixed = [load("a", 1, LOCAL), load("b", 1, REMOTE), load("c", 2, LOCAL)]
    assert [(each.topic, each.group) for each in bundles_to_offload(mixed, "downlink", {})] == [(1, "Pr-l"), (2, "Pl")]
    assert [one.publisher for one in publishers_to_offload(mixed, "downlink", {})] == ["b", "a", "c"], "singly: by each"


def test_a_publisher_of_several_topics_waits_as_its_strictest_allows():
    several = [load("p", 1, NONE, 10.0), load("p", 2, REMOTE, 90.0), load("q", 3, REMOTE)]
    first, second = publishers_to_offload(several, "uplink", {1: 0.1, 2: 0.9, 3: 0.5})
    assert (first.publisher, second.publisher) == ("q", "p")
    assert (second.topic, second.topics, second.group, second.allowed_seconds) == (2, frozenset({1, 2}), "Pr", 0.1)
    assert (second.input_rate, second.input_bytes, second.output_bytes) == (20.0, 100.0, 90.0)


def test_within_a_topic_the_overloaded_metric_decides():
    wide = [load("narrow", 1, LOCAL, 60.0, out=4.0), load("broad", 1, LOCAL, 100.0, out=1.0)]
    assert [one.publisher for one in publishers_to_offload(wide, "downlink", {})] == ["broad", "narrow"]
    assert [one.publisher for one in publishers_to_offload(wide, "uplink", {})] == ["narrow", "broad"]


def test_publishers_without_a_topic_are_bundles_of_their_own():
    single = [load("b", None, REMOTE), load("a", None, REMOTE), load("c", 1, REMOTE)]
    bundles = bundles_to_offload(single, "uplink", {1: 9.0})
    assert [[one.publisher for one in bundle.publishers] for bundle in bundles] == [["a"], ["b"], ["c"]]


@pytest.mark.parametrize(
    ("is_local", "is_remote", "group"),
    [(False, False, "Pn"), (False, True, "Pr"), (True, True, "Pr-l"), (True, False, "Pl")],
)
def test_the_groups(*, is_local: bool, is_remote: bool, group: PublisherGroup):
    assert group_of(is_local=is_local, is_remote=is_remote) == group


def test_nothing_is_ordered_of_nothing():
    assert publishers_to_offload([], "uplink", {}) == () == bundles_to_offload([], "downlink", {})
