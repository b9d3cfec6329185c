"""The workload: a seeded plan of subscriptions, changes and publications, drawn before the run.

The attributes are few and their values small, so that subscriptions often match; a stated share of the subscribers
asks for values that no publisher sends. Values of all types occur, also such as are easily confused: 1, 1.0, "1", true.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from plimsoll.core.verify.observations import Triple, Value

TOPIC_ATTRIBUTE = "topic"
WORDS = ("alpha", "alp", "beta", "be", "gamma", "")


@dataclass(frozen=True, slots=True)
class WorkloadSize:
    """How many publishers, subscribers and publications. `seconds`: the time over which publications are spread.

    `changes`: how often subscribers change their lists. `holds`: how often one pauses its deliveries. `zero_traffic`
    and `confirm_edges` are shares of subscribers without traffic, and of publications confirmed by the edges.

    `topics`: how many there are, 0 for none; each publication has one, and each subscriber asks for one. The
    laws know one stream by subscriber, and order is kept by topic, so no subscriber asks for two.
    """

    publishers: int = 2
    subscribers: int = 4
    publications: int = 40
    seconds: float = 6.0
    changes: int = 4
    zero_traffic: float = 0.25
    confirm_edges: float = 0.2
    payload_bytes: int = 0
    holds: int = 0
    topics: int = 0


@dataclass(frozen=True, slots=True)
class SubscriptionChange:
    """At a time, a subscriber adds a subscription, or withdraws its oldest one (`predicates` is None)."""

    at: float
    subscriber: str
    predicates: tuple[Triple, ...] | None


@dataclass(frozen=True, slots=True)
class ReadingPause:
    """From `at` to `until` a subscriber pauses its deliveries."""

    at: float
    until: float
    subscriber: str


@dataclass(frozen=True, slots=True)
class PlannedPublication:
    """One publication, and whether the edges confirm it."""

    at: float
    publisher: str
    attributes: dict[str, Value]
    confirm_edges: bool


def draw_subscription(rng: random.Random, zero_traffic: bool = False) -> tuple[Triple, ...]:
    """A satisfiable conjunction of one to three predicates, each on another attribute."""
    if zero_traffic:
        return (("k", "=", 99), ("v", ">=", 0))
    number, word = rng.randrange(10), rng.choice(WORDS[:-1])
    choices: list[Triple] = [
        ("k", rng.choice(["=", "!="]), rng.randrange(3)),
        ("v", rng.choice(["<", "<=", ">", ">="]), number if rng.random() < 0.7 else number + 0.5),
        rng.choice(
            [
                ("s", "prefix", word[:2]),
                ("s", "suffix", "a"),
                ("s", "contains", word[1:]),
                ("s", "=", word),
                ("s", "in", sorted({word, rng.choice(WORDS)})),
            ]
        ),
        ("b", rng.choice(["=", "!="]), rng.random() < 0.5),
        ("o", "exists", None),
    ]  # fmt: skip
    count = rng.choice([1, 1, 1, 2, 2, 3])
    return tuple(sorted(rng.sample(choices, count), key=str))


def draw_attributes(rng: random.Random) -> dict[str, Value]:
    """The attributes of one publication; some are missing, and some have another type than usual."""
    attributes: dict[str, Value] = {"k": rng.randrange(3), "v": rng.choice([rng.randrange(10), rng.uniform(0, 10)])}
    if rng.random() < 0.7:
        attributes["s"] = rng.choice(WORDS)
    if rng.random() < 0.5:
        attributes["b"] = rng.random() < 0.5
    if rng.random() < 0.3:
        attributes["o"] = (0, "", False)[rng.randrange(3)]
    if rng.random() < 0.1:
        attributes["k"] = (True, "1", 1.0)[rng.randrange(3)]
    return attributes


def add_topics(attributes: dict[str, Value], topics: int, rng: random.Random) -> dict[str, Value]:
    """The attributes with a topic. The first topics are far more frequent than the last ones."""
    if not topics:
        return attributes
    number = min(rng.randrange(topics), rng.randrange(topics))
    return {**attributes, TOPIC_ATTRIBUTE: topic_name(number)}


def of_topic(predicates: tuple[Triple, ...], number: int) -> tuple[Triple, ...]:
    """A subscription that asks for one topic as well."""
    return ((TOPIC_ATTRIBUTE, "=", topic_name(number)), *predicates[:1])


def topic_name(number: int) -> str:
    return f"topic{number}"


def draw_publications(
    load: WorkloadSize, rng: random.Random, start: float, names: list[str]
) -> list[PlannedPublication]:
    """All publications, in time order."""
    times = sorted(start + rng.uniform(0, load.seconds) for _ in range(load.publications))
    return [
        PlannedPublication(
            at,
            rng.choice(names),
            add_topics(draw_attributes(rng), load.topics, rng),
            rng.random() < load.confirm_edges,
        )
        for at in times
    ]


def draw_changes(load: WorkloadSize, rng: random.Random, start: float, names: list[str]) -> list[SubscriptionChange]:
    """All changes of subscriptions, in time order; about a third are withdrawals."""
    times = sorted(start + rng.uniform(0, load.seconds) for _ in range(load.changes))
    return [
        SubscriptionChange(at, rng.choice(names), None if rng.random() < 0.35 else draw_subscription(rng))
        for at in times
    ]


def draw_pauses(load: WorkloadSize, rng: random.Random, start: float, names: list[str]) -> list[ReadingPause]:
    """All pauses of subscribers, by their start."""
    times = sorted(start + rng.uniform(0, load.seconds) for _ in range(load.holds))
    return [ReadingPause(at, at + rng.uniform(0.05, 1.0), rng.choice(names)) for at in times]


def subscription_text(predicates: tuple[Triple, ...]) -> str:
    """Predicates in the subscription language."""
    return ",".join(
        f"[{name},{op}]" if op == "exists" else f"[{name},{op},{_operand(value)}]" for name, op, value in predicates
    )


def _operand(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "(" + ",".join(map(_operand, value)) + ")"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}'" if isinstance(value, str) else repr(value)
