"""Which hand-overs a run asks for: a seeded plan, made before the run as everything else is.

Who is served by the source is not known before: a plan says how many of them move, and how they are picked. Some
plans are unreasonable on purpose: subscribers that are not there, deadlines that nobody can keep, commands sent with
epochs that have passed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from plimsoll.simulator.world.brokers import FleetShape

HandoverEnding = Literal["cut", "abort-preparing", "abort-ready", "abort-late"]
TIGHT_SECONDS = (0.001, 0.06)
"""Deadlines within which a hand-over may or may not get anywhere."""


@dataclass(frozen=True, slots=True)
class HandoverMix:
    """How many hand-overs, and of what kind. Shares are chances between 0 and 1 per hand-over.

    `together`: begun with the one before, while that is under way. `aim`: a fault strikes at a step of it; only who is
    `crashable` is killed by one.
    `lives`: how often per second of the run the mediator is killed, or another one takes over while it lives.
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
    """One hand-over to ask for: `count` of those at `source`, picked by the seed `pick`.

    `patience_seconds` after its begin it is cut, whoever has attached by then.
    """

    number: int
    at: float
    head: str
    source: str
    target_head: str
    target: str
    count: int
    pick: int
    strangers: int
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
    moving: HandoverMix, shape: FleetShape, draw: random.Random, start: float, seconds: float
) -> list[PlannedHandover]:
    """All hand-overs of a run, in time order."""
    times: list[float] = []
    for _ in range(moving.handovers):
        together = times and draw.random() < moving.together
        times.append(times[-1] + draw.uniform(0.0, 0.05) if together else start + draw.uniform(0.0, seconds))
    return [_draw_handover(moving, shape, draw, number, at) for number, at in enumerate(sorted(times))]


def _draw_handover(
    moving: HandoverMix, shape: FleetShape, draw: random.Random, number: int, at: float
) -> PlannedHandover:
    heads = shape.heads()
    head = draw.choice(heads)
    source = draw.choice(shape.edges_of(head))
    across = len(heads) > 1 and (draw.random() < moving.across or shape.edges < 2)
    target_head = draw.choice([each for each in heads if each != head]) if across else head
    target = draw.choice([each for each in shape.edges_of(target_head) if each != source])
    tight = draw.random() < moving.tight
    kind = draw.choice(("prepare", "drain", "both")) if tight else ""
    ends: Sequence[HandoverEnding] = ("abort-preparing", "abort-ready", "abort-late")
    return PlannedHandover(
        number=number,
        at=at,
        head=head,
        source=source,
        target_head=target_head,
        target=target,
        count=draw.randint(1, moving.batch),
        pick=draw.getrandbits(32),
        strangers=int(draw.random() < moving.non_members),
        replay=not across and draw.random() < moving.replay,
        end=draw.choice(ends) if draw.random() < moving.abort else "cut",
        patience_seconds=draw.choice([0.03, 0.3, 3.0, 3.0]),
        prepare_seconds=draw.uniform(*(TIGHT_SECONDS if kind in ("prepare", "both") else moving.prepare_seconds)),
        drain_seconds=draw.uniform(*(TIGHT_SECONDS if kind in ("drain", "both") else moving.drain_seconds)),
        stale=draw.random() < moving.stale,
    )
