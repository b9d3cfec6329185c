"""Publishers follow their subscribers where all of these are behind one neighbouring head, and stay otherwise."""

from __future__ import annotations

import pytest

from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad, publisher_report, reported_publishers
from plimsoll.core.policies.publisher_follow import publishers_to_follow


def row(
    name: str, topic: int | None, *, local: float = 0.0, remote: float = 5.0, toward: str = "b"
) -> PublisherTopicLoad:
    return PublisherTopicLoad(name, topic, 5.0, 50.0, local, remote, local * 10, remote * 10, toward)


def test_all_behind_one_neighbour():
    loads = [row("p", 1), row("p", 2), row("q", 3, toward="c"), row("r", 4)]
    assert publishers_to_follow(loads) == {"b": ("p", "r"), "c": ("q",)}
    assert publishers_to_follow(reported_publishers(publisher_report(loads))) == {"b": ("p", "r"), "c": ("q",)}


@pytest.mark.parametrize(
    "loads",
    [
        [row("p", 1, local=1.0)],
        [row("p", 1), row("p", 2, local=1.0)],
        [row("p", 1, toward="")],
        [row("p", 1), row("p", 2, toward="c")],
        [row("p", 1, remote=0.0, toward="")],
        [row("p", None)],
        [row("p", 1), row("p", None)],
    ],
    ids=["local", "one-local", "several", "two-ways", "no-subscriber", "no-topic", "one-without-topic"],
)
def test_it_stays(loads: list[PublisherTopicLoad]):
    assert publishers_to_follow(loads) == {}


def test_a_topic_without_subscribers_keeps_no_publisher():
    assert publishers_to_follow([row("p", 1), row("p", 2, remote=0.0, toward="")]) == {"b": ("p",)}
