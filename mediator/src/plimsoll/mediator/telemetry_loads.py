"""Average loads of clusters from the fleet's telemetry, which collectors or Spark compute. Pure.

Without recent figures the averages of heads are used: no decision ever depends on telemetry.
"""

from __future__ import annotations

from typing import Any, Final

from plimsoll.core.policies.model.load import LoadMeasures
from plimsoll.mediator.fleet_view import TelemetryLoads
from plimsoll.telemetry.client.snapshot_poller import PollResult
from plimsoll.telemetry.snapshot import ClusterSnapshot

RECENT_SECONDS: Final = 30.0
"""Figures of collectors are used for this long."""


def telemetry_loads(known: PollResult | None, now: float) -> TelemetryLoads | None:
    """The averages of each cluster whose edges have all been seen; None without any. `now` is Unix time."""
    if known is None or known.chosen is None or now - known.at_us / 1e6 > RECENT_SECONDS:
        return None
    found = {name: load for name, cluster in known.chosen.snapshot.clusters.items() if (load := _cluster_load(cluster))}
    return TelemetryLoads("Spark" if known.chosen.is_spark else "the fold", found) if found else None


def _cluster_load(cluster: ClusterSnapshot) -> dict[str, Any]:
    """The averages over the shortest window: Spark has several, the fold has one."""
    shortest = min(map(int, cluster.windows), default=None)
    if cluster.missing or shortest is None:
        return {}
    metrics = cluster.window(shortest).metrics
    return {name: metrics[name].mean for name in LoadMeasures._fields if name in metrics}
