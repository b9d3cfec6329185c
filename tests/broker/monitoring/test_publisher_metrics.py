"""Metrics of moves of publishers: outcomes from a head that has moved some, and zeros elsewhere."""

from __future__ import annotations

import pytest
from prometheus_client.core import Metric
from tests.core.client.test_publisher_moves import CHAIN, Moves
from tests.core.fleet import tree

from plimsoll.broker.monitoring.publisher_metrics import OUTCOMES, PREFIX, PublisherMoveCounts, publisher_metrics
from plimsoll.core.protocol import messages as msg


def values(metrics: list[Metric]) -> dict[str, float]:
    return {
        sample.name.removeprefix(PREFIX).removesuffix("_total") + "".join(sample.labels.values()): sample.value
        for metric in metrics for sample in metric.samples
    }  # fmt: skip


def test_a_head_that_moves_publishers_says_how_many():
    moves = Moves(tree(CHAIN))
    moves.fleet.freeze("b")
    moves.command("a", "b")
    moves.fleet.run(0.1)
    head = moves.fleet.head("a")
    assert PublisherMoveCounts.of(head).moving == 2
    moves.fleet.thaw("b")
    moves.run(3.0)
    address = [msg.HeadAddress("c", "mem://c", "")]
    moves.mediator.say_control("a", msg.ClusterMembers(["a1"], [], head.epoch, address))
    moves.fleet.run(0.1)
    found = values(list(publisher_metrics(PublisherMoveCounts.of(head))))
    ended = moves.outcome("1.1")
    assert found["publisher_movesmoved"] + found["publisher_movesstayed"] == len(ended) == 2
    assert (found["moving_publishers"], found["cordoned"]) == (0, 1)


def test_each_outcome_has_a_series_from_the_start():
    found = values(list(publisher_metrics(PublisherMoveCounts())))
    assert {name: found[f"publisher_moves{name}"] for name in OUTCOMES} == dict.fromkeys(OUTCOMES, 0)
    assert found["publishers_sent_elsewhere"] == 0


@pytest.mark.parametrize("name", ["moved", "unknown"])
def test_outcomes_are_counted(name: str):
    counts = PublisherMoveCounts(arriving=3, sent_elsewhere=4, outcomes={name: 5})
    found = values(list(publisher_metrics(counts)))
    assert (found[f"publisher_moves{name}"], found["arriving_publishers"], found["publishers_sent_elsewhere"]) == (
        5,
        3,
        4,
    )
