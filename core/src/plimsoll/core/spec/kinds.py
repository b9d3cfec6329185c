"""The kinds of `plimsoll.dev/v1alpha1` as frozen values; schemas are generated from these fields.

Kubernetes' conventions hold: camelCase in YAML, no floating-point numbers, quantities and durations as strings, lists
of named objects instead of maps, a union as `type` and one block of that name. The description of a field says where
Kubernetes and a single machine treat it differently.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.core.spec.field_info import NamedReference
from plimsoll.core.spec.types.bundle import BundleSpec
from plimsoll.core.spec.types.channel import ChannelSpec
from plimsoll.core.spec.types.cluster import (
    BrokerClusterSpec,
    EdgeBrokerSpec,
    EdgeGroup,
    HardwareProfileSpec,
    ListenerSpec,
)
from plimsoll.core.spec.types.feed import FeedSpec
from plimsoll.core.spec.types.fleet import BrokerFleetSpec, WhenSlow
from plimsoll.core.spec.types.policy import PolicySpec
from plimsoll.core.spec.types.session import CandidateSpec, LoadBalancingSessionSpec

__all__ = [
    "API_VERSION",
    "GROUP",
    "KINDS",
    "VERSION",
    "WRITTEN_KINDS",
    "AnySpec",
    "BrokerClusterSpec",
    "BrokerFleetSpec",
    "BundleSpec",
    "CandidateSpec",
    "ChannelSpec",
    "EdgeBrokerSpec",
    "EdgeGroup",
    "FeedSpec",
    "HardwareProfileSpec",
    "ListenerSpec",
    "LoadBalancingSessionSpec",
    "NamedReference",
    "PolicySpec",
    "ResourceKind",
    "WhenSlow",
    "kind_named",
]  # fmt: skip

GROUP = "plimsoll.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

AnySpec = (
    BrokerFleetSpec
    | BrokerClusterSpec
    | EdgeBrokerSpec
    | HardwareProfileSpec
    | LoadBalancingSessionSpec
    | FeedSpec
    | ChannelSpec
)


@dataclass(frozen=True)
class ResourceKind:
    """How a kind is called."""

    name: str
    plural: str
    short: str
    spec: type


KINDS = {
    kind.name: kind
    for kind in (
        ResourceKind("BrokerFleet", "brokerfleets", "bf", BrokerFleetSpec),
        ResourceKind("BrokerCluster", "brokerclusters", "bc", BrokerClusterSpec),
        ResourceKind("EdgeBroker", "edgebrokers", "eb", EdgeBrokerSpec),
        ResourceKind("HardwareProfile", "hardwareprofiles", "hwp", HardwareProfileSpec),
        ResourceKind("LoadBalancingSession", "loadbalancingsessions", "lbs", LoadBalancingSessionSpec),
        ResourceKind("Feed", "feeds", "fd", FeedSpec),
        ResourceKind("Channel", "channels", "ch", ChannelSpec),
    )
}
"""Kinds whose objects users write."""

WRITTEN_KINDS = {kind.name: kind for kind in (ResourceKind("Bundle", "bundles", "bdl", BundleSpec),)}
"""Kinds whose objects the operator writes for users to read; they are no input of a fleet."""


def kind_named(word: str) -> ResourceKind | None:
    """The kind with this name, plural or short name, in any case."""
    folded = word.casefold()
    return next((k for k in KINDS.values() if folded in (k.name.casefold(), k.plural, k.short)), None)
