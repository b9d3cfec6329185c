"""The hand-overs that a run asks for: a seeded plan, drawn before the run starts.

Which subscribers the source will serve is not known then, so a plan says how many of them move and how they are picked.
Some plans are unreasonable on purpose: members that are at another edge, deadlines that cannot be met, and commands
with old epochs.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from plimsoll.simulator.world.brokers import FleetShape

HandoverEnding = Literal["cut", "abort-preparing", "abort-ready", "abort-late"]
TIGHT_SECONDS = (0.001, 0.06)
"""Deadlines that a hand-over can miss at any of its steps."""


@dataclass(frozen=True, slots=True)
class HandoverMix:
    """How many hand-overs, and of what kind. All shares are probabilities per hand-over.

    `together`: it starts while the one before is under way. `non_members`: it names a subscriber of another edge.
    `stale`: its commands are also sent with old epochs. `aim`: a fault strikes at one of its steps; such a fault kills
    only parties that are `crashable`.
    `lives`: how often per second of the run a mediator is killed, or replaced while it is still running.
    """

    handovers: int = 0
    batch: int = 4
    replay: float = 0.0
    across: float = 0.0
    abort: float = 0.2
    tight: float = 0.0
    together: float = 0.3
    non_members: float = 0.15
    stale: float = 0.15
    aim: float = 0.0
    crashable: tuple[str, ...] = ("subscriber",)
    lives: float = 0.0
    prepare_seconds: tuple[float, float] = (0.5, 1.5)
    drain_seconds: tuple[float, float] = (0.6, 1.5)


@dataclass(frozen=True, slots=True)
class PlannedHandover:
    """One hand-over to ask for: `count` subscribers of `source`, picked with the seed `pick`.

    `patience_seconds` after its start it is cut, with the members that have attached by then. `non_members`: how many
    members it names that may be at another edge.
    """

    number: int
    at: float
    head: str
    source: str
    target_head: str
    target: str
    count: int
    pick: int
    non_members: int
    replay: bool
    end: HandoverEnding
    patience_seconds: float
    prepare_seconds: float
    drain_seconds: float
    stale: bool

    @property
    def label(self) -> str:
        return f"move{self.number}"


def draw_handovers(
    mix: HandoverMix, shape: FleetShape, rng: random.Random, start: float, seconds: float
) -> list[PlannedHandover]:
    """All hand-overs of a run, in time order."""
    times: list[float] = []
    for _ in range(mix.handovers):
        together = times and rng.random() < mix.together
        times.append(times[-1] + rng.uniform(0.0, 0.05) if together else start + rng.uniform(0.0, seconds))
    return [_draw_handover(mix, shape, rng, number, at) for number, at in enumerate(sorted(times))]


def _draw_handover(mix: HandoverMix, shape: FleetShape, rng: random.Random, number: int, at: float) -> PlannedHandover:
    heads = shape.heads()
    head = rng.choice(heads)
    source = rng.choice(shape.edges_of(head))
    across = len(heads) > 1 and (rng.random() < mix.across or shape.edges < 2)
    target_head = rng.choice([each for each in heads if each != head]) if across else head
    target = rng.choice([each for each in shape.edges_of(target_head) if each != source])
    tight = rng.random() < mix.tight
    kind = rng.choice(("prepare", "drain", "both")) if tight else ""
    ends: Sequence[HandoverEnding] = ("abort-preparing", "abort-ready", "abort-late")
    return PlannedHandover(
        number=number,
        at=at,
        head=head,
        source=source,
        target_head=target_head,
        target=target,
        count=rng.randint(1, mix.batch),
        pick=rng.getrandbits(32),
        non_members=int(rng.random() < mix.non_members),
        replay=not across and rng.random() < mix.replay,
        end=rng.choice(ends) if rng.random() < mix.abort else "cut",
        patience_seconds=rng.choice([0.03, 0.3, 3.0, 3.0]),
        prepare_seconds=rng.uniform(*(TIGHT_SECONDS if kind in ("prepare", "both") else mix.prepare_seconds)),
        drain_seconds=rng.uniform(*(TIGHT_SECONDS if kind in ("drain", "both") else mix.drain_seconds)),
        stale=rng.random() < mix.stale,
    )
