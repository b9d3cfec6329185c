"""The load reports of a run as columns of numbers, one row per report and broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from plimsoll.demo.analysis import overhead

METRICS: Final = (
    "subscribers", "subscriptions", "input_rate", "output_rate", "output_bytes_per_second", "input_utilization",
    "output_utilization", "match_delay_seconds", "index_delay_seconds", "input_queue_delay_seconds",
    "output_queue_delay_seconds", "input_queue_messages", "output_queue_messages", "output_queue_bytes", "cpu_ratio",
    "memory_ratio",
)  # fmt: skip
"""The numbers kept from a load report; one that a broker does not report is 0."""


class LoadSeries:
    """Reports by broker. `start`: the time of second 0, on the clock of `take`."""

    def __init__(self, start: float = 0.0) -> None:
        self.start = start
        self._last: dict[str, tuple[Any, Any]] = {}
        self._columns: dict[str, dict[str, list[Any]]] = {}
        self.latest: dict[str, Mapping[str, Any]] = {}
        self.ledger = overhead.MessageLedger()

    def take(self, report: Mapping[str, Any], now: float) -> bool:
        """Add a report; False if it is known, or older than the last one of its broker."""
        name, stamp = str(report["broker"]), (report["epoch"], report["seq"])
        if name in self._last and stamp <= self._last[name]:
            return False
        self._last[name] = stamp
        self.latest[name] = report
        self.ledger.take(name, overhead.message_counts(report), now - self.start, int(report["epoch"]))
        columns = self._columns.setdefault(name, {key: [] for key in ("seconds", "state", *METRICS)})
        columns["seconds"].append(round(now - self.start, 3))
        columns["state"].append(report.get("state", "N/A"))
        for metric in METRICS:
            value = report.get(metric, 0)
            columns[metric].append(round(value, 7) if isinstance(value, float) else value)
        return True

    def of(self, broker: str) -> dict[str, list[Any]]:
        """The columns of one broker, of equal length: `seconds`, `state`, and each metric."""
        return self._columns.get(broker, {key: [] for key in ("seconds", "state", *METRICS)})
