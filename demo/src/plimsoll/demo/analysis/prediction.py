"""What the queueing model predicts of a stretch of the run beside what was measured there: pure functions.

The model is run on a World of the demo's own fleet, made before the stretch began.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.demo.analysis.delays import DeliveryDelays
from plimsoll.demo.analysis.load_series import LoadSeries
from plimsoll.demo.workload import DemoScenario

STRETCH_SHARE: Final = 0.15
"""Of the run; in the default run 21 s."""
SHORTEST_SECONDS: Final = 5.0
OVER_SHARE: Final = 0.1
"""Of the run: the time over which rates are measured before."""
BEFORE_END_SECONDS: Final = 0.5
METRICS: Final = ("input_utilization", "output_utilization", "output_rate")


@dataclass(frozen=True)
class Stretch:
    """Seconds of the run: from `begin` on a World is made, with rates of the `over_seconds` before; it predicts the
    time until `end`.
    """

    begin: float
    end: float
    over_seconds: float


def stretch_of(scenario: DemoScenario) -> Stretch | None:
    """The last part of the run in which rates stay as they are; None if it is too short to be measured."""
    end = min(scenario.step_seconds, scenario.seconds) - BEFORE_END_SECONDS
    begin = end - STRETCH_SHARE * scenario.seconds
    over = OVER_SHARE * scenario.seconds
    joined = scenario.join_to * scenario.seconds
    return Stretch(begin, end, over) if end - begin >= SHORTEST_SECONDS and begin > joined else None


def prediction(
    row: Mapping[str, Any], series: LoadSeries, delays: DeliveryDelays, edges: Sequence[str], begin: float, end: float
) -> dict[str, Any]:
    """The prediction of `row`, of a comparison of one policy, and what was measured from `begin` to `end`."""
    return {
        "begin_seconds": round(begin, 1), "end_seconds": round(end, 1), "policy": row["type"],
        "delay_seconds": _delays(row, delays, begin, end),
        "edges": {edge: _edge(row["first_minute"].get(edge, {}), series, edge, begin, end) for edge in edges},
    }  # fmt: skip


def _delays(row: Mapping[str, Any], delays: DeliveryDelays, begin: float, end: float) -> dict[str, Any]:
    measured = delays.between(begin, end)
    return {
        name: {"predicted": row[f"delay_{name}_seconds"], "measured": measured[name]} for name in ("p50", "p99")
    }  # fmt: skip


def _edge(first: Mapping[str, float], series: LoadSeries, edge: str, begin: float, end: float) -> dict[str, Any]:
    columns = series.of(edge)
    # the first report after the beginning is in part about the time before
    rows = [i for i, at in enumerate(columns["seconds"]) if begin < at <= end][1:]
    found: dict[str, Any] = {"states": sorted({columns["state"][i] for i in rows})}
    for metric in METRICS:
        measured = math.fsum(columns[metric][i] for i in rows) / len(rows) if rows else None
        found[metric] = {"predicted": first.get(metric), "measured": measured}
    return found
