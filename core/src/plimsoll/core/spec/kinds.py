"""The five kinds of `plimsoll.dev/v1alpha1` as frozen values; schemas are generated from these fields.

Kubernetes' conventions hold: camelCase in YAML, no floating-point numbers, quantities and durations as strings, lists
of named objects instead of maps, a union as `type` and one block of that name. What Kubernetes and a single machine
treat differently says so in its description.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.core.spec.about import NamedReference
from plimsoll.core.spec.clusters import (
    BrokerClusterSpec,
    EdgeBrokerSpec,
    EdgeGroup,
    HardwareProfileSpec,
    ListenerSpec,
)
from plimsoll.core.spec.fleets import BrokerFleetSpec, WhenSlow
from plimsoll.core.spec.policy import PolicySpec
from plimsoll.core.spec.sessions import CandidateSpec, LoadBalancingSessionSpec

__all__ = [
    "API_VERSION", "GROUP", "KINDS", "VERSION", "AnySpec", "BrokerClusterSpec", "BrokerFleetSpec", "CandidateSpec",
    "EdgeBrokerSpec", "EdgeGroup", "HardwareProfileSpec", "Kind", "ListenerSpec", "LoadBalancingSessionSpec",
    "NamedReference", "PolicySpec", "WhenSlow", "kind_named",
]  # fmt: skip

GROUP = "plimsoll.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

AnySpec = BrokerFleetSpec | BrokerClusterSpec | EdgeBrokerSpec | HardwareProfileSpec | LoadBalancingSessionSpec


@dataclass(frozen=True)
class Kind:
    """How a kind is called."""

    name: str
    plural: str
    short: str
    spec: type


KINDS = {
    kind.name: kind
    for kind in (
        Kind("BrokerFleet", "brokerfleets", "bf", BrokerFleetSpec),
        Kind("BrokerCluster", "brokerclusters", "bc", BrokerClusterSpec),
        Kind("EdgeBroker", "edgebrokers", "eb", EdgeBrokerSpec),
        Kind("HardwareProfile", "hardwareprofiles", "hwp", HardwareProfileSpec),
        Kind("LoadBalancingSession", "loadbalancingsessions", "lbs", LoadBalancingSessionSpec),
    )
}


def kind_named(word: str) -> Kind | None:
    """The kind that a person means: by its name, plural or short name, whatever the case."""
    folded = word.casefold()
    return next((k for k in KINDS.values() if folded in (k.name.casefold(), k.plural, k.short)), None)
