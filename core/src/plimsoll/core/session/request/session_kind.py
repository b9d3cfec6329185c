"""The kind of a session: its request and the fleet decide it while it is in Requested, and it is fixed from then on."""

from __future__ import annotations

from plimsoll.core.policies.registry import is_fleet_wide
from plimsoll.core.session.inputs import FleetView, SessionRequest
from plimsoll.core.session.state import SessionKind


def kind_of(request: SessionRequest, fleet: FleetView) -> SessionKind:
    """What the session of a request does. A name that an edge and a cluster share means the cluster."""
    spec = request.spec
    if spec.action == "Shuffle":
        return "shuffle"
    if spec.action == "Drain":
        return "drain"
    if spec.action == "Split":
        return "split"
    if spec.action == "MovePublishers":
        return "publishers"
    if spec.action == "MoveSlices":
        return "slices"
    if spec.action == "Unload":
        return "rebalance"
    if requested_clusters(request, fleet):
        return "clusters"
    if is_planned_for_cluster(request, fleet):
        return "rebalance"
    if any(fleet.is_cluster(name) for name in named_parties(request)):
        return "spread"
    return "balance" if is_by_policy(request, fleet) else "move"


def named_parties(request: SessionRequest) -> list[str]:
    """The names of the source and the target, as far as the request has them."""
    return [party.name for party in (request.spec.source, request.spec.target) if party is not None]


def is_by_policy(request: SessionRequest, fleet: FleetView) -> bool:
    """Whether a policy chooses: the request selects no subscribers, and its source is an edge of a cluster with one."""
    spec = request.spec
    if spec.action != "Rebalance" or spec.select is not None or spec.source is None:
        return False
    if request.parent and spec.trigger is None:  # its parent has planned it already
        return False
    clusters = {fleet.edges[name].cluster if name in fleet.edges else "" for name in named_parties(request)}
    policy = fleet.policy_of(spec.source.name)
    return len(clusters) == 1 and policy is not None and not is_fleet_wide(policy)


def is_planned_for_cluster(request: SessionRequest, fleet: FleetView) -> bool:
    """Whether the policy of a cluster plans for all of its edges: the request names the cluster and nothing else.

    Under a policy whose topics may go to another cluster it may name that one as the target.
    """
    spec = request.spec
    if spec.action != "Rebalance" or spec.select is not None or spec.source is None:
        return False
    policy = fleet.policies.get(spec.source.name)
    is_whole = fleet.is_cluster(spec.source.name) and policy is not None and is_fleet_wide(policy)
    if spec.target is None or not is_whole:
        return is_whole
    return spec.scope == "Global" and fleet.share_topics(spec.source.name, spec.target.name)


def requested_clusters(request: SessionRequest, fleet: FleetView) -> list[str]:
    """The two clusters that a request would join, source first; empty if it asks for something else."""
    spec, named = request.spec, named_parties(request)
    if spec.scope != "Global" or spec.action != "Rebalance" or spec.select is not None or request.parent:
        return []
    if len(set(named)) != 2 or not all(fleet.is_cluster(name) and _has_pairs(fleet, name) for name in named):
        return []
    return named


def _has_pairs(fleet: FleetView, cluster: str) -> bool:
    """Whether a cluster has a policy by which its edges balance in pairs."""
    policy = fleet.policies.get(cluster)
    return policy is not None and not is_fleet_wide(policy)
