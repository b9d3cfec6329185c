"""The metrics of a driver of channels in Prometheus' data model, from its figures. The label `channel` names each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from plimsoll.channels.config import ChannelFigures

Value = Callable[[ChannelFigures], float]

ROWS: Final[Mapping[str, Value]] = {
    "used": lambda of: of.rows_used, "late": lambda of: of.late_rows, "invalid": lambda of: of.invalid_rows,
}  # fmt: skip
RESULTS: Final[Mapping[str, Value]] = {
    "accepted": lambda of: of.accepted_results, "unknown": lambda of: of.unknown_results,
    "refused": lambda of: of.refused_results, "unasked": lambda of: of.unasked_results,
    "invalid": lambda of: of.invalid_results,
}  # fmt: skip
PERIODS: Final[Mapping[str, Value]] = {
    "kept": lambda of: of.periods_kept, "late": lambda of: of.periods_late, "missed": lambda of: of.periods_missed,
}  # fmt: skip
COUNTERS: Final[Mapping[str, tuple[str, Value]]] = {
    "rows_in": ("Rows of feeds that its batches have consumed: used + late + invalid.", lambda of: of.rows_in),
    "committed_results": ("Results that its batches have committed.", lambda of: of.results),
    "batches": ("Batches that are committed.", lambda of: of.batch),
    "batch_failures": ("Batches that have failed, each of which is tried again.", lambda of: of.failures),
}
GAUGES: Final[Mapping[str, tuple[str, Value]]] = {
    "subscriptions": ("Distinct parameters that are subscribed to.", lambda of: of.subscriptions),
    "running": ("1 if its batches are computed and published.", lambda of: of.state == "ChannelRunning"),
    "batch_timestamp_seconds": ("When its last batch was committed.", lambda of: of.batch_us / 1e6),
    "query_seconds": ("How long the query of its last batch took.", lambda of: of.batch_milliseconds / 1000),
    "delay_seconds": (
        "From the sending of the oldest publication of its last batch to the commit of the results.",
        lambda of: of.delay_milliseconds / 1000,
    ),
    "period_seconds": ("Its period; 0 for a continuous channel.", lambda of: of.period_seconds),
    "lateness_seconds": (
        "How long after its time the last batch of a repetitive channel began.", lambda of: of.late_milliseconds / 1000,
    ),
}  # fmt: skip


def channel_metrics(channels: Mapping[str, ChannelFigures]) -> Iterator[Metric]:
    """All families of one driver."""
    rows = CounterMetricFamily("plimsoll_channel_rows", "Rows of feeds, by what became of them.",
                               labels=["channel", "outcome"])  # fmt: skip
    results = CounterMetricFamily("plimsoll_channel_results", "Rows of its query, by what became of them.",
                                  labels=["channel", "outcome"])  # fmt: skip
    periods = CounterMetricFamily(
        "plimsoll_channel_periods",
        "Periods of repetitive channels: kept, late if the batch began after a tenth of it, missed without a batch.",
        labels=["channel", "outcome"],
    )
    for family, values in ((rows, ROWS), (results, RESULTS), (periods, PERIODS)):
        for name, figures in sorted(channels.items()):
            for outcome, value in values.items():
                family.add_metric([name, outcome], value(figures))
        yield family
    kinds: tuple[tuple[type[CounterMetricFamily | GaugeMetricFamily], Mapping[str, tuple[str, Value]]], ...] = (
        (CounterMetricFamily, COUNTERS), (GaugeMetricFamily, GAUGES),
    )  # fmt: skip
    for kind, families in kinds:
        for family_name, (about, value) in families.items():
            found = kind(f"plimsoll_channel_{family_name}", about, labels=["channel"])
            for name, figures in sorted(channels.items()):
                found.add_metric([name], value(figures))
            yield found
