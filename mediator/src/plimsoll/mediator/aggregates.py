"""What clusters carry by the fleet's telemetry: the averages of edges that collectors or Spark have added up.

Pure. Where nothing recent is known, heads' own averages count: telemetry is never needed for a decision.
"""

from __future__ import annotations

from typing import Any, Final

from plimsoll.core.policies.fleet import Measures
from plimsoll.mediator.views import Loads
from plimsoll.telemetry.asking import Known
from plimsoll.telemetry.snapshot import Cluster

RECENT_SECONDS: Final = 30.0
"""What collectors have said counts for so long."""


def loads(known: Known | None, now: float) -> Loads | None:
    """The averages of each cluster whose edges have all been seen; None without any. `now` is Unix time."""
    if known is None or known.chosen is None or now - known.at_us / 1e6 > RECENT_SECONDS:
        return None
    found = {name: load for name, cluster in known.chosen.snapshot.clusters.items() if (load := _load(cluster))}
    return Loads("Spark" if known.chosen.is_spark else "the fold", found) if found else None


def _load(cluster: Cluster) -> dict[str, Any]:
    """By the shortest window: Spark has several, the fold one, whose length follows from the interval of reports."""
    shortest = min(map(int, cluster.windows), default=None)
    if cluster.missing or shortest is None:
        return {}
    metrics = cluster.window(shortest).metrics
    return {name: metrics[name].mean for name in Measures._fields if name in metrics}
