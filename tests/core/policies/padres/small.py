"""All fleets of a small size, and their states session by session while nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from tests.core.policies.hand import Broker, World

from plimsoll.core.policies.balancing_policy import BalancingPolicy
from plimsoll.core.policies.detection import Detector, DetectorState
from plimsoll.core.policies.model.load import METRICS
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.plan import OffloadPlan
from plimsoll.core.verify.offload_plan_checker import OffloadPlanContext, offload_plan_faults

LIMITS = BalancingParameters()
LOWER = {"input": 0.9, "output": 0.9, "cpu": 0.9, "memory": 0.9}


@dataclass(frozen=True)
class Hardware:
    """Seconds per publication and subscription, and bytes per second."""

    cost: float
    bandwidth: float


def fleets(wants: dict[str, int], counts: dict[str, tuple[int, ...]], kinds: dict[str, Hardware]) -> Iterator[World]:
    """Every way in which each broker serves one of `counts` subscribers of each key."""
    width = max(wants.values()).bit_length()
    each = [product(counts[name], repeat=len(wants)) for name in kinds]
    for chosen in product(*each):
        brokers = {}
        for (name, kind), numbers in zip(kinds.items(), chosen, strict=True):
            served = {
                key: tuple(f"{name}{key}{i}" for i in range(n)) for key, n in zip(wants, numbers, strict=True) if n
            }
            brokers[name] = Broker(kind.cost, kind.bandwidth, served)
        yield World(width, wants, brokers)


def excess(world: World, parameters: BalancingParameters = LIMITS) -> tuple[float, float, float]:
    """How far from balance: overload; differences of input and delay, then of output, beyond the triggers, squared."""
    loads = [world.load(name).measures for name in world.brokers]
    over = sum(max(0.0, load.of_resource(r) - LOWER[r]) for load in loads for r in ("input", "output"))
    beyond = {
        metric: sum(
            max(0.0, abs(a.of_metric(metric, 0.1) - b.of_metric(metric, 0.1)) - 0.1) ** 2
            for i, a in enumerate(loads)
            for b in loads[:i]
        )
        for metric in METRICS
    }
    return over, beyond["input"] + beyond["match"], beyond["output"]


def sessions(world: World, policy: BalancingPolicy) -> Iterator[tuple[OffloadPlan, World]]:
    """One session after another, each by the first action of a list that comes to something; on every plan `faults`."""
    while (found := _next(world, policy)) is not None:
        world = world.after(found)
        yield found, world


def _next(world: World, policy: BalancingPolicy) -> OffloadPlan | None:
    loads = {name: world.load(name) for name in world.brokers}
    for name, load in loads.items():
        state = Detector(policy.parameters).run(load, (), DetectorState(), 0.0)[1].state
        loads[name] = replace(load, state=state)
    for name in sorted(loads, key=lambda one: (loads[one].state != "N/A", one)):
        _, finding = Detector(policy.parameters).run(loads[name], loads.values(), DetectorState(), 0.0)
        for action in policy.ranked(loads[name], finding.actions, loads):
            profile = world.profile(name, action.target)
            plan = policy.plan(loads[name], loads[action.target], profile, action, others=loads.values())
            assert offload_plan_faults(plan, OffloadPlanContext(profile, LOWER)) == [], (world, plan)
            if plan.moves:
                return plan
    return None
