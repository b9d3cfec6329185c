"""Faults of a plan, found without the code that made it.

A plan is checked against the profile that it was made from: sample by sample, as plain sets. The checker shares no
arithmetic with the policies, except the models of matching delay, which are part of the loads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, Protocol

PREDICTION_TOLERANCE = 1e-6
"""Predictions that differ by less are the same."""


class BrokerLoadView(Protocol):
    """A broker's load, reported or predicted."""

    @property
    def name(self) -> str: ...
    @property
    def subscriptions(self) -> int: ...
    @property
    def input_utilization(self) -> float: ...
    @property
    def output_utilization(self) -> float: ...
    @property
    def match_delay_seconds(self) -> float: ...
    @property
    def cpu_ratio(self) -> float: ...
    @property
    def memory_ratio(self) -> float: ...
    @property
    def input_rate(self) -> float: ...
    @property
    def output_rate(self) -> float: ...
    @property
    def output_bytes_per_second(self) -> float: ...
    @property
    def bandwidth(self) -> float | None: ...
    @property
    def delay(self) -> Any: ...  # a model with a type of its own, or None; the function `delay` asks it for two numbers


class PlanMoveView(Protocol):
    """Subscribers of a row that move."""

    @property
    def key(self) -> str: ...
    @property
    def subscribers(self) -> tuple[str, ...]: ...
    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def reason(self) -> str: ...


class PlanRejectionView(Protocol):
    """Subscribers that stay."""

    @property
    def key(self) -> str: ...
    @property
    def subscribers(self) -> int: ...
    @property
    def reason(self) -> str: ...


