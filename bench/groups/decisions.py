"""How long a head takes to decide: 1,000 consumers and 10,000 slices, who join, leave, and have uneven costs."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

from plimsoll.core.policies.consumer_groups.cost_balancing import CostBalancing
from plimsoll.core.policies.consumer_groups.membership import settle
from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, SliceLoad, SlicePlan, owners
from plimsoll.core.policies.consumer_groups.pairing import Pairing
from plimsoll.core.verify.slice_plan_checker import slice_plan_faults


def group(consumers: int, slices: int, seed: int) -> list[ConsumerLoad]:
    """Slices dealt out evenly, with costs that differ by a factor of ten."""
    rng = random.Random(seed)
    loads = [SliceLoad(n, rng.uniform(1.0, 10.0), 0.001) for n in range(slices)]
    return [ConsumerLoad(f"c{i:04}", tuple(loads[i::consumers]), cpu=rng.uniform(0.2, 1.0)) for i in range(consumers)]


def decisions(consumers: int, slices: int, seed: int = 1) -> dict[str, Any]:
    """Processor milliseconds and moves of each decision, after its plan was checked."""
    there = group(consumers, slices, seed)
    newcomer = [*there, ConsumerLoad("newcomer")]
    leaving = [ConsumerLoad(c.name, c.slices, is_leaving=i == 0) for i, c in enumerate(there)]
    cases: dict[str, tuple[list[ConsumerLoad], Callable[[], SlicePlan]]] = {
        "all slices to the first consumers": (
            [ConsumerLoad(c.name) for c in there], lambda: settle([ConsumerLoad(c.name) for c in there], range(slices))
        ),
        "a consumer joins": (newcomer, lambda: settle(newcomer)),
        "a consumer leaves": (leaving, lambda: settle(leaving)),
        "Rates": (there, lambda: CostBalancing().balance(there)),
        "Pairing": (there, lambda: Pairing().balance(there)),
    }  # fmt: skip
    found = {}
    for name, (before, decide) in cases.items():
        began = time.process_time()
        plan = decide()
        seconds = time.process_time() - began
        takes = {c.name for c in before if not c.is_leaving}
        if faults := slice_plan_faults(plan.sessions, owners(before), takes, slices):
            raise AssertionError(f"{name}: {faults[:3]}")
        found[name] = {"milliseconds": round(1000 * seconds, 1), "moves": len(plan.moves)}
    return found
