"""Policies by the names that specifications give them.

All of them share detection; they differ in which broker is asked first and in what moves. A plan is a function of its
inputs: random choices are drawn from a seed and the numbers of the load reports.
"""

from __future__ import annotations

from plimsoll.core.policies.balancing_policy import BalancingPolicy
from plimsoll.core.policies.greedy import Greedy
from plimsoll.core.policies.least_loaded import LeastLoaded
from plimsoll.core.policies.model.load import OverloadThreshold, Resource, ResourceThresholds
from plimsoll.core.policies.model.parameters import BalancingParameters, ImbalanceTrigger, Scope
from plimsoll.core.policies.padres import Padres
from plimsoll.core.policies.random import Random
from plimsoll.core.spec.quantities import Quantity
from plimsoll.core.spec.types.policy import PadresParameters, PolicySpec, PolicyType, RandomParameters

POLICIES: dict[PolicyType, type[BalancingPolicy]] = {
    policy.name: policy for policy in (Padres, Random, LeastLoaded, Greedy)
}


def policy_of_spec(spec: PolicySpec, time_factor: float = 1.0, scope: Scope = "Local") -> BalancingPolicy:
    """The policy that a specification names, with durations scaled to the fleet's clock."""
    own = parameters_of_spec(spec, time_factor)
    if spec.type == "Random":
        return Random(own, scope, seed=(spec.random or RandomParameters()).seed)
    return POLICIES[spec.type](own, scope)


def parameters_of_spec(spec: PolicySpec, time_factor: float = 1.0) -> BalancingParameters:
    """The parameters of detection and balance in a specification, scaled to the fleet's clock."""
    detection = spec.detection
    local, wide = detection.local_trigger, detection.global_trigger
    padres = spec.padres or PadresParameters()
    return BalancingParameters(
        thresholds=_thresholds(spec),
        local_trigger=ImbalanceTrigger(_ratio(local.ratio), _ratio(local.delay)),
        global_trigger=ImbalanceTrigger(_ratio(wide.ratio), _ratio(wide.delay)),
        normalization_seconds=detection.normalization.seconds,
        stabilize_seconds=detection.stabilize_for.seconds,
        stabilize_change=_ratio(detection.stabilize_change),
        detection_seconds=detection.interval.seconds,
        fresh_seconds=detection.reports_valid_for.seconds,
        balance_threshold=_ratio(padres.balance_threshold),
        rules=padres.rules,
    ).scaled(time_factor)


def _thresholds(spec: PolicySpec) -> ResourceThresholds:
    def threshold(resource: Resource) -> OverloadThreshold:
        found = getattr(spec.detection.overload, resource)
        return OverloadThreshold(_ratio(found.lower), _ratio(found.higher))

    return ResourceThresholds(threshold("input"), threshold("output"), threshold("cpu"), threshold("memory"))


def _ratio(quantity: Quantity) -> float:
    return float(quantity.value)
