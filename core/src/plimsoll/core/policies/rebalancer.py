"""Policies that plan for many brokers at once: `observe` at an interval, `steps` over several sources and targets.

A rebalancer is a frozen dataclass of its parameters, and knows no clock, store or socket. What it remembers between two
looks is its memory, a small JSON value that the session engine stores in the status of the cluster. `steps` is lazy:
its caller stops between two steps, never within one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Protocol, Self, TypeVar

from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.plan import PlanMove, PlanRejection, bounded_rejections
from plimsoll.core.policies.model.profile import SubscriptionProfile

Memory = Mapping[str, Any]
"""What a policy remembers between two looks, as JSON. The engine drops one above `MEMORY_BYTES`."""

NO_MEMORY: Memory = MappingProxyType({})
"""The memory of a policy that has not looked yet."""

MEMORY_BYTES = 128 * 1024

ProfileDetail = Literal["takers", "each"]


@dataclass(frozen=True, slots=True)
class FleetLook:
    """The last load reports of all edges of a cluster, by name, at one time in seconds.

    `owners`: the edge of each bundle that has one, by the name of the bundle, as the head reports it. `balancings`: how
    many seconds the last sessions of the cluster took that moved some, from request to the last move.
    """

    loads: tuple[BrokerLoad, ...]
    now: float = 0.0
    owners: Mapping[str, str] = field(default_factory=dict)
    balancings: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class FleetSample:
    """What a plan is made from: the load and the profile of each edge.

    `staying`: subscribers that may not move, each with the reason. `takes`: edges that may take, all if None. `most`:
    how many subscribers may move, any number if None. `owners`: as in `FleetLook`. `unload`: bundles that a user wants
    to be moved, and `target`: where to, if the user has said. `left`: edges that subscribers were moved away from by
    the policy, at a load like that of now; at constant load none should return. `away`: the edges of another cluster,
    which take part as well, each with the seconds that a message takes longer from this cluster to it.
    """

    loads: tuple[BrokerLoad, ...]
    profiles: Mapping[str, SubscriptionProfile]
    staying: Mapping[str, str]
    takes: frozenset[str] | None = None
    most: int | None = None
    owners: Mapping[str, str] = field(default_factory=dict)
    unload: tuple[str, ...] = ()
    target: str = ""
    left: Mapping[str, frozenset[str]] = field(default_factory=dict)
    away: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """Moves that happen together or not at all. A step of a later `wave` begins when those before have ended.

    `owners`: the bundles that have another edge from here on, by name.
    """

    moves: tuple[PlanMove, ...]
    wave: int = 0
    owners: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StepsEnd:
    """Why there are no more steps: in a word, and as a sentence; and the subscribers that stay."""

    ended: str
    stopped: str
    rejected: tuple[PlanRejection, ...] = ()


Steps = Generator[Step, None, StepsEnd]


class PlannedFleet(Protocol):
    """A fleet in the model of one policy, before or after some steps."""

    @property
    def loads(self) -> tuple[BrokerLoad, ...]:
        """What every edge would report, by name."""

    def after(self, step: Step) -> Self:
        """The prediction: the same fleet after a step."""


F = TypeVar("F", bound=PlannedFleet)


class Rebalancer(Protocol[F]):
    """A policy that plans for all edges of a cluster. `metric`: what it balances, in words.

    `profiles`: what it needs to know beside rows: which samples the other edges take in, or what each subscription
    alone matches.
    """

    name: ClassVar[str]
    metric: ClassVar[str]
    profiles: ClassVar[ProfileDetail]

    @property
    def interval_seconds(self) -> float:
        """The time between two looks."""

    def imbalance(self, look: FleetLook) -> str:
        """Why the loads of one look are too uneven, in words; empty if they are not."""

    def observe(self, memory: Memory, look: FleetLook) -> Memory:
        """Its memory after one more look."""

    def after_moves(self, memory: Memory) -> Memory:
        """What of its memory holds once subscribers have moved: loads that it has seen before are others now."""

    def wanted(self, memory: Memory) -> str:
        """Why it wants to plan now; empty if it does not."""

    def fleet(self, sample: FleetSample, memory: Memory, /) -> F:
        """The fleet in the policy's model."""

    def steps(self, fleet: F, memory: Memory) -> Steps:
        """The steps that should be taken, the most important first."""


