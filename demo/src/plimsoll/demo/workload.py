"""Who publishes what and when, and who subscribes to what: a seeded plan, made before the run from the quotes alone.

The mix is that of PADRES 2006, sections 6.1 and 6.2: publishers of one stock each at a random rate, six templates of
subscriptions in stated shares, and a quarter of the subscribers with a subscription that no publication matches. Every
process of the demo makes the plan from the same numbers, so it need not be sent.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import msgspec

from plimsoll.core.verify.observations import Triple
from plimsoll.demo.quotes import Quote, Quotes

PAPER_RATE_PER_MINUTE: Final = 60.0
"""A publisher's rate is drawn between 0 and this. PADRES 2006, 6.2."""
PAPER_JOIN_SECONDS: Final = (10.0, 1010.0)
"""Subscribers join between these times of the paper's experiment."""

TOPIC: Final = "topic"
"""The attribute that names the topic, as in `examples/bundles`."""

Template = tuple[str, int, tuple[str, str] | None, bool]
"""Name, share in per cent, attribute and operator of the threshold if there is one, whether the symbol is constrained.
"""

TEMPLATES: Final[tuple[Template, ...]] = (  # PADRES 2006, 6.1
    ("symbol-high", 20, ("high", ">"), True),
    ("symbol-low", 20, ("low", "<"), True),
    ("symbol-volume", 20, ("volume", ">"), True),
    ("symbol", 34, None, True),
    ("volume", 5, ("volume", ">"), False),
    ("all", 1, None, False),
)


class DemoScenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sizes of a run. `seconds`: from the first publication to the last.

    `rate_factor` multiplies the paper's publication rates. Subscribers join evenly between `join_from` and `join_to`,
    as shares of the run; at the edge `prefer` if one is named, else where the head places them. At the share `step_at`
    of the run, if it is below 1, `step_publishers` of the publishers begin to publish `step_factor` times as fast.
    With `topics` the run is of topics, not of quotes: one publisher each, `topic_rate_per_second` over all of them.
    With `crisis_speed` it is of the crisis world, this many times as fast as in the text.
    """

    seconds: float = 60.0
    publishers: int = 40
    subscribers: int = 2000
    seed: int = 2006
    rate_factor: float = 4.0
    zero_traffic: float = 0.25
    join_from: float = 0.03
    join_to: float = 0.6
    prefer: str = ""
    step_at: float = 1.0
    step_publishers: float = 0.5
    step_factor: float = 2.0
    topics: int = 0
    topic_rate_per_second: float = 0.0
    crisis_speed: float = 0.0

    @property
    def join_factor(self) -> float:
        """How many times faster than in the paper subscribers join."""
        first, last = PAPER_JOIN_SECONDS
        return (last - first) / (self.seconds * (self.join_to - self.join_from))

    @property
    def step_seconds(self) -> float:
        """When some publishers begin to publish faster; infinite if none does."""
        return self.seconds * self.step_at if self.step_at < 1.0 else math.inf


class PlannedItem(Protocol):
    """What a publisher publishes: a quote, or a message to a topic."""

    def attributes(self) -> dict[str, str | int | float | bool]:
        """The attributes of its publication."""


@dataclass(frozen=True, slots=True)
class TopicMessage:
    """What is published to a topic. `text`: an attribute that makes it longer; without one there is none."""

    topic: str
    text: str = ""

    def attributes(self) -> dict[str, str | int | float | bool]:
        """The attributes of its publication."""
        return {TOPIC: self.topic, "text": self.text} if self.text else {TOPIC: self.topic}


@dataclass(frozen=True, slots=True)
class PlannedPublisher:
    """Replays the quotes of one symbol in order, one every `interval_seconds`, first at `first_at`.

    From `faster_at` on it is `factor` times as fast. Times are seconds from the start of the traffic. `payload_bytes`:
    of each publication.
    """

    name: str
    symbol: str
    rate_per_minute: float
    first_at: float
    quotes: tuple[PlannedItem, ...]
    faster_at: float = math.inf
    factor: float = 1.0
    payload_bytes: int = 0

    @property
    def interval_seconds(self) -> float:
        return 60.0 / self.rate_per_minute

    def after(self, at: float) -> float:
        """The time of the publication after the one at `at`: the rest of an interval goes by faster, too."""
        if at >= self.faster_at:
            return at + self.interval_seconds / self.factor
        due = at + self.interval_seconds
        return due if due <= self.faster_at else self.faster_at + (due - self.faster_at) / self.factor

    def quote(self, number: int) -> PlannedItem:
        """The quote of its `number`-th publication, from 0; after the last day it starts over."""
        return self.quotes[number % len(self.quotes)]


@dataclass(frozen=True, slots=True)
class PlannedSubscriber:
    """Joins at `joins_at` seconds from the start of the traffic, with one subscription, or one for each of `topics`.

    `prefer`: the edge that it would like, if that is not the scenario's. `connection`: it shares a connection with
    those of the same text; without one, with all others of its process.
    """

    name: str
    template: str
    zero_traffic: bool
    predicates: tuple[Triple, ...]
    joins_at: float
    topics: tuple[str, ...] = ()
    prefer: str = ""
    connection: str = ""

    @property
    def text(self) -> str:
        """The subscription in the subscription language."""
        return subscription_text(self.predicates)


@dataclass(frozen=True, slots=True)
class WorkloadPlan:
    """Publishers by name; subscribers by the time at which they join."""

    publishers: tuple[PlannedPublisher, ...]
    subscribers: tuple[PlannedSubscriber, ...]

    def subscribers_of(self, part: int, of: int) -> tuple[PlannedSubscriber, ...]:
        """Those of one of `of` processes: every `of`-th; those that share a named connection stay together."""
        names = sorted({each.connection for each in self.subscribers} - {""})
        places = {name: place for place, name in enumerate(names)}
        return tuple(
            one for place, one in enumerate(self.subscribers) if places.get(one.connection, place) % of == part
        )


def plan_workload(scenario: DemoScenario, quotes: Quotes) -> WorkloadPlan:
    """The plan of a scenario: the same for the same scenario and quotes.

    Raises:
        ValueError: there are too few symbols for these publishers and one symbol without a publisher.

    """
    if scenario.publishers >= len(quotes):
        raise ValueError(
            f"{scenario.publishers} publishers need a symbol each and one more without a publisher, and there are only "
            f"{len(quotes)} pairs of company and year; ask for at most {len(quotes) - 1} publishers"
        )
    draw = random.Random(scenario.seed)  # noqa: S311  # a seeded plan, no secret
    symbols = draw.sample(sorted(quotes), len(quotes))
    published, silent = symbols[: scenario.publishers], symbols[scenario.publishers :]
    publishers = tuple(_publisher(i, symbol, scenario, quotes, draw) for i, symbol in enumerate(published))
    subscribers = _subscribers(scenario, quotes, published, silent, draw)
    return WorkloadPlan(with_rate_step(publishers, scenario, draw), subscribers)


def _publisher(
    number: int, symbol: str, scenario: DemoScenario, quotes: Quotes, draw: random.Random
) -> PlannedPublisher:
    # 1 - random(): above 0, so that every publisher has an interval, however long
    rate = PAPER_RATE_PER_MINUTE * (1.0 - draw.random()) * scenario.rate_factor
    return PlannedPublisher(f"publisher-{number:02}", symbol, rate, draw.random() * 60.0 / rate, quotes[symbol])


def with_rate_step(
    publishers: tuple[PlannedPublisher, ...], scenario: DemoScenario, draw: random.Random
) -> tuple[PlannedPublisher, ...]:
    """Some publishers, drawn at random, speed up. PADRES 2006, 6.2."""
    if math.isinf(scenario.step_seconds):
        return publishers
    chosen = set(draw.sample(range(len(publishers)), round(len(publishers) * scenario.step_publishers)))
    return tuple(
        replace(one, faster_at=scenario.step_seconds, factor=scenario.step_factor) if i in chosen else one
        for i, one in enumerate(publishers)
    )


def _subscribers(
    scenario: DemoScenario, quotes: Quotes, published: Sequence[str], silent: Sequence[str], draw: random.Random
) -> tuple[PlannedSubscriber, ...]:
    templates = _template_mix(scenario.subscribers)
    draw.shuffle(templates)
    with_symbol = [place for place, (_, _, _, symbol) in enumerate(templates) if symbol]
    zeros = min(round(scenario.subscribers * scenario.zero_traffic), len(with_symbol))
    zero = set(draw.sample(with_symbol, zeros))
    first, last = (share * scenario.seconds for share in (scenario.join_from, scenario.join_to))
    times = sorted(draw.uniform(first, last) for _ in templates)
    found = []
    for place, (name, _, threshold, symbol) in enumerate(templates):
        stock = draw.choice(silent if place in zero else published)
        predicates = _predicates(stock if symbol else "", threshold, draw.choice(quotes[stock]))
        found.append(PlannedSubscriber(f"subscriber-{place:04}", name, place in zero, predicates, times[place]))
    return tuple(found)


def _template_mix(count: int) -> list[Template]:
    """Each template by its share; what rounding leaves goes to the templates that were cut most."""
    exact = [count * share / 100 for _, share, _, _ in TEMPLATES]
    counts = [int(amount) for amount in exact]
    by_rest = sorted(range(len(TEMPLATES)), key=lambda i: (counts[i] - exact[i], i))
    for i in by_rest[: count - sum(counts)]:
        counts[i] += 1
    return [template for template, times in zip(TEMPLATES, counts, strict=True) for _ in range(times)]


def _predicates(symbol: str, threshold: tuple[str, str] | None, quote: Quote) -> tuple[Triple, ...]:
    predicates: list[Triple] = [("class", "=", "STOCK")]
    if symbol:
        predicates.append(("symbol", "=", symbol))
    if threshold is not None:
        name, operator = threshold
        predicates.append((name, operator, quote.attributes()[name]))
    return tuple(predicates)


def subscription_text(predicates: Sequence[Triple]) -> str:
    """Predicates in the subscription language."""
    return ",".join(f"[{name},{operator},{_operand(value)}]" for name, operator, value in predicates)


def _operand(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else repr(value)
