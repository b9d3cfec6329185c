"""Loads and states of clusters as other clusters see them."""

from __future__ import annotations

from dataclasses import replace

from plimsoll.core.policies.model.load import BalancingState, BrokerLoad, combined_load
from plimsoll.core.session.context.engine_context import EngineContext


def cluster_load(context: EngineContext, cluster: str) -> BrokerLoad | None:
    """The load of a cluster by the overview, by its head or by its edges; None until all of its edges have reported."""
    members = context.fleet.edges_of([cluster])
    loads = [load for edge in members if (load := context.loads.current(edge.name)) is not None]
    if not loads or len(loads) < len(members):
        return None  # an edge without a report may be overloaded
    found = combined_load(cluster, loads)
    reported = context.fleet.reported_cluster_load(cluster)
    if reported is not None:
        try:
            measures = BrokerLoad.from_report({**reported, "broker": cluster}).measures._asdict()
        except (TypeError, ValueError):
            measures = {}  # treat it as missing, and use the edges
        found = replace(found, **measures)
    return replace(found, time=context.now, state=cluster_state(context, cluster, found.state))


def cluster_state(context: EngineContext, cluster: str, edges: BalancingState = "OK") -> BalancingState:
    """PADRES 2006, figure 4b: BUSY in a session between clusters, N/A with one of its edges, STABILIZING after one."""
    if context.table.running_cluster_session(cluster) is not None:
        return "BUSY"
    if edges == "N/A":
        return "N/A"
    known = context.watched_clusters.get(cluster)
    return "STABILIZING" if known is not None and known.memory.since is not None else "OK"
