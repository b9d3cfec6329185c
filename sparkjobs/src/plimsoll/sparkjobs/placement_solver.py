"""Places all subscribers of a fleet on its brokers, by groups of subscribers that take the same items.

The load of a broker is a set function (BAD 2019; PADRES 2006, eq. 2 and 3): its input counts once, however many of its
subscribers share it, and its output counts for each of them,

    load(j) = input_cost * rate(union of the items of its subscribers) + output_cost * sum of their rates,

and its utilisation is load / capacity. The highest utilisation is to be minimal. That is bin packing with shared parts,
which is too hard to solve exactly: results are a plan, and a lower bound to compare it with.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
BISECTION_STEPS = 12
"""Steps of a bisection between a target that can be met and one that cannot: the error is 1/4096 of their distance."""


@dataclass(frozen=True, slots=True)
class SubscriberGroup:
    """Subscribers that take the same items. `count_by_broker`: pairs of a broker and the number of them there now."""

    items: tuple[int, ...]
    count_by_broker: tuple[tuple[int, int], ...]

    @property
    def count(self) -> int:
        return sum(number for _, number in self.count_by_broker)


@dataclass(frozen=True, slots=True)
class PlacementProblem:
    """`rates`: publications per second of each item; `capacities`: of each broker, in units of load."""

    rates: Floats
    capacities: Floats
    groups: Sequence[SubscriberGroup]
    input_cost: float = 1.0
    output_cost: float = 1.0

    def input_of(self, group: SubscriberGroup) -> float:
        return self.input_cost * float(self.rates[list(group.items)].sum())

    def output_of(self, group: SubscriberGroup) -> float:
        """The load of one subscriber's deliveries."""
        return self.output_cost * float(self.rates[list(group.items)].sum())


@dataclass(slots=True)
class SubscriberPlacement:
    """`placed[g]`: the number of subscribers of group g by broker."""

    placed: list[dict[int, int]] = field(default_factory=list)

    def utilizations(self, problem: PlacementProblem) -> Floats:
        """Computed by the definition, independently of how the placement was made."""
        held = np.zeros((len(problem.rates), len(problem.capacities)), dtype=bool)
        load = np.zeros(len(problem.capacities))
        for group, placed in zip(problem.groups, self.placed, strict=True):
            output = problem.output_of(group)
            for broker, number in placed.items():
                held[list(group.items), broker] = True
                load[broker] += number * output
        load += problem.input_cost * (problem.rates @ held)
        return np.asarray(load / problem.capacities)

    def moves(self, problem: PlacementProblem) -> int:
        """The number of subscribers that change their broker. Those of a group are interchangeable."""
        stay = 0
        for group, placed in zip(problem.groups, self.placed, strict=True):
            stay += sum(min(number, placed.get(broker, 0)) for broker, number in group.count_by_broker)
        return sum(group.count for group in problem.groups) - stay


def lower_bound(problem: PlacementProblem) -> float:
    """A highest utilisation below which no placement can be.

    At a target T no broker carries more than T times the greatest capacity, so an item whose takers have an output load
    of D in all is input of at least D / (T * greatest - its own rate) brokers. All that input and output must fit.
    """
    total, greatest = float(problem.capacities.sum()), float(problem.capacities.max())
    output = np.array([problem.output_of(group) for group in problem.groups])
    if not len(output):
        return 0.0
    demand = np.zeros(len(problem.rates))
    largest = 0.0
    for group, each in zip(problem.groups, output, strict=True):
        demand[list(group.items)] += each * group.count
        largest = max(largest, problem.input_of(group) + each)
    all_output = float(sum(each * group.count for group, each in zip(problem.groups, output, strict=True)))
    wanted = demand > 0
    demand, rates = demand[wanted], problem.input_cost * problem.rates[wanted]

    def fits(target: float) -> bool:
        room = target * greatest - rates
        if (room <= 0).any():
            return False
        copies = np.maximum(1.0, np.ceil(demand / room - 1e-9))
        return all_output + float(copies @ rates) <= target * total * (1 + 1e-12)

    low = max(largest / greatest, (all_output + float(rates.sum())) / total)
    high = low
    while not fits(high):
        high *= 2
    return low if high == low else _bisect(low, high, fits, 40)


def _bisect(low: float, high: float, fits: Callable[[float], bool], steps: int) -> float:
    """The highest target found that does not fit: a lower bound of the least that does."""
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return low


def pack_lpt(problem: PlacementProblem) -> SubscriberPlacement:
    """Longest processing time first (Graham 1969): subscribers by falling weight, each to the least loaded broker.

    It ignores that input is shared, so the loads that it adds up are too high; `utilizations` has the real ones.
    """
    order = sorted(range(len(problem.groups)), key=lambda g: (-problem.output_of(problem.groups[g]), g))
    placement = SubscriberPlacement([{} for _ in problem.groups])
    heap = [(0.0, broker) for broker in range(len(problem.capacities))]
    for number in order:
        group, placed = problem.groups[number], placement.placed[number]
        weight = problem.input_of(group) + problem.output_of(group)
        for _ in range(group.count):
            load, broker = heap[0]
            heapq.heapreplace(heap, (load + weight / problem.capacities[broker], broker))
            placed[broker] = placed.get(broker, 0) + 1
    return placement


