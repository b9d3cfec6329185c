"""The world of BAD's simulation: ten brokers, 10,000 subscribers, ten channels with 100 back-end subscriptions each.

The slides give the counts, and that channels differ in period and in the size of their results. Not given, and ours:
periods and sizes, where brokers and subscribers are, that all join in the first ten seconds, and that back-end
subscriptions are equally popular.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from plimsoll.experiments.bad.channels import (
    ChannelSubscriber,
    ChannelWorld,
    Parameters,
    Results,
    asked_for,
    gathered,
)
from plimsoll.experiments.bad.emergency_world import GATHERING_DEVIATION, GATHERINGS

CHANNEL_PERIODS: Final = (10.0, 10.0, 20.0, 20.0, 30.0, 30.0, 40.0, 40.0, 60.0, 60.0)
CHANNEL_BYTES: Final = (200, 400, 600, 800, 1000, 1200, 1400, 1600, 1800, 2000)
SIZE_SPREAD: Final = 0.5
"""A result is between this part smaller and this part larger than the mean of its channel."""


@dataclass(frozen=True, slots=True)
class LargePlan:
    """The counts of the simulation. Subscribers join at random in the time up to `joined_seconds`."""

    subscribers: int = 10_000
    brokers: int = 10
    parameters_per_channel: int = 100
    subscriptions_each: tuple[int, int] = (10, 30)
    seconds: float = 1800.0
    joined_seconds: float = 10.0


def large_world(plan: LargePlan, seed: int) -> ChannelWorld:
    """The world of one seed."""
    drawn = random.Random(f"{seed} subscribers")
    brokers = {f"b{number:02}": (drawn.random(), drawn.random()) for number in range(1, plan.brokers + 1)}
    wishes = [
        Parameters(f"c{channel}", (("value", value),))
        for channel in range(len(CHANNEL_PERIODS)) for value in range(plan.parameters_per_channel)
    ]  # fmt: skip
    subscribers = [
        ChannelSubscriber(
            f"s{number:05}", gathered(drawn, GATHERINGS, GATHERING_DEVIATION),
            drawn.uniform(0.0, plan.joined_seconds),
            tuple(sorted(drawn.sample(wishes, drawn.randint(*plan.subscriptions_each)), key=lambda one: one.text)),
        )
        for number in range(plan.subscribers)
    ]  # fmt: skip
    sizes = random.Random(f"{seed} results")
    results = {one: _results(int(one.channel[1:]), plan.seconds, sizes) for one in asked_for(subscribers)}
    return ChannelWorld(brokers, subscribers, results, plan.seconds)


def _results(channel: int, seconds: float, drawn: random.Random) -> Results:
    period, mean = CHANNEL_PERIODS[channel], CHANNEL_BYTES[channel]
    first = drawn.uniform(0.0, period)
    count = max(0, int((seconds - first) // period) + 1)
    low, high = round(mean * (1 - SIZE_SPREAD)), round(mean * (1 + SIZE_SPREAD))
    return Results(
        tuple(first + number * period for number in range(count)),
        tuple(drawn.randint(low, high) for _ in range(count)),
    )
