"""Depths of topics over time, by load reports, and when a queue is gone."""

from __future__ import annotations

from plimsoll.core.policies.model.topic_load import TopicLoad, topic_report
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.demo.analysis.topic_depths import TopicDepths, cleared_at

TOPIC = topic_hash("t8")


def report(seq: int, depth: int, role: str = "edge") -> dict[str, object]:
    return {"broker": "b1", "role": role, "epoch": 1, "seq": seq, **topic_report([TopicLoad(TOPIC, "t8", depth=depth)])}


def test_each_report_counts_once():
    found = TopicDepths()
    for at, seq, depth in ((1.0, 1, 0), (1.2, 1, 0), (2.0, 2, 7)):
        found.take(report(seq, depth), at)
    found.take(report(3, 9, role="head"), 3.0)
    assert found.of("b1", TOPIC) == [(1.0, 0.0), (2.0, 7.0)]
    assert found.of("b2", TOPIC) == []


def test_a_queue_is_gone_once_it_has_been_deepest():
    assert cleared_at([(1.0, 0.0), (2.0, 9.0), (3.0, 4.0), (4.0, 1.0), (5.0, 0.0)]) == 4.0
    assert cleared_at([(1.0, 0.0), (2.0, 9.0), (3.0, 4.0)]) is None
    assert cleared_at([(1.0, 1.0), (2.0, 0.0)]) is None, "a queue that never was cannot be gone"
    assert cleared_at([]) is None
