"""The emergency scenario of BAD's prototype: reports of eight types, 200 shelters, seven channels, 400 subscribers.

The slides give the channels with their periods, and the counts. Not given, and ours: a plane of 4 x 4 areas, near means
an area and those around it, `user` is the area of the subscriber, a shelter adds 100 bytes to a result, subscribers
gather around three places, and they do not move about (in the prototype the ONE simulator moves them).
"""

from __future__ import annotations

import itertools
import random
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.experiments.bad.channels import (
    ChannelSubscriber,
    ChannelWorld,
    Parameters,
    Point,
    Results,
    asked_for,
    gathered,
)

AREAS_PER_SIDE: Final = 4
TYPES: Final = 8
SHELTER_BYTES: Final = 100
REPORT_BYTES: Final = (200, 700)
CHANNELS_EACH: Final = (1, 5)
SUBSCRIPTIONS_EACH: Final = (1, 3)
GATHERINGS: Final = ((0.2, 0.3), (0.7, 0.8), (0.8, 0.2))
GATHERING_DEVIATION: Final = 0.12
BROKER_PLACES: Final = ((0.2, 0.2), (0.8, 0.8), (0.2, 0.8), (0.8, 0.2), (0.5, 0.5))


@dataclass(frozen=True, slots=True)
class Channel:
    """`parameters`: of event, location, user. `period_seconds`: between two runs. `shelters`: results have them."""

    name: str
    parameters: tuple[str, ...]
    period_seconds: float
    shelters: bool = False


CHANNELS: Final = (
    Channel("Emergency of Type", ("event",), 10),
    Channel("Emergency at Location", ("location",), 20),
    Channel("Emergency Near Me", ("event", "user"), 10),
    Channel("Emergency of Type Near Me", ("event", "user"), 10),
    Channel("Emergency of Type at Location", ("event", "location"), 30),
    Channel("Emergency of Type with Shelter Near Me", ("event", "user"), 10, shelters=True),
    Channel("Emergency of Type at Location with Shelter", ("event", "location"), 30, shelters=True),
)


@dataclass(frozen=True, slots=True)
class EmergencyPlan:
    """The counts of the scenario. Subscribers join at random in the time up to `joined_seconds`."""

    subscribers: int = 400
    reports: int = 10_000
    shelters: int = 200
    seconds: float = 1800.0
    joining_from: float = 15.0
    joined_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class EmergencyReport:
    """A report that a publisher feeds into the data cluster."""

    at: float
    event: int
    area: int
    size_bytes: int


def area_of(at: Point) -> int:
    """The area of a place."""
    x, y = (min(int(each * AREAS_PER_SIDE), AREAS_PER_SIDE - 1) for each in at)
    return y * AREAS_PER_SIDE + x


def near(area: int) -> list[int]:
    """An area and those around it."""
    y, x = divmod(area, AREAS_PER_SIDE)
    return [
        other for other in range(AREAS_PER_SIDE**2)
        if abs(other // AREAS_PER_SIDE - y) <= 1 and abs(other % AREAS_PER_SIDE - x) <= 1
    ]  # fmt: skip


def emergency_world(plan: EmergencyPlan, seed: int) -> ChannelWorld:
    """The world of one seed."""
    subscribers = _subscribers(plan, random.Random(f"{seed} subscribers"))
    reports = _reports(plan, random.Random(f"{seed} reports"))
    drawn = random.Random(f"{seed} shelters")
    shelters = [drawn.randrange(AREAS_PER_SIDE**2) for _ in range(plan.shelters)]
    phases = random.Random(f"{seed} phases")
    by_name = {channel.name: channel for channel in CHANNELS}
    results = {
        one: _results(by_name[one.channel], dict(one.values), reports, shelters, plan.seconds, phases)
        for one in asked_for(subscribers)
    }
    brokers = {f"b{number}": at for number, at in enumerate(BROKER_PLACES, 1)}
    return ChannelWorld(brokers, subscribers, results, plan.seconds)


def _subscribers(plan: EmergencyPlan, drawn: random.Random) -> list[ChannelSubscriber]:
    found = []
    for number in range(plan.subscribers):
        at = gathered(drawn, GATHERINGS, GATHERING_DEVIATION)
        channels = drawn.sample(CHANNELS, drawn.randint(*CHANNELS_EACH))
        wanted = {one for channel in channels for one in _chosen(channel, area_of(at), drawn)}
        joins_at = drawn.uniform(plan.joining_from, plan.joined_seconds)
        found.append(ChannelSubscriber(f"s{number:03}", at, joins_at, tuple(sorted(wanted, key=lambda one: one.text))))
    return found


def _chosen(channel: Channel, home: int, drawn: random.Random) -> Iterable[Parameters]:
    """One to three subscriptions of a channel; those of `user` are all for the subscriber's own area."""
    domains = {"event": range(TYPES), "location": range(AREAS_PER_SIDE**2), "user": (home,)}
    values = list(itertools.product(*(domains[name] for name in channel.parameters)))
    for chosen in drawn.sample(values, drawn.randint(*SUBSCRIPTIONS_EACH)):
        yield Parameters(channel.name, tuple(zip(channel.parameters, chosen, strict=True)))


def _reports(plan: EmergencyPlan, drawn: random.Random) -> list[EmergencyReport]:
    found = [
        EmergencyReport(
            drawn.uniform(0.0, plan.seconds), drawn.randrange(TYPES), drawn.randrange(AREAS_PER_SIDE**2),
            drawn.randint(*REPORT_BYTES),
        )
        for _ in range(plan.reports)
    ]  # fmt: skip
    return sorted(found, key=lambda each: each.at)


def _results(
    channel: Channel, values: dict[str, int], reports: Sequence[EmergencyReport], shelters: Sequence[int],
    seconds: float, phases: random.Random,
) -> Results:  # fmt: skip
    """A result holds the reports since the last run that match; a run that finds none has no result."""
    areas = _areas(values)
    matching = [r for r in reports if r.event == values.get("event", r.event) and r.area in areas]
    enrichment = SHELTER_BYTES * sum(each in areas for each in shelters) if channel.shelters else 0
    times, sizes = [], []
    at, after = phases.uniform(0.0, channel.period_seconds), 0
    ends = [each.at for each in matching]
    while at < seconds:
        before, after = after, bisect_right(ends, at)
        if after > before:
            times.append(at)
            sizes.append(sum(each.size_bytes for each in matching[before:after]) + enrichment)
        at += channel.period_seconds
    return Results(tuple(times), tuple(sizes))


def _areas(values: dict[str, int]) -> frozenset[int]:
    if "user" in values:
        return frozenset(near(values["user"]))
    return frozenset([values["location"]] if "location" in values else range(AREAS_PER_SIDE**2))
