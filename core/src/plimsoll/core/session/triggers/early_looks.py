"""A look before the interval is over: a new report of an edge shows what its deadlines do not wait for.

The managers of Tao, Poslad, Bigham 2013, III.B, are at the brokers and compare loads with thresholds as they measure
them. Reports of edges come at times of their own, so that a look at an interval sees them late, by half of it on
average. Each view of the fleet is gone through once, and each report in it is checked once; it costs a look only if the
policy calls its edge overloaded.
"""

from __future__ import annotations

from typing import Any

from plimsoll.core.policies.delay_sensitive import DelaySensitive
from plimsoll.core.policies.rebalancer import Rebalancer
from plimsoll.core.session.context.engine_context import EngineContext


def is_overload_reported(context: EngineContext, cluster: str, policy: Rebalancer[Any]) -> bool:
    """Whether an edge of the cluster is overloaded by a report that has come since the last call."""
    if not isinstance(policy, DelaySensitive) or context.checked_views.get(cluster) == context.fleet_observed_at:
        return False
    context.checked_views[cluster] = context.fleet_observed_at
    memory = context.cluster_memories.of(cluster, policy.name)
    is_found = False
    for edge in context.fleet.edges.values():
        if edge.cluster != cluster or not edge.report:
            continue
        number = edge.report.get("epoch", 0), edge.report.get("seq", 0)
        if context.checked_reports.get(edge.name) == number:
            continue
        context.checked_reports[edge.name] = number
        load = context.loads.reported(edge.name)
        is_found |= load is not None and bool(policy.overload(load, memory))
    return is_found
