"""What a policy proposes: steps that are carried out whole or not at all, and what it decided against.

Each move and each rejection has its reason in words, for whoever asks later why a subscriber went or stayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from plimsoll.core.policies.fleet import BrokerLoad, Metric, Resource

REJECTIONS_AT_MOST = 100

Ended = Literal["Balanced", "Below", "Relieved", "Stability", "NoBetter", "Exhausted", "Limit"]
"""Why a plan ends: the two are balanced; the source is below the target; nothing of it is overloaded any more; more
would upset other metrics; nothing brings the two closer; all was considered; the session's limit is reached."""


@dataclass(frozen=True, slots=True)
class Action:
    """An entry of the broker-action list: who should take load, by which metric, and how far apart the two are.

    `overloaded` names the resources that want relief; empty where the two differ and nobody is overloaded.
    """

    target: str
    metric: Metric
    difference: float
    overloaded: tuple[Resource, ...] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """Subscribers that ask for the same (`key`) go from one edge to another."""

    key: str
    subscribers: tuple[str, ...]
    source: str
    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class Step:
    """Moves that go together."""

    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Rejection:
    """What stays, and why. `kind` is the reason in one word; `key` is empty where rejections are summed."""

    kind: str
    key: str
    subscribers: int
    reason: str
    rows: int = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """What should move by one action, and what its policy predicts of it.

    `ended` and `stopped` say why it ends where it does. `source` and `target` are the loads that it starts from:
    as reported, with what reports leave open filled in. Where nothing moves, predictions are these.
    """

    action: Action
    source: BrokerLoad
    target: BrokerLoad
    predicted_source: BrokerLoad
    predicted_target: BrokerLoad
    steps: tuple[Step, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    ended: Ended = "Exhausted"
    stopped: str = ""

    @property
    def moves(self) -> tuple[Move, ...]:
        """All moves, in order."""
        return tuple(move for step in self.steps for move in step.moves)

    @property
    def members(self) -> tuple[str, ...]:
        """All subscribers that move, in order."""
        return tuple(name for move in self.moves for name in move.subscribers)


def bounded(rejections: Sequence[Rejection], most: int = REJECTIONS_AT_MOST) -> tuple[Rejection, ...]:
    """The rejections themselves, or their sums by kind where there are more than `most`."""
    if len(rejections) <= most:
        return tuple(rejections)
    sums: dict[str, list[Rejection]] = {}
    for each in rejections:
        sums.setdefault(each.kind, []).append(each)
    return tuple(_summed(kind, sums[kind]) for kind in sorted(sums))


def _summed(kind: str, rejections: Iterable[Rejection]) -> Rejection:
    some = list(rejections)
    rows, subscribers = sum(each.rows for each in some), sum(each.subscribers for each in some)
    return Rejection(kind, "", subscribers, f"{rows} sets of subscriptions, the first: {some[0].reason}", rows)
