"""Faults of a plan for all brokers at once, found without the code that made it.

As in `offload_plan_checker`, samples are compared one by one, as plain sets. Samples of two brokers are not compared:
the input that subscribers from two brokers share at a third is unknown, and counts twice unless they ask for the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

from plimsoll.core.verify import offload_plan_checker
from plimsoll.core.verify.offload_plan_checker import (
    PREDICTION_TOLERANCE,
    BrokerLoadView,
    PlanMoveView,
)
from plimsoll.core.verify.plan_accounting import AccountedPlanView, member_faults, reason_faults


class ShufflePlanView(AccountedPlanView, Protocol):
    """What should move, in waves, and the predicted load of every broker."""

    @property
    def before(self) -> Sequence[BrokerLoadView]: ...
    @property
    def after(self) -> Sequence[BrokerLoadView]: ...
    @property
    def waves(self) -> Sequence[Sequence[PlanMoveView]]: ...


@dataclass(frozen=True, slots=True)
class ShufflePlanContext:
    """The data to check a plan against. `profiles`: of each broker; `lower`: the lower threshold of each resource.

    `stays`: subscribers that may not move; `takes`: brokers that may take; `most`: how many may move; `factor`: N_f
    in seconds.
    """

    profiles: Mapping[str, Any]
    lower: Mapping[str, float]
    takes: Set[str]
    factor: float
    stays: Set[str] = frozenset()
    most: int | None = None


def shuffle_plan_faults(plan: ShufflePlanView, fleet: ShufflePlanContext) -> list[str]:
    """Every fault of a plan in words; empty if there is none.

    No subscriber may move twice, be unknown or be one that must stay; each is accounted for with a reason; predictions
    follow from the samples; no taking broker is overloaded at any time on the way; the highest load falls.
    """
    moves = [move for wave in plan.waves for move in wave]
    found = [*member_faults(moves, fleet), *_rows(moves, fleet), *reason_faults(plan, moves, fleet)]
    if found:
        return found
    brokers = {name: _ReplayedBroker(profile) for name, profile in fleet.profiles.items()}
    found += _predictions(plan, moves, brokers)
    if moves:
        found += [*_on_the_way(plan, fleet, brokers), *_overloads(plan, fleet), *_objective(plan, fleet)]
    return found


def _rows(moves: Sequence[PlanMoveView], fleet: ShufflePlanContext) -> Iterator[str]:
    keys = {name: row.key for profile in fleet.profiles.values() for row in profile.rows for name in row.names}
    for move in moves:
        yield from (f"{name} does not ask for {move.key}" for name in move.subscribers if keys.get(name) != move.key)


# -- predictions, from sets of samples


class _ReplayedBroker:
    """A broker's load during the replay, with the samples that each of its rows matches as plain sets."""

    def __init__(self, profile: Any) -> None:
        self.rows = {row.key: row for row in profile.rows}
        self.samples = {row.key: offload_plan_checker.samples(row.bits) for row in profile.rows}
        self.rest = offload_plan_checker.samples(profile.rest)
        self.takers = {name: offload_plan_checker.samples(bits) for name, bits in profile.takers}
        self.rates, self.sizes = offload_plan_checker.weights(profile.traffic)
        self.overhead_bytes = profile.overhead_bytes

    def rate(self, some: Set[int]) -> float:
        return offload_plan_checker.total(some, self.rates)

    def union(self, keys: Iterable[str]) -> set[int]:
        return self.rest.union(*(self.samples[key] for key in keys))


@dataclass(frozen=True, slots=True)
class _ShuffleEffect:
    rate: float
    subscriptions: int
    deliveries: float
    data: float


def _predictions(
    plan: ShufflePlanView, moves: Sequence[PlanMoveView], brokers: Mapping[str, _ReplayedBroker]
) -> Iterator[str]:
    for load, predicted in zip(plan.before, plan.after, strict=True):
        for what, mine in _levels(load, _change(load.name, moves, moves, brokers)).items():
            if abs(mine - getattr(predicted, what)) > PREDICTION_TOLERANCE * max(1.0, abs(mine)):
                yield f"{what} of {load.name} would be {mine:.6f}, the plan predicts {getattr(predicted, what):.6f}"


