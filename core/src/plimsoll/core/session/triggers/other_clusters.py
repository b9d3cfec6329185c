"""Which neighbouring cluster is asked to take topics once a cluster's own edges have not sufficed.

Tao, Poslad, Bigham 2013, IV.D: within the cluster first; between clusters only if none of its edges is LOW, or those
that are have less room than is needed. A plan of the cluster alone comes first and says so; what is left then is for
a plan with one neighbour, if clusters are balanced with one another at all (`globalBalancing`). A cluster with one edge
has no plan of its own, and asks at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plimsoll.core.policies.delay_sensitive import DelaySensitive
from plimsoll.core.policies.delay_sensitive.relief import NOT_RELIEVED
from plimsoll.core.policies.rebalancer import NO_MEMORY, Rebalancer
from plimsoll.core.policies.registry import deadlines_of_spec
from plimsoll.core.session import maintenance_windows
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.state import Session


def cluster_to_ask(context: EngineContext, cluster: str, policy: Rebalancer[Any], ended: Sequence[Session]) -> str:
    """The neighbour with the least used edge that is LOW; empty if the cluster is to help itself, or no one can.

    `ended`: plans for the cluster, the last one first.
    """
    if (
        not isinstance(policy, DelaySensitive)
        or context.fleet.overview is None
        or not (_is_alone(context, cluster) or _has_not_sufficed(context, ended))
    ):
        return ""
    found = []
    for other in context.fleet.nearby_clusters(cluster):
        if not _is_engaged(context, other) and context.fleet.share_topics(cluster, other):
            used = _least_use(context, other)
            if used is not None and maintenance_windows.is_balancing_allowed(context, cluster, other):
                found.append((used, other))
    return min(found, default=(0.0, ""))[1]


def _is_alone(context: EngineContext, cluster: str) -> bool:
    """Whether the cluster has one edge, so that no plan of its own can relieve it."""
    return len(context.fleet.edges_of([cluster])) == 1


def _has_not_sufficed(context: EngineContext, ended: Sequence[Session]) -> bool:
    """Whether the last plan of the policy was one for the cluster alone, and has left an edge overloaded."""
    last = next((one for one in ended if one.triggered and one.kind == "rebalance"), None)
    if last is None or last.plan is None or len(context.fleet.clusters_of(last.sources)) > 1:
        return False
    return last.plan.stop.startswith(NOT_RELIEVED)


def _is_engaged(context: EngineContext, cluster: str) -> bool:
    """Whether a session takes part with one of its edges now."""
    edges = {edge.name for edge in context.fleet.edges_of([cluster])}
    return any(one.is_running and edges & one.brokers for one in context.table.holding())


def _least_use(context: EngineContext, cluster: str) -> float | None:
    """The use of the least used edge that is LOW; None if there is none."""
    spec = context.fleet.policies.get(cluster)
    policy = None if spec is None else deadlines_of_spec(spec, context.settings.time_factor)
    if policy is None:
        return None
    loads = [context.loads.reported(edge.name) for edge in context.fleet.edges_of([cluster]) if not edge.cordoned]
    low = [load for load in loads if load is not None and policy.state(load, NO_MEMORY) == "LOW"]
    return min((max(load.input_utilization, load.output_utilization) for load in low), default=None)
