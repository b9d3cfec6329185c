"""The plan of a run of the crisis world in processes: Table VI, its time compressed, in fewer and larger messages.

Tao, Poslad, Bigham 2013, section V. At `speed` the bytes per second of every topic are `speed` times the text's; there
are `THINNING` times fewer messages, each as many times larger, so that this machine's processors do not decide.
Processes of one machine have no links to speak of, so what the text gives to links is taken off its latencies.
"""

from __future__ import annotations

import math
import random
from typing import Final

from plimsoll.core.protocol.messages.delivery_prefix import PREFIX_BYTES
from plimsoll.core.protocol.publication_size import payload_for
from plimsoll.core.spec.brokers import head_name
from plimsoll.demo import crisis_tables as tables
from plimsoll.demo.workload import (
    DemoScenario,
    PlannedPublisher,
    PlannedSubscriber,
    TopicMessage,
    WorkloadPlan,
)

THINNING: Final = 5


def required_seconds(speed: float) -> dict[int, float]:
    """Within which time of its publication a message of each topic is wanted, in a run at this speed."""
    return {number: (seconds - tables.LINK_SECONDS) / speed for number, seconds in tables.latencies().items()}


def plan_crisis(scenario: DemoScenario) -> WorkloadPlan:
    """Topics come one after the other, all subscribers of one at once, at the edges where figure 3 has them.

    Edges share their output among connections, and the text's among topics: each topic has a connection of its own.
    """
    draw = random.Random(f"{scenario.seed} crisis")  # noqa: S311  # a seeded plan, no secret
    begin, end = scenario.join_from * scenario.seconds, scenario.join_to * scenario.seconds
    publishers = tuple(
        _publisher(number, one, scenario, draw)
        for number, topic in tables.TOPICS.items() for one in range(topic.publishers)
    )  # fmt: skip
    subscribers = tuple(
        PlannedSubscriber(
            f"s{number}-{one}", "topics", False, (), begin + (end - begin) * number / len(tables.TOPICS),
            (tables.topic_name(number),), tables.GIVEN[number], tables.topic_name(number),
        )
        for number, topic in tables.TOPICS.items() for one in range(topic.subscribers)
    )  # fmt: skip
    return WorkloadPlan(publishers, subscribers)


def _publisher(number: int, one: int, scenario: DemoScenario, draw: random.Random) -> PlannedPublisher:
    topic, name, message = tables.TOPICS[number], f"p{number}-{one}", TopicMessage(tables.topic_name(number))
    rate = tables.PER_SECOND * scenario.crisis_speed / THINNING
    size = topic.size_bytes * THINNING - PREFIX_BYTES
    payload = payload_for(head_name(tables.CLUSTER), name, message.attributes(), size)
    bursts_at = scenario.step_seconds if number in tables.BURSTING else math.inf
    return PlannedPublisher(
        name, message.topic, 60.0 * rate, draw.random() / rate, (message,), bursts_at, scenario.step_factor, payload
    )