def _change(
    name: str, gone: Iterable[PlanMoveView], come: Iterable[PlanMoveView], brokers: Mapping[str, _ReplayedBroker]
) -> _ShuffleEffect:
    """The change of a broker's load after its own subscribers in one list of moves left and those in another came."""
    own = brokers[name]
    leaving = [move for move in gone if move.source == name]
    coming = [move for move in come if move.target == name]
    left = {key: len(row.names) for key, row in own.rows.items()}
    for move in leaving:
        left[move.key] -= len(move.subscribers)
    subscriptions, deliveries, data = 0, 0.0, 0.0
    for sign, moves in ((-1, leaving), (1, coming)):
        for move in moves:
            source, number = brokers[move.source], sign * len(move.subscribers)
            rate = source.rate(source.samples[move.key])
            subscriptions += number * source.rows[move.key].subscriptions
            deliveries += number * rate
            data += number * (
                offload_plan_checker.total(source.samples[move.key], source.sizes) + rate * source.overhead_bytes
            )
    there = {key for key, count in left.items() if count}
    saved = own.rate(own.union(own.rows) - own.union(there))
    new, known = _come(name, coming, there, brokers)
    return _ShuffleEffect(new - saved + min(saved, known), subscriptions, deliveries, data)


def _come(
    name: str, moves: Iterable[PlanMoveView], there: Set[str], brokers: Mapping[str, _ReplayedBroker]
) -> tuple[float, float]:
    """Publications per second that newcomers bring: new ones, and ones already taken in before all moves."""
    wanted: dict[str, set[int]] = {}
    keys = set(there)
    for move in moves:
        if move.key not in keys:
            keys.add(move.key)
            wanted.setdefault(move.source, set()).update(brokers[move.source].samples[move.key])
    new = known = 0.0
    for source, some in wanted.items():
        taken = brokers[source].takers.get(name, set())
        new += brokers[source].rate(some - taken)
        known += brokers[source].rate(some & taken)
    return new, known


def _levels(load: BrokerLoadView, change: _ShuffleEffect) -> dict[str, float]:
    input_rate, output_rate = max(0.0, load.input_rate + change.rate), max(0.0, load.output_rate + change.deliveries)
    matches = output_rate / input_rate if input_rate else 0.0
    matches -= load.output_rate / load.input_rate if load.input_rate else 0.0
    delay = offload_plan_checker.delay(load, change.subscriptions, matches)
    sent = max(0.0, load.output_bytes_per_second + change.data)
    return {
        "input_utilization": input_rate * delay,
        "output_utilization": sent / load.bandwidth if load.bandwidth else 0.0,
        "match_delay_seconds": delay,
    }


# -- the purpose of the plan


def _on_the_way(
    plan: ShufflePlanView, fleet: ShufflePlanContext, brokers: Mapping[str, _ReplayedBroker]
) -> Iterator[str]:
    """Worst case of each wave: all its moves have arrived, and only those of earlier waves have left."""
    names = {"input": "input_utilization", "output": "output_utilization"}
    for number in range(len(plan.waves)):
        gone = [move for wave in plan.waves[:number] for move in wave]
        come = [move for wave in plan.waves[: number + 1] for move in wave]
        targets = {move.target for move in plan.waves[number]}
        for load in plan.before:
            if load.name not in targets:
                continue
            levels = _levels(load, _change(load.name, gone, come, brokers))
            for resource, what in names.items():
                if levels[what] > fleet.lower[resource] + PREDICTION_TOLERANCE:
                    yield (f"{resource} of {load.name} would be {levels[what]:.4f} in wave {number + 1}, above"
                           f" {fleet.lower[resource]}")  # fmt: skip


def _overloads(plan: ShufflePlanView, fleet: ShufflePlanContext) -> Iterator[str]:
    """For processor and memory only the plan's predictions are known."""
    targets = {move.target for wave in plan.waves for move in wave}
    for load in plan.after:
        for resource in ("cpu", "memory"):
            if (
                load.name in targets
                and getattr(load, f"{resource}_ratio") > fleet.lower[resource] + PREDICTION_TOLERANCE
            ):
                found = getattr(load, f"{resource}_ratio")
                yield f"{resource} of {load.name} would be {found:.4f}, above {fleet.lower[resource]}"


def _objective(plan: ShufflePlanView, fleet: ShufflePlanContext) -> Iterator[str]:
    was, will = _ordered(plan.before, fleet), _ordered(plan.after, fleet)
    for one, two in zip(was, will, strict=True):
        if two < one - PREDICTION_TOLERANCE:
            return
        if two > one + PREDICTION_TOLERANCE:
            yield f"the loads from the highest on would be no less: {_shown(was)} -> {_shown(will)}"
            return
    yield f"nothing would be less: {_shown(was)} -> {_shown(will)}"


def _ordered(loads: Sequence[Any], fleet: ShufflePlanContext) -> list[float]:
    return sorted(
        (max(load.input_utilization, load.output_utilization, load.match_delay_seconds / fleet.factor)
         for load in loads), reverse=True,
    )  # fmt: skip


def _shown(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values[:5])
