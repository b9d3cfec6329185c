"""The multistage policy of BAD: placement, dynamic migration, and a shuffle where the imbalance is extreme.

At each look the F of every broker is measured: what comes in and what goes out, in bytes per second. Above gamma all
subscribers are shuffled; while cov is above alpha and the mean above beta, subscribers migrate.

The paper has no measure of overload, and takes the heaviest first. By our rules overloaded brokers are relieved before
all else, no move overloads its target, and in small fleets the fewest moves are found. `rules` selects the letter.
"""

# ruff: noqa: RUF009  # frozen values, safe as defaults

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from plimsoll.core.policies.bad.dynamic_moves import Migration, MoveLimits, imbalance_of, is_lower, migrations
from plimsoll.core.policies.bad.fewest_moves import fewest_moves
from plimsoll.core.policies.bad.fleet import BadFleet, bad_fleet
from plimsoll.core.policies.bad.greedy_shuffle import greedy_shuffle
from plimsoll.core.policies.bad.imbalance import Imbalance
from plimsoll.core.policies.bad.relief import OverloadRules
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.rebalancer import (
    NO_MEMORY,
    FleetLook,
    FleetSample,
    Memory,
    ProfileDetail,
    Step,
    Steps,
    StepsEnd,
)

LOOKS_BEFORE_PLAN = 2
"""Looks in a row at which the measured imbalance is too large, before a plan is made: one may be a passing burst."""

ROUNDS_AT_MOST = 3
"""How often fewer moves are looked for, and what they leave to be done is done."""

NAMED_AT_MOST = 3
"""The most overloaded resources that a reason names."""

Normalization = Literal["None", "Capacity"]
Shuffling = Literal["Greedy", "None"]
Rules = Literal["Plimsoll", "Paper"]


@dataclass(frozen=True)
class Bad:
    """BAD 2019. `beta` is in bytes per second, or in that by capacity with `normalize`."""

    name: ClassVar[str] = "Bad"
    metric: ClassVar[str] = "input and output in bytes per second"
    profiles: ClassVar[ProfileDetail] = "each"

    migration: Migration = "LoadBased"
    shuffle: Shuffling = "Greedy"
    alpha: float = 0.15
    beta: float = 300.0
    gamma: float = 0.5
    normalize: Normalization = "None"
    rules: Rules = "Plimsoll"
    overload: OverloadRules = OverloadRules()
    interval_seconds: float = 10.0

    @property
    def limits(self) -> MoveLimits:
        """When subscribers migrate."""
        return MoveLimits(self.alpha, self.beta)

    # -- looks

    def observe(self, memory: Memory, look: FleetLook) -> Memory:
        """What was measured, and at how many looks in a row it was too uneven, or a broker overloaded."""
        found, over = self._measured_imbalance(look), self._overloaded(look)
        looks = min(_count(memory) + 1, LOOKS_BEFORE_PLAN) if self._stage(found) or over else 0
        highest = max((self.measured(load) for load in look.loads), default=0.0)
        return {"looks": looks, "cov": found.cov, "mean": found.mean, "highest": highest, "overloaded": over}

    def relieved(self, loads: Sequence[BrokerLoad]) -> frozenset[str]:
        """The brokers that a plan relieves before it evens out loads, by name."""
        above = self.overload.thresholds.above_higher
        return frozenset(load.name for load in loads if self.rules != "Paper" and above(load.measures))

    def _overloaded(self, look: FleetLook) -> str:
        """What is overloaded, in words; by the letter of the paper nothing is."""
        if self.rules == "Paper":
            return ""
        found = self.overload.overloaded(sorted(look.loads, key=lambda load: load.name))
        return f"overloaded: {', '.join(found[:NAMED_AT_MOST])}" if found else ""

    def after_moves(self, memory: Memory) -> Memory:
        """Nothing."""
        del memory
        return {}

    def imbalance(self, look: FleetLook) -> str:
        """What is overloaded; or cov and mean, if they ask for a stage."""
        return self._overloaded(look) or self._asked(self._measured_imbalance(look))

    def _measured_imbalance(self, look: FleetLook) -> Imbalance:
        return Imbalance.of(self.measured(load) for load in sorted(look.loads, key=lambda load: load.name))

    def measured(self, load: BrokerLoad) -> float:
        """F as a broker has measured it."""
        total = load.input_bytes_per_second + load.output_bytes_per_second
        return total / load.capacity if self.normalize == "Capacity" else total

    def wanted(self, memory: Memory) -> str:
        """The overload or the measured imbalance, if it was too large at several looks in a row."""
        if _count(memory) < LOOKS_BEFORE_PLAN:
            return ""
        over = memory.get("overloaded")
        if isinstance(over, str) and over and self.rules != "Paper":
            return over
        return self._asked(Imbalance(_number(memory, "mean"), _number(memory, "cov")))

    def _asked(self, found: Imbalance) -> str:
        stage = self._stage(found)
        return f"cov {found.cov:.3f}, mean F {found.mean:.4g} B/s: {stage}" if stage else ""

    def _stage(self, found: Imbalance) -> str:
        """The stage that an imbalance asks for, in words; empty if none."""
        if found.mean <= self.beta:
            return ""
        if self.shuffle != "None" and found.cov > self.gamma:
            return f"above gamma {self.gamma:g}, shuffle"
        if self.migration != "None" and found.cov > self.alpha:
            return f"above alpha {self.alpha:g}, migrate"
        return ""

    # -- plans

    def fleet(self, sample: FleetSample, _memory: Memory = NO_MEMORY) -> BadFleet:
        """The brokers with their subscribers and back-end subscriptions."""
        return bad_fleet(sample, by_capacity=self.normalize == "Capacity")

    def steps(self, fleet: BadFleet, memory: Memory) -> Steps:
        """A shuffle if the imbalance is extreme and it helps, then migrations; by our rules relief comes first."""
        first = imbalance_of(fleet)
        if self.rules == "Paper":
            fleet, why = yield from self._stages(fleet)
            return self._end(first, fleet, why)
        start = fleet
        taken, fleet, why = self._taken(fleet)
        for _ in range(ROUNDS_AT_MOST):
            if (fewer := fewest_moves(start, fleet, self.overload)) is None:
                break
            more, fleet, why = self._taken(start.after(fewer))
            taken = [fewer, *more]
        yield from taken
        return self._end(first, fleet, why)

    def _taken(self, fleet: BadFleet) -> tuple[list[Step], BadFleet, str]:
        """All steps at once, since fewer might do as much."""
        stages, taken = self._stages(fleet), list[Step]()
        while True:
            try:
                taken.append(next(stages))
            except StopIteration as end:
                return taken, *end.value

    def _stages(self, fleet: BadFleet) -> Generator[Step, None, tuple[BadFleet, str]]:
        """The steps of all stages; returns the fleet after them, and why a shuffle was not carried out."""
        is_letter, why = self.rules == "Paper", ""
        if not is_letter:
            fleet = yield from self.overload.reliefs(fleet, self.migration)
        first = imbalance_of(fleet)
        if self.shuffle != "None" and first.cov > self.gamma and first.mean > self.beta:
            step = greedy_shuffle(fleet)
            after = fleet.after(step)
            why = _shuffle_refusal(fleet, after, len(step.moves))
            why = why or ("" if is_letter else _returns(step, fleet) or self._overloads(step, after))
            if not why:
                yield step
                fleet = after
        fleet = yield from migrations(fleet, self.migration, self.limits, None if is_letter else self.overload.admits)
        return fleet, why

    def _overloads(self, step: Step, after: BadFleet) -> str:
        """Why a shuffle is not carried out that would bring a target above a lower threshold; empty if none."""
        targets = {move.target for move in step.moves}
        for load in after.loads:
            if load.name in targets and (over := self.overload.thresholds.above_lower(load.measures)):
                return f"; a shuffle would bring {', '.join(over)} of {load.name} above the lower threshold"
        return ""

    def _end(self, first: Imbalance, fleet: BadFleet, why: str) -> StepsEnd:
        last = imbalance_of(fleet)
        told = f"cov {first.cov:.3f} -> {last.cov:.3f}, mean F {last.mean:.4g}{why}"
        if last.mean <= self.beta:
            return StepsEnd("LowLoad", f"{told}, which is not above beta {self.beta:g}")
        if last.cov <= self.alpha:
            return StepsEnd("Balanced", f"{told}, within alpha {self.alpha:g}")
        tried = _TRIED[self.migration] + ("" if self.rules == "Paper" or self.migration == "None" else _OF_THOSE)
        return StepsEnd("NoBetter", f"{told}; the highest F stays {_highest(fleet):.4g}: {tried}")


