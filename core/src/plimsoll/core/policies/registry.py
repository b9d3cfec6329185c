"""Policies by the names that specifications give them.

All of them share detection: they differ in whom a broker asks first, and in what moves. A plan is a function of what it
is made from; what is random is drawn from a seed and the numbers of the load reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from plimsoll.core.policies.fleet import BrokerLoad, Resource, Threshold, Thresholds
from plimsoll.core.policies.greedy import Greedy
from plimsoll.core.policies.least_loaded import LeastLoaded
from plimsoll.core.policies.padres import Padres
from plimsoll.core.policies.parameters import Parameters, Scope, Trigger
from plimsoll.core.policies.profile import Profile
from plimsoll.core.policies.random import Random
from plimsoll.core.policies.steps import Action, Plan
from plimsoll.core.spec.policy import PolicySpec, PolicyType, RandomParameters
from plimsoll.core.spec.quantities import Quantity


class Policy(Protocol):
    """Whom to ask, and what should move."""

    @property
    def parameters(self) -> Parameters:
        """What detection goes by."""

    def ranked(
        self, own: BrokerLoad, actions: Sequence[Action], others: Mapping[str, BrokerLoad]
    ) -> tuple[Action, ...]:
        """The broker-action list in the order in which brokers are asked."""

    def plan(
        self,
        source: BrokerLoad,
        target: BrokerLoad,
        profile: Profile,
        action: Action,
        staying: Mapping[str, str] | None = None,
        most: int | None = None,
        others: Iterable[BrokerLoad] = (),
    ) -> Plan:
        """What should move from the source to the target by an action.

        `staying` names subscribers that may not move, each with the reason; `most` is how many may move; `others`
        are the loads of the other brokers that these two should not be brought further apart from.
        """


POLICIES: dict[PolicyType, type[Padres] | type[Random] | type[LeastLoaded] | type[Greedy]] = {
    "Padres": Padres,
    "Random": Random,
    "LeastLoaded": LeastLoaded,
    "Greedy": Greedy,
}


def policy(spec: PolicySpec, time_factor: float = 1.0, scope: Scope = "Local") -> Policy:
    """The policy that a specification names, on a fleet's clock."""
    own = parameters(spec, time_factor)
    if spec.type == "Random":
        return Random(own, scope, seed=(spec.random or RandomParameters()).seed)
    return POLICIES[spec.type](own, scope)


def parameters(spec: PolicySpec, time_factor: float = 1.0) -> Parameters:
    """What a specification says of detection and balance, as numbers, on a fleet's clock."""
    detection = spec.detection
    local, wide = detection.local_trigger, detection.global_trigger
    balance = {} if spec.padres is None else {"balance_threshold": _ratio(spec.padres.balance_threshold)}
    return Parameters(
        thresholds=_thresholds(spec),
        local_trigger=Trigger(_ratio(local.ratio), _ratio(local.delay)),
        global_trigger=Trigger(_ratio(wide.ratio), _ratio(wide.delay)),
        normalization_seconds=detection.normalization.seconds,
        stabilize_seconds=detection.stabilize_for.seconds,
        stabilize_change=_ratio(detection.stabilize_change),
        detection_seconds=detection.interval.seconds,
        fresh_seconds=detection.reports_valid_for.seconds,
        **balance,
    ).scaled(time_factor)


def _thresholds(spec: PolicySpec) -> Thresholds:
    def threshold(resource: Resource) -> Threshold:
        found = getattr(spec.detection.overload, resource)
        return Threshold(_ratio(found.lower), _ratio(found.higher))

    return Thresholds(threshold("input"), threshold("output"), threshold("cpu"), threshold("memory"))


def _ratio(quantity: Quantity) -> float:
    return float(quantity.value)
