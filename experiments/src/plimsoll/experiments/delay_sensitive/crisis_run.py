"""One run of the crisis world: use of the uplinks and depths of queues over time, moves, and deadlines missed."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plimsoll.core.policies.model.topic_load import reported_topics
from plimsoll.core.protocol.messages.delivery_prefix import PREFIX_BYTES
from plimsoll.demo import crisis_tables as tables
from plimsoll.demo.analysis.topic_depths import Points, cleared_at
from plimsoll.demo.analysis.topic_moves import NUMBERS, TopicMove, topic_moves, topic_number
from plimsoll.experiments.delay_sensitive import crisis_world as world
from plimsoll.simulator.queueing.fleet import QueueingFleet


@dataclass
class CrisisRun:
    """`uplinks`: what was to be sent by what an edge can send, above 1 while queues grow; without loads of topics, what
    was sent. `depths`: of a topic at an edge, by both; `late`: deliveries after their deadline, by topic; `places`:
    edges of each topic in the end.
    """

    name: str
    uplinks: dict[str, Points] = field(default_factory=lambda: defaultdict(list))
    depths: dict[tuple[str, int], Points] = field(default_factory=lambda: defaultdict(list))
    moves: list[TopicMove] = field(default_factory=list)
    late: dict[int, int] = field(default_factory=dict)
    places: dict[int, list[str]] = field(default_factory=dict)
    delivered: int = 0
    sessions: int = 0
    processor_seconds: float = 0.0

    def take(self, report: Mapping[str, Any], _: float) -> None:
        """Note a load report of an edge at the time when it was made."""
        if report["role"] != "edge":
            return
        name, at = str(report["broker"]), int(report["clock_us"]) / 1e6
        topics = reported_topics(report)
        due = sum(topic.output_bytes + PREFIX_BYTES * topic.output_rate for topic in topics)
        sent = float(report["output_utilization"])
        self.uplinks[name].append((at, max(sent, due / (tables.EDGES[name].megabits * 1e6 / 8))))
        for topic in topics:
            self.depths[name, NUMBERS[topic.topic]].append((at, float(topic.depth)))

    def cleared_at(self, edge: str, topic: int) -> float | None:
        """When nothing of a topic waited any more, after its queue was deepest; None if that has not come."""
        return cleared_at(self.depths.get((edge, topic), []), tables.TOPICS[topic].publishers)

    def row(self) -> dict[str, Any]:
        """What a reader compares."""
        return {
            "run": self.name, "sessions": self.sessions, "delivered": self.delivered,
            "moved": sum(sum(each.topics.values()) for each in self.moves),
            "late": sum(self.late.values()), "late_by_topic": {str(n): count for n, count in sorted(self.late.items())},
            "moves": [
                {"at": round(each.at, 2), "ended_at": round(each.ended_at, 2), "from": each.source, "to": each.target,
                 "topics": {str(number): count for number, count in each.topics.items()}}
                for each in self.moves
            ],
            "places": {str(number): edges for number, edges in sorted(self.places.items())},
            "processor_seconds": round(self.processor_seconds, 2),
        }  # fmt: skip


def run_crisis(
    name: str,
    policy: Mapping[str, Any] | None,
    seed: int,
    places: Mapping[int, str],
    times: world.CrisisTimes,
    *,
    prefer: str = "",
    balanced_from: float = 0.0,
) -> CrisisRun:
    """Run the world to its end. `prefer`: the edge that all subscribers join first, if it is not by topic.

    `balanced_from`: the second before which the mediator has no policy; edges and heads have it from the beginning.
    """
    began, found = time.process_time(), CrisisRun(name)
    first = dict.fromkeys(tables.TOPICS, prefer) if prefer else places
    fleet = QueueingFleet(
        world.resources(policy), world.traffic(seed, first, times), seed=seed, links=times.links,
        on_report=found.take, spread_reports=False, fair_by_topic=True, required=world.REQUIRED,
        mediator_pauses=world.PAUSES,
    )  # fmt: skip
    own, fleet.mediator.policies = fleet.mediator.policies, {}
    fleet.run(balanced_from)
    fleet.mediator.policies = own
    fleet.run(times.ends_at)
    found.late = {tables.number_of(topic): count for topic, count in fleet.counts.late.items()}
    found.delivered, found.sessions = fleet.counts.delivered, len(fleet.mediator.objects)
    sessions = (one.session for one in fleet.mediator.objects.values())
    found.moves = topic_moves((one for one in sessions if one is not None), fleet.now)
    for subscriber, edge in fleet.owners().items():
        number = topic_number(subscriber)
        if edge not in found.places.setdefault(number, []):
            found.places[number] = sorted([*found.places[number], edge])
    found.processor_seconds = time.process_time() - began
    return found


def sampled(points: Sequence[tuple[float, float]]) -> Points:
    """One point for each second: the last of it."""
    found = {int(at): (float(int(at)), value) for at, value in points}
    return [found[at] for at in sorted(found)]
