"""The experiments by name."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from msgspec import structs

from plimsoll.demo.quotes import Quotes
from plimsoll.experiments.padres import accuracy, chain, local
from plimsoll.experiments.result import ExperimentResult
from plimsoll.experiments.stock_world import PolicyPlan

Experiment = Callable[[Quotes, PolicyPlan, int, bool], ExperimentResult]

QUICK_SHARE: Final = 0.1
QUICK_SUBSCRIBERS: Final = 200
"""A quick run shows that an experiment works: a tenth of its time and of its subscribers. Its claims mean nothing."""


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


EXPERIMENTS: Final[Mapping[str, Experiment]] = {local.NAME: _local, accuracy.NAME: _accuracy, chain.NAME: _chain}


def run_experiment(name: str, quotes: Quotes, policy: PolicyPlan, seed: int, *, quick: bool) -> ExperimentResult:
    """Run one experiment; the result says how long it took."""
    wall, processor = time.monotonic(), time.process_time()
    result = EXPERIMENTS[name](quotes, policy, seed, quick)
    return replace(
        result, wall_seconds=time.monotonic() - wall, processor_seconds=time.process_time() - processor
    )  # fmt: skip
