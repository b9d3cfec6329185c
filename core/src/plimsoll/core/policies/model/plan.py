"""What a policy proposes: steps that are carried out whole or not at all, and the candidates that it rejected.

Each move and each rejection states its reason in words, so that it is known later why a subscriber went or stayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from plimsoll.core.policies.model.load import BrokerLoad, Metric, Resource

REJECTIONS_AT_MOST = 100

PlanEnding = Literal["Balanced", "Below", "Relieved", "Stability", "NoBetter", "Exhausted", "Limit"]
"""Why a plan ends: the two are balanced; the source is below the target; the source is no longer overloaded; more
would upset other metrics; nothing brings the two closer; all was considered; the session's limit is reached."""


@dataclass(frozen=True, slots=True)
class BrokerAction:
    """An entry of the broker-action list: who should take load, by which metric, and how far apart the two are.

    `overloaded` names the resources that need relief; it is empty if the two merely differ.
    """

    target: str
    metric: Metric
    difference: float
    overloaded: tuple[Resource, ...] = ()


@dataclass(frozen=True, slots=True)
class PlanMove:
    """Subscribers that ask for the same (`key`) go from one edge to another."""

    key: str
    subscribers: tuple[str, ...]
    source: str
    target: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlanStep:
    """Moves that go together."""

    moves: tuple[PlanMove, ...]


@dataclass(frozen=True, slots=True)
class PlanRejection:
    """Subscribers that stay, and why. `kind` is the reason in one word; `key` is empty where rejections are summed."""

    kind: str
    key: str
    subscribers: int
    reason: str
    rows: int = 1


@dataclass(frozen=True, slots=True)
class OffloadPlan:
    """What should move for one action, and the loads that the policy predicts.

    `ended` and `stopped` say why the plan ends where it does. `source` and `target` are the loads that it starts from:
    as reported, with gaps in the reports filled in. If nothing moves, the predictions equal them.
    """

    action: BrokerAction
    source: BrokerLoad
    target: BrokerLoad
    predicted_source: BrokerLoad
    predicted_target: BrokerLoad
    steps: tuple[PlanStep, ...] = ()
    rejected: tuple[PlanRejection, ...] = ()
    ended: PlanEnding = "Exhausted"
    stopped: str = ""

    @property
    def moves(self) -> tuple[PlanMove, ...]:
        """All moves, in order."""
        return tuple(move for step in self.steps for move in step.moves)

    @property
    def members(self) -> tuple[str, ...]:
        """All subscribers that move, in order."""
        return tuple(name for move in self.moves for name in move.subscribers)


def bounded_rejections(
    rejections: Sequence[PlanRejection], most: int = REJECTIONS_AT_MOST
) -> tuple[PlanRejection, ...]:
    """The rejections themselves, or their sums by kind if there are more than `most`."""
    if len(rejections) <= most:
        return tuple(rejections)
    sums: dict[str, list[PlanRejection]] = {}
    for each in rejections:
        sums.setdefault(each.kind, []).append(each)
    return tuple(_summed(kind, sums[kind]) for kind in sorted(sums))


def _summed(kind: str, rejections: Iterable[PlanRejection]) -> PlanRejection:
    some = list(rejections)
    rows, subscribers = sum(each.rows for each in some), sum(each.subscribers for each in some)
    return PlanRejection(kind, "", subscribers, f"{rows} sets of subscriptions, the first: {some[0].reason}", rows)
