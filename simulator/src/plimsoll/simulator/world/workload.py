"""What applications do: a seeded plan of subscriptions, changes and publications, made before the run.

The attributes are few and small, so that publications and subscriptions often meet; a stated share of the subscribers
asks for what nobody publishes. Values of all kinds occur, and some that only look alike.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from plimsoll.core.verify.observations import Triple, Value

WORDS = ("alpha", "alp", "beta", "be", "gamma", "")


@dataclass(frozen=True, slots=True)
class WorkloadSize:
    """How much is asked for and said. `seconds`: from the first publication to the last."""

    publishers: int = 2
    subscribers: int = 4
    publications: int = 40
    seconds: float = 6.0
    changes: int = 4
    zero_traffic: float = 0.25
    confirm_edges: float = 0.2
    payload_bytes: int = 0
    holds: int = 0


@dataclass(frozen=True, slots=True)
class SubscriptionChange:
    """At a time, a subscriber asks for something new, or withdraws the oldest of what it has."""

    at: float
    subscriber: str
    predicates: tuple[Triple, ...] | None


@dataclass(frozen=True, slots=True)
class ReadingPause:
    """From a time on a subscriber takes nothing for a while."""

    at: float
    until: float
    subscriber: str


@dataclass(frozen=True, slots=True)
class PlannedPublication:
    """At a time, a publisher publishes."""

    at: float
    publisher: str
    attributes: dict[str, Value]
    confirm_edges: bool


def draw_subscription(draw: random.Random, zero_traffic: bool = False) -> tuple[Triple, ...]:
    """A conjunction of one to three predicates, satisfiable, at most one per attribute."""
    if zero_traffic:
        return (("k", "=", 99), ("v", ">=", 0))
    number, word = draw.randrange(10), draw.choice(WORDS[:-1])
    choices: list[Triple] = [
        ("k", draw.choice(["=", "!="]), draw.randrange(3)),
        ("v", draw.choice(["<", "<=", ">", ">="]), number if draw.random() < 0.7 else number + 0.5),
        draw.choice(
            [
                ("s", "prefix", word[:2]),
                ("s", "suffix", "a"),
                ("s", "contains", word[1:]),
                ("s", "=", word),
                ("s", "in", sorted({word, draw.choice(WORDS)})),
            ]
        ),
        ("b", draw.choice(["=", "!="]), draw.random() < 0.5),
        ("o", "exists", None),
    ]  # fmt: skip
    count = draw.choice([1, 1, 1, 2, 2, 3])
    return tuple(sorted(draw.sample(choices, count), key=str))


def draw_attributes(draw: random.Random) -> dict[str, Value]:
    """The attributes of one publication; some are missing, some of another kind than usual."""
    said: dict[str, Value] = {"k": draw.randrange(3), "v": draw.choice([draw.randrange(10), draw.uniform(0, 10)])}
    if draw.random() < 0.7:
        said["s"] = draw.choice(WORDS)
    if draw.random() < 0.5:
        said["b"] = draw.random() < 0.5
    if draw.random() < 0.3:
        said["o"] = (0, "", False)[draw.randrange(3)]
    if draw.random() < 0.1:
        said["k"] = (True, "1", 1.0)[draw.randrange(3)]
    return said


def draw_publications(
    load: WorkloadSize, draw: random.Random, start: float, names: list[str]
) -> list[PlannedPublication]:
    """All publications, in time order."""
    times = sorted(start + draw.uniform(0, load.seconds) for _ in range(load.publications))
    return [
        PlannedPublication(at, draw.choice(names), draw_attributes(draw), draw.random() < load.confirm_edges)
        for at in times
    ]


def draw_changes(load: WorkloadSize, draw: random.Random, start: float, names: list[str]) -> list[SubscriptionChange]:
    """Changes of mind during the run; about a third withdraws."""
    times = sorted(start + draw.uniform(0, load.seconds) for _ in range(load.changes))
    return [
        SubscriptionChange(at, draw.choice(names), None if draw.random() < 0.35 else draw_subscription(draw))
        for at in times
    ]


def draw_pauses(load: WorkloadSize, draw: random.Random, start: float, names: list[str]) -> list[ReadingPause]:
    """When subscribers take nothing."""
    times = sorted(start + draw.uniform(0, load.seconds) for _ in range(load.holds))
    return [ReadingPause(at, at + draw.uniform(0.05, 1.0), draw.choice(names)) for at in times]


def subscription_text(predicates: tuple[Triple, ...]) -> str:
    """Predicates in the language of subscriptions."""
    return ",".join(
        f"[{name},{op}]" if op == "exists" else f"[{name},{op},{_operand(value)}]" for name, op, value in predicates
    )


def _operand(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "(" + ",".join(map(_operand, value)) + ")"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}'" if isinstance(value, str) else repr(value)