@dataclass(frozen=True, slots=True)
class RebalancingPlan:
    """What should move, in waves, and every load before and after, by name; and the bundles with a new edge."""

    before: tuple[BrokerLoad, ...]
    after: tuple[BrokerLoad, ...]
    waves: tuple[tuple[PlanMove, ...], ...]
    rejected: tuple[PlanRejection, ...]
    ended: str
    stopped: str
    owners: tuple[tuple[str, str], ...] = ()

    @property
    def moves(self) -> tuple[PlanMove, ...]:
        """All moves, in order."""
        return tuple(move for wave in self.waves for move in wave)


def fleet_plan(policy: Rebalancer[F], sample: FleetSample, memory: Memory) -> RebalancingPlan:
    """Take the policy's steps one by one, as many as the limit of moves allows."""
    fleet = policy.fleet(sample, memory)
    before = fleet.loads
    fleet, taken, end = take_steps(fleet, policy.steps(fleet, memory), sample.most)
    waves = _in_waves(taken)
    rejected = end.rejected or _others(sample, waves, end.stopped)
    owners = tuple(dict(each for step in taken for each in step.owners).items())
    return RebalancingPlan(before, fleet.loads, waves, bounded_rejections(rejected), end.ended, end.stopped, owners)


def take_steps(fleet: F, steps: Steps, most: int | None) -> tuple[F, list[Step], StepsEnd]:
    """The fleet after as many steps as `most` movers allow, those steps, and why there are no more."""
    taken = list[Step]()
    while True:
        try:
            step = next(steps)
        except StopIteration as over:
            return fleet, taken, over.value
        if most is not None and _movers(_in_waves([*taken, step])) > most:
            steps.close()
            return (
                fleet,
                taken,
                StepsEnd("Limit", f"{most} may move, which is the limit, and the next step does not fit"),
            )
        taken.append(step)
        fleet = fleet.after(step)


def _movers(waves: Iterable[Iterable[PlanMove]]) -> int:
    return sum(len(move.subscribers) for wave in waves for move in wave)


def _in_waves(steps: Sequence[Step]) -> tuple[tuple[PlanMove, ...], ...]:
    """The moves of each wave. A subscriber that a wave moves twice goes straight to its last place."""
    found: dict[int, list[PlanMove]] = {}
    for step in steps:
        found.setdefault(step.wave, []).extend(step.moves)
    return tuple(wave for _, moves in sorted(found.items()) if (wave := _direct(moves)))


def _direct(moves: Sequence[PlanMove]) -> tuple[PlanMove, ...]:
    origin = {name: move.source for move in reversed(moves) for name in move.subscribers}
    last = {name: number for number, move in enumerate(moves) for name in move.subscribers}
    found: list[PlanMove] = []
    for number, move in enumerate(moves):
        names: dict[str, list[str]] = {}
        for name in move.subscribers:
            if last[name] == number and origin[name] != move.target:
                names.setdefault(origin[name], []).append(name)
        found += [replace(move, source=source, subscribers=tuple(some)) for source, some in names.items()]
    return tuple(found)


def _others(sample: FleetSample, waves: Sequence[Sequence[PlanMove]], why: str) -> list[PlanRejection]:
    """Everybody that does not move, by broker and set of subscriptions."""
    moved = {name for wave in waves for move in wave for name in move.subscribers}
    found: list[PlanRejection] = []
    for broker, profile in sorted(sample.profiles.items()):
        for row in profile.rows:
            held = [sample.staying[name] for name in row.names if name in sample.staying]
            if held:
                found.append(PlanRejection("Staying", row.key, len(held), f"{broker}: {held[0]}"))
            left = sum(name not in moved and name not in sample.staying for name in row.names)
            if left:
                found.append(PlanRejection("NotNeeded", row.key, left, f"stays at {broker}: {why}"))
    return found