class BrokerActionView(Protocol):
    """The purpose of a plan."""

    @property
    def target(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def overloaded(self) -> tuple[str, ...]: ...


class OffloadPlanView(Protocol):
    """What should move, and the predicted loads."""

    @property
    def action(self) -> BrokerActionView: ...
    @property
    def source(self) -> BrokerLoadView: ...
    @property
    def target(self) -> BrokerLoadView: ...
    @property
    def predicted_source(self) -> BrokerLoadView: ...
    @property
    def predicted_target(self) -> BrokerLoadView: ...
    @property
    def moves(self) -> Sequence[PlanMoveView]: ...
    @property
    def rejected(self) -> Sequence[PlanRejectionView]: ...
    @property
    def stopped(self) -> str: ...


class ProfileRowView(Protocol):
    """Subscribers of the source with the same subscriptions."""

    @property
    def key(self) -> str: ...
    @property
    def bits(self) -> int: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def subscriptions(self) -> int: ...


class SampleBlockView(Protocol):
    """Samples that stand for the same amount of traffic each."""

    @property
    def width(self) -> int: ...
    @property
    def rate(self) -> float: ...
    @property
    def size_bytes(self) -> float: ...


class SampledTrafficView(Protocol):
    """The samples of a profile, in the order of their bits."""

    @property
    def blocks(self) -> Sequence[SampleBlockView]: ...


class SubscriptionProfileView(Protocol):
    """The subscribers at the source, and the samples of traffic that they match."""

    @property
    def traffic(self) -> SampledTrafficView: ...
    @property
    def rows(self) -> tuple[ProfileRowView, ...]: ...
    @property
    def accepting(self) -> int: ...
    @property
    def rest(self) -> int: ...
    @property
    def overhead_bytes(self) -> float: ...


@dataclass(frozen=True, slots=True)
class OffloadPlanContext:
    """The data to check a plan against. `lower`: the lower overload threshold of each resource, by name.

    `by_content`: predictions must follow from the samples. Without it, for a policy that ignores content, the plan is
    checked against its own predictions.
    """

    profile: SubscriptionProfileView
    lower: Mapping[str, float]
    by_content: bool = True


@dataclass(frozen=True, slots=True)
class RecomputedLoad:
    """Loads recomputed by the checker."""

    input: float
    output: float
    match: float
    cpu: float
    memory: float


def offload_plan_faults(plan: OffloadPlanView, fleet: OffloadPlanContext) -> list[str]:
    """Every fault of a plan in words; empty if there is none.

    No subscriber may move twice, be unknown or be elsewhere; each is accounted for with a reason; predictions follow
    from the samples; the target is not overloaded; the metric that the plan is for improves.
    """
    found = [*_members(plan, fleet.profile), *_reasons(plan, fleet.profile)]
    if found:
        return found
    source, target = _own(plan.predicted_source), _own(plan.predicted_target)
    if fleet.by_content:
        found += _predictions(plan, fleet.profile)
    if plan.moves:
        found += [*_overloads(plan, fleet, target), *_objective(plan, fleet, source, target)]
    return found


def _members(plan: OffloadPlanView, profile: SubscriptionProfileView) -> Iterator[str]:
    here = {name: row.key for row in profile.rows for name in row.names}
    times = Counter(name for move in plan.moves for name in move.subscribers)
    yield from (f"{name} moves {count} times" for name, count in sorted(times.items()) if count > 1)
    if plan.source.name == plan.target.name:
        yield f"{plan.source.name} would give to itself"
    for move in plan.moves:
        if (move.source, move.target) != (plan.source.name, plan.target.name):
            yield f"{move.key} goes from {move.source} to {move.target}, the plan is for another pair"
        if not move.subscribers:
            yield f"no subscriber moves with {move.key}"
        for name in move.subscribers:
            if here.get(name) != move.key:
                yield f"{name} does not ask for {move.key} at {plan.source.name}"


def _reasons(plan: OffloadPlanView, profile: SubscriptionProfileView) -> Iterator[str]:
    yield from (f"{move.key} moves without a reason" for move in plan.moves if not move.reason.strip())
    yield from (f"{each.key} is rejected without a reason" for each in plan.rejected if not each.reason.strip())
    if not plan.stopped.strip():
        yield "the plan does not say why it ends"
    total = sum(len(row.names) for row in profile.rows)
    moved, stay = sum(len(move.subscribers) for move in plan.moves), sum(each.subscribers for each in plan.rejected)
    if moved + stay != total:
        yield f"of {total} subscribers {moved} move and {stay} have a reason to stay"


def _own(load: BrokerLoadView) -> RecomputedLoad:
    return RecomputedLoad(
        load.input_utilization, load.output_utilization, load.match_delay_seconds, load.cpu_ratio, load.memory_ratio
    )


# -- predictions, from sets of samples


@dataclass(frozen=True, slots=True)
class _OffloadEffect:
    subscriptions: int
    matches: float


def _predictions(plan: OffloadPlanView, profile: SubscriptionProfileView) -> Iterator[str]:
    rates, sizes = weights(profile.traffic)
    rows: dict[str, ProfileRowView] = {row.key: row for row in profile.rows}
    gone = Counter(dict.fromkeys(rows, 0))
    for move in plan.moves:
        gone[move.key] += len(move.subscribers)
    before = samples(profile.rest, *(row.bits for row in rows.values()))
    after = samples(profile.rest, *(row.bits for key, row in rows.items() if gone[key] < len(row.names)))
    taken = samples(profile.accepting)
    taking = samples(profile.accepting, *(rows[key].bits for key, count in gone.items() if count))
    moved = [(rows[key], count, samples(rows[key].bits)) for key, count in gone.items() if count]
    subscriptions = sum(count * row.subscriptions for row, count, _ in moved)
    deliveries = sum(count * total(some, rates) for _, count, some in moved)
    data = sum(count * total(some, sizes) for _, count, some in moved)
    data += deliveries * profile.overhead_bytes
    less, more = total(before, rates) - total(after, rates), total(taking, rates) - total(taken, rates)
    yield from _compared(plan.source, plan.predicted_source, -less, -subscriptions, -deliveries, -data)
    yield from _compared(plan.target, plan.predicted_target, more, subscriptions, deliveries, data)


def _compared(
    load: BrokerLoadView, predicted: BrokerLoadView, rate: float, subscriptions: int, deliveries: float, data: float
) -> Iterator[str]:
    input_rate, output_rate = max(0.0, load.input_rate + rate), max(0.0, load.output_rate + deliveries)
    matches = output_rate / input_rate if input_rate else 0.0
    matches -= load.output_rate / load.input_rate if load.input_rate else 0.0
    after = delay(load, subscriptions, matches)
    sent = max(0.0, load.output_bytes_per_second + data)
    expected = {
        "input utilisation": (input_rate * after, predicted.input_utilization),
        "output utilisation": (sent / load.bandwidth if load.bandwidth else 0.0, predicted.output_utilization),
        "matching delay": (after, predicted.match_delay_seconds),
    }
    for what, (mine, told) in expected.items():
        if abs(mine - told) > PREDICTION_TOLERANCE * max(1.0, abs(mine)):
            yield f"{what} of {load.name} would be {mine:.6f}, the plan predicts {told:.6f}"


def delay(load: BrokerLoadView, subscriptions: int, matches: float) -> float:
    """The matching delay of a broker with this many more subscriptions, and matches per publication."""
    now = load.match_delay_seconds
    if load.delay is None:  # PADRES 2006, eq. 4
        return now * max(0, load.subscriptions + subscriptions) / load.subscriptions if load.subscriptions else now
    after = float(load.delay.after(_OffloadEffect(subscriptions, matches)))
    return max(0.0, now + after - float(load.delay.delay_seconds)) if now else after


def weights(traffic: SampledTrafficView) -> tuple[list[float], list[float]]:
    """The publications and the bytes per second that each sample stands for."""
    rates = [block.rate for block in traffic.blocks for _ in range(block.width)]
    sizes = [block.rate * block.size_bytes for block in traffic.blocks for _ in range(block.width)]
    return rates, sizes


def samples(*rows: int) -> set[int]:
    """The samples that any of the rows matches."""
    written = bin(reduce(or_, rows))[:1:-1]
    return {number for number, digit in enumerate(written) if digit == "1"}


def total(some: Iterable[int], weights: Sequence[float]) -> float:
    """The total weight of these samples."""
    return sum(weights[number] for number in some if number < len(weights))


# -- the purpose of the plan


def _overloads(plan: OffloadPlanView, fleet: OffloadPlanContext, target: RecomputedLoad) -> Iterator[str]:
    for resource, limit in fleet.lower.items():
        if getattr(target, resource) > limit + PREDICTION_TOLERANCE:
            yield f"{resource} of {plan.target.name} would be {getattr(target, resource):.4f}, above {limit}"


def _objective(
    plan: OffloadPlanView, fleet: OffloadPlanContext, source: RecomputedLoad, target: RecomputedLoad
) -> Iterator[str]:
    before, metric = (_own(plan.source), _own(plan.target)), plan.action.metric
    if plan.action.overloaded:
        much, less = _overload(before[0], fleet), _overload(source, fleet)
        if less >= much and much > 0:
            yield f"{plan.source.name} is overloaded, and would be no less: {much:.4f} -> {less:.4f}"
        return
    was, will = (getattr(each, metric) for each in before), (getattr(each, metric) for each in (source, target))
    (a, b), (c, d) = was, will
    if abs(c - d) > abs(a - b) + PREDICTION_TOLERANCE:
        yield f"the {metric} difference would grow: {abs(a - b):.4f} -> {abs(c - d):.4f}"
    if max(c, d) > max(a, b) + PREDICTION_TOLERANCE:
        yield f"the higher {metric} of the two would grow: {max(a, b):.4f} -> {max(c, d):.4f}"


def _overload(levels: RecomputedLoad, fleet: OffloadPlanContext) -> float:
    return sum(max(0.0, float(getattr(levels, resource)) - limit) for resource, limit in fleet.lower.items())
