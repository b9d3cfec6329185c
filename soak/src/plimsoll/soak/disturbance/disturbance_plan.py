"""The disturbances of a fleet and their times: a seeded plan, so that a run can be repeated."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

DisturbanceKind = Literal["kill-edge", "kill-head", "freeze-edge", "freeze-head", "freeze-subscribers"]
KINDS: tuple[DisturbanceKind, ...] = ("kill-edge", "freeze-edge", "freeze-head", "freeze-subscribers", "kill-head")
FREEZE_SECONDS = (0.5, 3.0)
"""Shorter than the time after which a silent peer is given up, and long enough to exhaust credit."""
QUIET_SECONDS = 5.0
"""No disturbance this close to the start or the end, so that subscribers can join and recover."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """`at`: seconds from the start of the traffic. `seconds`: the length of a freeze; a kill has none."""

    at: float
    kind: DisturbanceKind
    target: str
    seconds: float = 0.0

    def __str__(self) -> str:
        length = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.at:7.1f} s  {self.kind} {self.target}{length}"


def plan_disturbances(
    seed: int, seconds: float, every_seconds: float, heads: Sequence[str], edges: Sequence[str], clients: int
) -> list[Disturbance]:
    """Disturbances `every_seconds` apart on average. Kinds take turns, so that a short run has each of them."""
    chance = random.Random(seed)  # noqa: S311  # a plan that can be repeated, not a secret
    found: list[Disturbance] = []
    at = QUIET_SECONDS + chance.uniform(0, every_seconds)
    while at < seconds - QUIET_SECONDS:
        kind = KINDS[len(found) % len(KINDS)]
        length = chance.uniform(*FREEZE_SECONDS) if kind.startswith("freeze") else 0.0
        found.append(Disturbance(at, kind, _target(chance, kind, heads, edges, clients), length))
        at += every_seconds * chance.uniform(0.5, 1.5)
    return found


def _target(
    chance: random.Random, kind: DisturbanceKind, heads: Sequence[str], edges: Sequence[str], clients: int
) -> str:
    if kind.endswith("edge"):
        return chance.choice(sorted(edges))
    if kind.endswith("head"):
        return chance.choice(sorted(heads))
    return str(chance.randrange(clients))
