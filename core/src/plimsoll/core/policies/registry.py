"""Policies by the names that specifications give them.

Those of pairs share detection; they differ in which broker is asked first and in what moves. A rebalancer plans for all
edges of a cluster at once, and needs no detection. A plan is a function of its
inputs: random choices are drawn from a seed and the numbers of the load reports.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from plimsoll.core.policies.bad import Bad
from plimsoll.core.policies.bad.placers import NearestPlacer, RandomPlacer, RoundRobinPlacer
from plimsoll.core.policies.bad.relief import OverloadRules
from plimsoll.core.policies.balancing_policy import BalancingPolicy
from plimsoll.core.policies.delay_sensitive import DelaySensitive
from plimsoll.core.policies.delay_sensitive.head_relief import HeadRelief
from plimsoll.core.policies.delay_sensitive.limits import DeadlineLimits
from plimsoll.core.policies.delay_sensitive.placer import LeastUsedPlacer
from plimsoll.core.policies.greedy import Greedy
from plimsoll.core.policies.least_loaded import LeastLoaded
from plimsoll.core.policies.model.load import (
    NO_THRESHOLD,
    NO_THRESHOLDS,
    OverloadThreshold,
    Resource,
    ResourceThresholds,
)
from plimsoll.core.policies.model.parameters import BalancingParameters, ImbalanceTrigger, Scope
from plimsoll.core.policies.model.topic_correlation import correlation_of_spec
from plimsoll.core.policies.padres import Padres
from plimsoll.core.policies.placement import LeastLoadedPlacer, Placer
from plimsoll.core.policies.pulsar import Pulsar
from plimsoll.core.policies.pulsar.placer import LeastLongTermMessageRate
from plimsoll.core.policies.pulsar.shedding import AvgThresholds
from plimsoll.core.policies.pulsar.splitting import SplitLimits
from plimsoll.core.policies.pulsar.usage import UsageWeights
from plimsoll.core.policies.random import Random
from plimsoll.core.spec.quantities import Quantity
from plimsoll.core.spec.types.policy import (
    FLEET_WIDE_TYPES,
    BadParameters,
    HeadThresholds,
    PadresParameters,
    PolicySpec,
    PolicyType,
    PulsarParameters,
    RandomParameters,
)

POLICIES: dict[PolicyType, type[BalancingPolicy]] = {
    policy.name: policy for policy in (Padres, Random, LeastLoaded, Greedy)
}


REBALANCERS: Final = (Bad, Pulsar, DelaySensitive)
"""Policies that plan for all edges of a cluster at once."""


def is_fleet_wide(spec: PolicySpec) -> bool:
    """Whether the policy plans for all edges of a cluster at once, so that no edge asks for balance itself."""
    return spec.type in FLEET_WIDE_TYPES


def rebalancer_of_spec(spec: PolicySpec, time_factor: float = 1.0) -> Bad | Pulsar | DelaySensitive | None:
    """The policy that plans for a whole cluster; None if edges ask for balance themselves."""
    if spec.type == "Bad":
        return _bad(spec.bad or BadParameters(), _thresholds(spec), time_factor)
    return pulsar_of_spec(spec, time_factor) or deadlines_of_spec(spec, time_factor)


def deadlines_of_spec(spec: PolicySpec, time_factor: float = 1.0) -> DelaySensitive | None:
    """The policy that defends deadlines; None under any other."""
    own = spec.delay_sensitive
    if spec.type != "DelaySensitive" or own is None:
        return None
    limits = own.thresholds
    return DelaySensitive(
        topic_attribute=own.topic_attribute,
        limits=DeadlineLimits(
            OverloadThreshold(_ratio(limits.downlink.lower), _ratio(limits.downlink.higher)),
            OverloadThreshold(_ratio(limits.matching.lower), _ratio(limits.matching.higher)),
            OverloadThreshold(_ratio(limits.uplink.lower), NO_THRESHOLD),
        ),
        balancing_seconds=own.balancing_time.seconds * time_factor,
        placer=LeastUsedPlacer(_ratio(limits.uplink.lower)),
        correlation=correlation_of_spec(spec),
        rules=own.rules,
        interval_seconds=own.interval.seconds * time_factor,
    )


def head_relief_of_spec(spec: PolicySpec, time_factor: float = 1.0) -> HeadRelief | None:
    """The policy by which publishers leave an overloaded head; None under one by which they stay."""
    own = spec.delay_sensitive
    if spec.type != "DelaySensitive" or own is None or own.publishers == "Stay":
        return None
    limits = own.thresholds
    return HeadRelief(
        DeadlineLimits(_of_head(limits.head_downlink), NO_THRESHOLDS, _of_head(limits.head_uplink)),
        own.rules,
        own.interval.seconds * time_factor,
    )


def _of_head(found: HeadThresholds) -> OverloadThreshold:
    return OverloadThreshold(*(NO_THRESHOLD if one is None else _ratio(one) for one in (found.lower, found.higher)))


def _bad(own: BadParameters, thresholds: ResourceThresholds, time_factor: float) -> Bad:
    return Bad(
        migration=own.migration,
        shuffle=own.shuffle,
        alpha=_ratio(own.alpha),
        beta=_ratio(own.beta),
        gamma=_ratio(own.gamma),
        normalize=own.normalize,
        rules=own.rules,
        overload=OverloadRules(thresholds),
        interval_seconds=own.interval.seconds * time_factor,
    )


def pulsar_of_spec(spec: PolicySpec, time_factor: float = 1.0) -> Pulsar | None:
    """The policy that moves bundles; None under any other."""
    own = spec.pulsar
    if spec.type != "Pulsar" or own is None:
        return None
    split, shedding, weights = own.split, own.shedding, own.shedding.weights
    return Pulsar(
        topic_attribute=own.topic_attribute,
        bundles=own.bundles.initial,
        limits=SplitLimits(
            split.max_topics, split.max_sessions, _ratio(split.max_message_rate), _ratio(split.max_bandwidth),
            own.bundles.maximum,
        ),
        splits=split.auto,
        algorithm=split.algorithm,
        unload_halves=split.unload_halves,
        shedder=shedding.strategy,
        threshold=_ratio(shedding.threshold),
        history=_ratio(shedding.history),
        weights=UsageWeights(*map(_ratio, (weights.cpu, weights.memory, weights.input, weights.output))),
        pairs=AvgThresholds(_ratio(shedding.low), _ratio(shedding.high), shedding.low_looks, shedding.high_looks),
        placer=_lookup_placer(own),
        unload=own.unload,
        rules=own.rules,
        overload=_thresholds(spec),
        interval_seconds=own.interval.seconds * time_factor,
    )  # fmt: skip


def topic_attribute(spec: PolicySpec | None) -> str:
    """The attribute whose values are the topics of a policy; empty under one without topics."""
    if spec is not None and spec.type == "Pulsar" and spec.pulsar is not None:
        return spec.pulsar.topic_attribute
    if spec is not None and spec.type == "DelaySensitive" and spec.delay_sensitive is not None:
        return spec.delay_sensitive.topic_attribute
    return ""


def _lookup_placer(own: PulsarParameters) -> LeastLongTermMessageRate:
    return LeastLongTermMessageRate(_ratio(own.lookup.overloaded), own.lookup.seed)


def placer_of_spec(spec: PolicySpec | None) -> Placer:
    """Where newcomers go under a policy: to the least loaded edge, unless it says otherwise."""
    if spec is not None and spec.type == "Pulsar" and spec.pulsar is not None:
        return _lookup_placer(spec.pulsar)
    if spec is not None and (own_deadlines := deadlines_of_spec(spec)) is not None:
        return own_deadlines.placer
    if spec is None or spec.type != "Bad":
        return LeastLoadedPlacer()
    own = spec.bad or BadParameters()
    if own.placement == "Nearest":
        return NearestPlacer()
    return RandomPlacer(own.seed) if own.placement == "Random" else RoundRobinPlacer()


def policy_of_spec(spec: PolicySpec, time_factor: float = 1.0, scope: Scope = "Local") -> BalancingPolicy:
    """The policy of pairs that a specification names, with durations scaled to the fleet's clock.

    Raises:
        KeyError: it plans for a whole cluster (`is_fleet_wide`).

    """
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
        fresh_seconds=detection.fresh_seconds,
        balance_threshold=_ratio(padres.balance_threshold),
        rules=padres.rules,
    ).scaled(time_factor)


def detection_parameters(spec: PolicySpec, time_factor: float = 1.0) -> BalancingParameters:
    """The parameters by which an edge detects. Under a policy that plans for the cluster nothing triggers."""
    own = parameters_of_spec(spec, time_factor)
    if not is_fleet_wide(spec):
        return own
    never = ImbalanceTrigger(NO_THRESHOLD, NO_THRESHOLD)
    thresholds = ResourceThresholds(NO_THRESHOLDS, NO_THRESHOLDS, NO_THRESHOLDS, NO_THRESHOLDS)
    return replace(own, thresholds=thresholds, local_trigger=never, global_trigger=never)


def _thresholds(spec: PolicySpec) -> ResourceThresholds:
    def threshold(resource: Resource) -> OverloadThreshold:
        found = getattr(spec.detection.overload, resource)
        return OverloadThreshold(_ratio(found.lower), _ratio(found.higher))

    return ResourceThresholds(threshold("input"), threshold("output"), threshold("cpu"), threshold("memory"))


def _ratio(quantity: Quantity) -> float:
    return float(quantity.value)
