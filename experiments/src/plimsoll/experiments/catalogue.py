"""The experiments by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec import structs

from plimsoll.demo.quotes import Quotes
from plimsoll.experiments.bad import prototype, simulation
from plimsoll.experiments.delay_sensitive import burst
from plimsoll.experiments.dpslb import balance, moves, scale
from plimsoll.experiments.padres import accuracy, chain, local
from plimsoll.experiments.pulsar import policies, shedding
from plimsoll.experiments.result import ExperimentResult
from plimsoll.experiments.stock_world import PolicyPlan

QuoteRun = Callable[[Quotes, PolicyPlan, int, bool], ExperimentResult]
OwnRun = Callable[[int, bool], ExperimentResult]

QUICK_SHARE: Final = 0.1
QUICK_SUBSCRIBERS: Final = 200
"""A quick run shows that an experiment works: a tenth of its time and of its subscribers. Its claims mean nothing."""


@dataclass(frozen=True, slots=True)
class QuoteExperiment:
    """Replays stock quotes under a policy that may be chosen."""

    run: QuoteRun


@dataclass(frozen=True, slots=True)
class PolicyExperiment:
    """Compares the schemes of one policy in a world of its own: there is no policy to choose."""

    run: OwnRun
    policy: str


def _quick(scenario: Any) -> Any:
    return structs.replace(scenario, seconds=scenario.seconds * QUICK_SHARE, subscribers=QUICK_SUBSCRIBERS)


def _local(quotes: Quotes, policy: PolicyPlan, seed: int, quick: bool) -> ExperimentResult:
    if quick:
        return local.run(quotes, policy, seed, scenario=_quick(local.SCENARIO), sweeps=False)
    return local.run(quotes, policy, seed)


def _accuracy(quotes: Quotes, policy: PolicyPlan, seed: int, quick: bool) -> ExperimentResult:
    if quick:
        return accuracy.run(quotes, policy, seed, scenario=_quick(local.SCENARIO), samples=(1, 10))
    return accuracy.run(quotes, policy, seed)


def _chain(quotes: Quotes, policy: PolicyPlan, seed: int, quick: bool) -> ExperimentResult:
    if quick:
        return chain.run(quotes, policy, seed, scenario=_quick(chain.SCENARIO), sweeps=False)
    return chain.run(quotes, policy, seed)


def _prototype(seed: int, quick: bool) -> ExperimentResult:
    return prototype.run(seed, plan=prototype.small() if quick else prototype.PLAN)


def _simulation(seed: int, quick: bool) -> ExperimentResult:
    return simulation.run(seed, plan=simulation.small() if quick else simulation.PLAN)


def _shedding(seed: int, quick: bool) -> ExperimentResult:
    return shedding.run(seed, plan=shedding.small() if quick else shedding.PLAN)


def _policies(seed: int, quick: bool) -> ExperimentResult:
    return policies.run(seed, plan=policies.small() if quick else policies.PLAN)


def _burst(seed: int, quick: bool) -> ExperimentResult:
    return burst.run(seed, plan=burst.small() if quick else burst.PLAN)


def _balance(seed: int, quick: bool) -> ExperimentResult:
    return balance.run(seed, plan=balance.small() if quick else balance.PLAN)


def _moves(seed: int, quick: bool) -> ExperimentResult:
    return moves.run(seed, plan=moves.small() if quick else moves.PLAN)


def _scale(seed: int, quick: bool) -> ExperimentResult:
    return scale.run(seed, plan=scale.small() if quick else scale.PLAN)


EXPERIMENTS: Final[Mapping[str, QuoteExperiment | PolicyExperiment]] = {
    local.NAME: QuoteExperiment(_local), accuracy.NAME: QuoteExperiment(_accuracy), chain.NAME: QuoteExperiment(_chain),
    prototype.NAME: PolicyExperiment(_prototype, "bad"), simulation.NAME: PolicyExperiment(_simulation, "bad"),
    burst.NAME: PolicyExperiment(_burst, "delay-sensitive"),
    shedding.NAME: PolicyExperiment(_shedding, "pulsar"), policies.NAME: PolicyExperiment(_policies, "pulsar"),
    balance.NAME: PolicyExperiment(_balance, "dpslb"), moves.NAME: PolicyExperiment(_moves, "dpslb"),
    scale.NAME: PolicyExperiment(_scale, "dpslb"),
}  # fmt: skip


def run_experiment(
    name: str, quotes: Quotes | None, policy: PolicyPlan, seed: int, *, quick: bool
) -> ExperimentResult:  # fmt: skip
    """Run one experiment; the result says how long it took. `quotes`, `policy`: of those that replay quotes."""
    wall, processor, chosen = time.monotonic(), time.process_time(), EXPERIMENTS[name]
    if isinstance(chosen, PolicyExperiment):
        result = chosen.run(seed, quick)
    elif quotes is None:
        raise ValueError(f"{name} replays stock quotes; give it those of plimsoll.demo.quotes")
    else:
        result = chosen.run(quotes, policy, seed, quick)
    return replace(
        result, wall_seconds=time.monotonic() - wall, processor_seconds=time.process_time() - processor
    )  # fmt: skip