def pack_sharing_input(problem: PlacementProblem, bound: float, keep: bool = False) -> SubscriberPlacement:
    """Pack each group where it adds least input, with the lowest target for which that succeeds.

    With `keep`, subscribers that fit stay where they are and only the others are packed: fewer moves, higher load.
    """
    low, high, best = bound, bound * 1.05, None
    while best is None:
        best = _pack(problem, high, keep)
        low, high = (low, high) if best is not None else (high, high * 1.3)
    for _ in range(BISECTION_STEPS):
        if high - low <= 0.002 * bound:
            break
        middle = (low + high) / 2
        found = _pack(problem, middle, keep)
        best, low, high = (found, low, middle) if found is not None else (best, middle, high)
    return best


class _BinPacking:
    """Brokers while they are filled up to a target."""

    def __init__(self, problem: PlacementProblem, target: float) -> None:
        self.problem = problem
        self.room = target * problem.capacities.copy()
        self.held = np.zeros((len(problem.rates), len(problem.capacities)), dtype=bool)
        self.cost = problem.input_cost * problem.rates

    def extra_input(self, items: list[int]) -> Floats:
        """The input that these items would add at each broker."""
        return np.asarray(self.cost[items] @ ~self.held[items, :])

    def place(self, items: list[int], broker: int, number: int, output: float, extra: float) -> None:
        self.room[broker] -= extra + number * output
        self.held[items, broker] = True

    def fitting(self, broker: int, wanted: int, output: float, extra: float) -> int:
        room = self.room[broker] - extra + 1e-9 * self.problem.capacities[broker]
        if room < 0:
            return 0
        return wanted if output <= 0 else min(wanted, int(room / output))


def _pack(problem: PlacementProblem, target: float, keep: bool) -> SubscriberPlacement | None:
    """A placement with no utilisation above `target`, or None if this order of packing finds none."""
    packing = _BinPacking(problem, target)
    placement = SubscriberPlacement([{} for _ in problem.groups])
    left = [group.count for group in problem.groups]
    order = _packing_order(problem)
    if keep:
        _keep_in_place(problem, packing, placement, left, order)
    for number in order:
        group, items = problem.groups[number], list(problem.groups[number].items)
        output = problem.output_of(group)
        while left[number]:
            extra = packing.extra_input(items)
            put = _choose_broker(packing, extra, left[number], output)
            if put is None:
                return None
            broker, some = put
            packing.place(items, broker, some, output, float(extra[broker]))
            placement.placed[number][broker] = placement.placed[number].get(broker, 0) + some
            left[number] -= some
    return placement


def _packing_order(problem: PlacementProblem) -> list[int]:
    """Groups by falling total load, so that the last ones to place are small."""
    weights = [problem.input_of(group) + problem.output_of(group) * group.count for group in problem.groups]
    return sorted(range(len(weights)), key=lambda g: (-weights[g], problem.groups[g].items))


def _choose_broker(packing: _BinPacking, extra: Floats, wanted: int, output: float) -> tuple[int, int] | None:
    """The broker for a group and the number to place there: all, where that adds least input; else the best part."""
    after = packing.room - extra - wanted * output
    whole = np.flatnonzero(after >= -1e-9 * packing.problem.capacities)
    if len(whole):
        least = extra[whole].min()
        among = whole[extra[whole] <= least + 1e-12]
        return int(among[np.argmin(after[among])]), wanted  # best fit: leave large rooms large
    some = np.floor(np.maximum(0.0, packing.room - extra) / output) if output > 0 else np.zeros_like(extra)
    if some.max() < 1:
        return None
    # The added input is the same for any number of subscribers, so choose the least per subscriber placed.
    price = np.where(some >= 1, extra / np.maximum(some, 1), math.inf)
    best = np.flatnonzero(price <= price.min() + 1e-12)
    broker = int(best[np.argmax(some[best])])
    number = packing.fitting(broker, wanted, output, float(extra[broker]))
    return (broker, number) if number else None


def relabel_brokers(problem: PlacementProblem, placement: SubscriberPlacement) -> SubscriberPlacement:
    """The same loads with fewer moves: of brokers of equal capacity, swap those that then keep most subscribers."""
    size = len(problem.capacities)
    shared = np.zeros((size, size), dtype=np.int64)  # subscribers at the first broker now and at the second then
    for group, placed in zip(problem.groups, placement.placed, strict=True):
        for now, here in group.count_by_broker:
            for then, there in placed.items():
                shared[now, then] += min(here, there)
    shared[problem.capacities[:, None] != problem.capacities[None, :]] = -1
    names: dict[int, int] = {}
    taken: set[int] = set()
    for place in np.argsort(-shared, axis=None, kind="stable"):
        now, then = divmod(int(place), size)
        if shared[now, then] >= 0 and then not in names and now not in taken:
            names[then] = now
            taken.add(now)
    return SubscriberPlacement(
        [{names[then]: number for then, number in placed.items()} for placed in placement.placed]
    )


def _keep_in_place(
    problem: PlacementProblem,
    packing: _BinPacking,
    placement: SubscriberPlacement,
    left: list[int],
    order: Sequence[int],
) -> None:
    """Let subscribers stay that fit where they are, the heaviest groups first."""
    for number in order:
        group, items = problem.groups[number], list(problem.groups[number].items)
        output = problem.output_of(group)
        for broker, here in group.count_by_broker:
            fresh = [item for item in items if not packing.held[item, broker]]
            extra = float(packing.cost[fresh].sum())
            if some := packing.fitting(broker, here, output, extra):
                packing.place(items, broker, some, output, extra)
                placement.placed[number][broker] = some
                left[number] -= some
