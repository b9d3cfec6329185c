"""How many messages of each topic wait at each edge over time, by load reports; and when a queue is gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.core.policies.model.topic_load import reported_topics

Points = list[tuple[float, float]]


def cleared_at(points: Points, publishers: int = 1) -> float | None:
    """When nothing waited any more, after the queue was deepest; None if that has not come.

    A message of each publisher may be under way: reports and messages come at times of their own, and where both come
    at even intervals each report may meet the same ones.
    """
    at_most, deepest = max(points, key=lambda point: (point[1], -point[0]), default=(0.0, 0.0))
    after = [at for at, depth in points if deepest > publishers and at > at_most and depth <= publishers]
    return after[0] if after else None


class TopicDepths:
    """`points`: time and depth by edge and hash of the topic; of the subscriber with the least time left."""

    def __init__(self) -> None:
        self.points: dict[tuple[str, int], Points] = {}
        self._last: dict[str, tuple[Any, Any]] = {}

    def take(self, report: Mapping[str, Any], at: float) -> None:
        """Note the report of an edge at this time, once."""
        name, stamp = str(report["broker"]), (report["epoch"], report["seq"])
        if report.get("role") != "edge" or self._last.get(name) == stamp:
            return
        self._last[name] = stamp
        for topic in reported_topics(report):
            self.points.setdefault((name, topic.topic), []).append((at, float(topic.depth)))

    def of(self, edge: str, topic: int) -> Points:
        """The depths of a topic at an edge; `topic`: its hash."""
        return self.points.get((edge, topic), [])
