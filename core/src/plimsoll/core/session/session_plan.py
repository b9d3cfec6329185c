"""The plan of a session as it is stored: what moves where, what the policy predicts, and why the rest stays."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class PlannedPair(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Members that move from one edge to another, in this order. A later `wave` begins when those before have ended."""

    source: str
    target: str
    source_head: str
    target_head: str
    members: list[str]
    wave: int = 0

    @property
    def is_across(self) -> bool:
        return self.source_head != self.target_head


class LoadFigures(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The loads that a policy balances: utilisations as ratios, the matching delay in seconds."""

    input: float
    output: float
    match_seconds: float


class Forecast(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An edge before and after a plan: its higher utilisation and its subscribers, as predicted and as measured.

    `before`, `after` and `measured` have its loads one by one in plans of a policy; `uncertain`: the standard
    deviations of `after`.
    """

    edge: str
    utilization_before: float
    utilization_after: float
    subscribers_before: int
    subscribers_after: int
    utilization_measured: float | None = None
    subscribers_measured: int | None = None
    before: LoadFigures | None = None
    after: LoadFigures | None = None
    uncertain: LoadFigures | None = None
    measured: LoadFigures | None = None


class Offer(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An edge that could be the target, and the metric to balance with it by name; the two differ by `difference`.

    `overloaded`: resources of the source that need relief. `answer` is empty until there is one: `OK`, or why not.
    `is_futile`: it was accepted, and no subscriber could go; `message` says why.
    """

    edge: str
    metric: str
    difference: float
    overloaded: list[str] = []
    asked_at: float | None = None
    answer: str = ""
    message: str = ""
    is_futile: bool = False


class MoveGroup(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The next `count` members of a plan, and why they move; `what`: their subscription."""

    count: int
    reason: str
    what: str = ""


class StayGroup(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Subscribers that a policy considered and did not move, and why; `kind` is the reason in a word."""

    kind: str
    reason: str
    count: int
    what: str = ""


class SessionPlan(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The moves of an attempt. `hash` covers the pairs and their members in order; `rejected`: who stays, by reason.

    In plans of a policy, `moves` has the reasons of the moves in the order of the members, `stays` those of the others,
    and `stop` why the plan is not longer. A plan with `faults` is not executed. `bundles`: those that have another edge
    after it, by name. `deliveries_per_second`: of all edges of the cluster, when the plan was made: no move changes it.
    """

    hash: str
    pairs: list[PlannedPair]
    made_at: float
    rejected: dict[str, list[str]] = {}
    forecasts: list[Forecast] = []
    drain_seconds: float = 0.0
    handover: Literal["drain", "replay", "lookup"] = "drain"
    why: str = ""
    policy: str = ""
    metric: str = ""
    moves: list[MoveGroup] = []
    stays: list[StayGroup] = []
    stop: str = ""
    faults: list[str] = []
    bundles: dict[str, str] = {}
    deliveries_per_second: float = 0.0

    @property
    def members(self) -> int:
        return sum(len(pair.members) for pair in self.pairs)
