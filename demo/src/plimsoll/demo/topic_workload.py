"""The plan of a run with topics: Zipf rates, one publisher of each topic, and subscribers that ask for some of them.

Seeded, and made by every process of the demo from the same numbers, as the plan of quotes is.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from plimsoll.demo import quotes
from plimsoll.demo.crisis_workload import plan_crisis
from plimsoll.demo.workload import (
    DemoScenario,
    PlannedPublisher,
    PlannedSubscriber,
    TopicMessage,
    WorkloadPlan,
    plan_workload,
    with_rate_step,
)

ZIPF_EXPONENT: Final = 1.0
POPULARITY_EXPONENT: Final = 0.5
"""Of the topics that subscribers ask for: flatter, as no split divides the load of a single topic."""
FEWEST_TOPICS, MOST_TOPICS = 2, 5
"""How many topics a subscriber asks for, at least and at most."""
TEXT: Final = "x" * 120
"""A publication's text: with it some hundred bytes leave an edge with each delivery."""


def plan_scenario(scenario: DemoScenario) -> WorkloadPlan:
    """The plan of a scenario: of the crisis world, of topics, or of quotes.

    Raises:
        QuotesError: the quotes are not available.
        ValueError: there are too few symbols or topics.

    """
    if scenario.crisis_speed:
        return plan_crisis(scenario)
    return plan_topics(scenario) if scenario.topics else plan_workload(scenario, quotes.load())


def zipf_rates(count: int, total_per_second: float) -> list[float]:
    """The rate of each rank, highest first: the share of rank r is proportional to 1 / r."""
    weights = _zipf_weights(count, ZIPF_EXPONENT)
    return [total_per_second * weight / sum(weights) for weight in weights]


def _zipf_weights(count: int, exponent: float) -> list[float]:
    return [rank**-exponent for rank in range(1, count + 1)]


def plan_topics(scenario: DemoScenario) -> WorkloadPlan:
    """One publisher of each topic; subscribers ask for more popular topics more often.

    Raises:
        ValueError: there are fewer topics than a subscriber may ask for.

    """
    if scenario.topics < MOST_TOPICS:
        raise ValueError(f"a subscriber asks for up to {MOST_TOPICS} topics, and there are only {scenario.topics}")
    draw = random.Random(scenario.seed)  # noqa: S311  # a seeded plan, no secret
    names = [f"topic-{number:03}" for number in range(scenario.topics)]
    draw.shuffle(names)  # so that the name does not give away the rank
    rates = zipf_rates(scenario.topics, scenario.topic_rate_per_second)
    publishers = tuple(_publisher(name, rate, draw) for name, rate in zip(names, rates, strict=True))
    return WorkloadPlan(with_rate_step(publishers, scenario, draw), _subscribers(scenario, names, draw))


def _publisher(topic: str, rate: float, draw: random.Random) -> PlannedPublisher:
    return PlannedPublisher(f"of-{topic}", topic, 60.0 * rate, draw.random() / rate, (TopicMessage(topic, TEXT),))


def _subscribers(scenario: DemoScenario, names: Sequence[str], draw: random.Random) -> tuple[PlannedSubscriber, ...]:
    wanted = _zipf_weights(len(names), POPULARITY_EXPONENT)
    first, last = (share * scenario.seconds for share in (scenario.join_from, scenario.join_to))
    times = sorted(draw.uniform(first, last) for _ in range(scenario.subscribers))
    return tuple(
        PlannedSubscriber(f"subscriber-{number:03}", "topics", False, (), at, _asked(names, wanted, draw))
        for number, at in enumerate(times)
    )


def _asked(names: Sequence[str], weights: Sequence[float], draw: random.Random) -> tuple[str, ...]:
    """Topics without repetition, in the order of their drawing."""
    count = draw.randint(FEWEST_TOPICS, MOST_TOPICS)
    found: dict[str, None] = {}
    while len(found) < count:
        found[draw.choices(names, weights)[0]] = None
    return tuple(found)
