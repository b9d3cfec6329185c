"""The multistage policy of BAD: placement, dynamic migration, and a shuffle where the imbalance is extreme.

At each look the F of every broker is measured: what comes in and what goes out, in bytes per second. Above gamma all
subscribers are shuffled; while cov is above alpha and the mean above beta, subscribers migrate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from plimsoll.core.policies.bad.dynamic_moves import Migration, MoveLimits, imbalance_of, is_lower, migrations
from plimsoll.core.policies.bad.fleet import BadFleet, bad_fleet
from plimsoll.core.policies.bad.greedy_shuffle import greedy_shuffle
from plimsoll.core.policies.bad.imbalance import Imbalance
from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.rebalancer import NO_MEMORY, FleetLook, FleetSample, Memory, ProfileDetail, Steps, StepsEnd

LOOKS_BEFORE_PLAN = 2
"""Looks in a row at which the measured imbalance is too large, before a plan is made: one may be a passing burst."""

Normalization = Literal["None", "Capacity"]
Shuffling = Literal["Greedy", "None"]


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
    interval_seconds: float = 10.0

    @property
    def limits(self) -> MoveLimits:
        """When subscribers migrate."""
        return MoveLimits(self.alpha, self.beta)

    # -- looks

    def observe(self, memory: Memory, look: FleetLook) -> Memory:
        """What was measured, and at how many looks in a row it was too uneven."""
        found = self._measured_imbalance(look)
        looks = min(_count(memory) + 1, LOOKS_BEFORE_PLAN) if self._stage(found) else 0
        highest = max((self.measured(load) for load in look.loads), default=0.0)
        return {"looks": looks, "cov": found.cov, "mean": found.mean, "highest": highest}

    def after_moves(self, memory: Memory) -> Memory:
        """Nothing."""
        del memory
        return {}

    def imbalance(self, look: FleetLook) -> str:
        """cov and mean, if they ask for a stage."""
        return self._asked(self._measured_imbalance(look))

    def _measured_imbalance(self, look: FleetLook) -> Imbalance:
        return Imbalance.of(self.measured(load) for load in sorted(look.loads, key=lambda load: load.name))

    def measured(self, load: BrokerLoad) -> float:
        """F as a broker has measured it."""
        total = load.input_bytes_per_second + load.output_bytes_per_second
        return total / load.capacity if self.normalize == "Capacity" else total

    def wanted(self, memory: Memory) -> str:
        """The measured imbalance, if it was too large at several looks in a row."""
        if _count(memory) < LOOKS_BEFORE_PLAN:
            return ""
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
        """A shuffle if the imbalance is extreme and it helps, then migrations."""
        first, why = imbalance_of(fleet), ""
        if self.shuffle != "None" and first.cov > self.gamma and first.mean > self.beta:
            step = greedy_shuffle(fleet)
            if not (why := _shuffle_refusal(fleet, step_fleet := fleet.after(step), len(step.moves))):
                yield step
                fleet = step_fleet
        fleet = yield from migrations(fleet, self.migration, self.limits)
        return self._end(first, fleet, why)

    def _end(self, first: Imbalance, fleet: BadFleet, why: str) -> StepsEnd:
        last = imbalance_of(fleet)
        told = f"cov {first.cov:.3f} -> {last.cov:.3f}, mean F {last.mean:.4g}{why}"
        if last.mean <= self.beta:
            return StepsEnd("LowLoad", f"{told}, which is not above beta {self.beta:g}")
        if last.cov <= self.alpha:
            return StepsEnd("Balanced", f"{told}, within alpha {self.alpha:g}")
        return StepsEnd("NoBetter", f"{told}; the highest F stays {_highest(fleet):.4g}: {_TRIED[self.migration]}")


_TRIED: Final[Mapping[Migration, str]] = {
    "LoadBased": "none of its subscribers lowers it by going to the edge that carries least",
    "SimilarityBased": "none of its subscribers lowers it by going to the edge below the mean that shares most with it",
    "None": "migration is off",
}
"""What was tried in vain; another edge might have helped, which the scheme does not try."""


def _shuffle_refusal(fleet: BadFleet, after: BadFleet, moves: int) -> str:
    """Why a shuffle is not carried out; empty if it is."""
    if not moves:
        return "; a shuffle would move none"
    if fleet.most is not None and moves > fleet.most:
        return f"; a shuffle would move {moves}, and {fleet.most} may"
    loads = [[broker.load for broker in each.brokers.values()] for each in (after, fleet)]
    return "" if is_lower(*loads) else "; a shuffle would not lower the highest F"


def _highest(fleet: BadFleet) -> float:
    return max((broker.load for broker in fleet.brokers.values()), default=0.0)


def _number(memory: Memory, name: str) -> float:
    found: Any = memory.get(name)
    return float(found) if isinstance(found, int | float) and math.isfinite(found) else 0.0


def _count(memory: Memory) -> int:
    """Looks so far. Memory comes from the store, and may have been written by another policy or version."""
    found: Any = memory.get("looks")
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else 0