_TRIED: Final[Mapping[Migration, str]] = {
    "LoadBased": "none of its subscribers lowers it by going to the edge that carries least",
    "SimilarityBased": "none of its subscribers lowers it by going to the edge below the mean that shares most with it",
    "None": "migration is off",
}
"""What was tried in vain; another edge might have helped, which the scheme does not try."""

_OF_THOSE: Final = ", of those that it leaves below their lower thresholds and has not left before at this load"


def _shuffle_refusal(fleet: BadFleet, after: BadFleet, moves: int) -> str:
    """Why a shuffle is not carried out; empty if it is."""
    if not moves:
        return "; a shuffle would move none"
    if fleet.most is not None and moves > fleet.most:
        return f"; a shuffle would move {moves}, and {fleet.most} may"
    loads = [[broker.load for broker in each.brokers.values()] for each in (after, fleet)]
    return "" if is_lower(*loads) else "; a shuffle would not lower the highest F"


def _returns(step: Step, fleet: BadFleet) -> str:
    """Why a shuffle is not carried out that takes subscribers back; empty if it takes none."""
    back = [
        name for move in step.moves for name in move.subscribers
        if move.target in fleet.brokers[move.source].subscribers[name].left
    ]  # fmt: skip
    return f"; a shuffle would take {len(back)} back to edges that they were moved from" if back else ""


def _highest(fleet: BadFleet) -> float:
    return max((broker.load for broker in fleet.brokers.values()), default=0.0)


def _number(memory: Memory, name: str) -> float:
    found: Any = memory.get(name)
    return float(found) if isinstance(found, int | float) and math.isfinite(found) else 0.0


def _count(memory: Memory) -> int:
    """Looks so far. Memory comes from the store, and may have been written by another policy or version."""
    found: Any = memory.get("looks")
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else 0
