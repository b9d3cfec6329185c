"""The loads of brokers in the first minute of a run: beside what was measured, they show how good a copy a World is."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

SECONDS = 60.0
METRICS = ("input_utilization", "output_utilization", "input_rate", "output_rate", "match_delay_seconds")


class FirstMinute:
    """Takes load reports, and has their means by broker. The first report of each is of the time before the start."""

    def __init__(self) -> None:
        self._reports: dict[str, list[Mapping[str, Any]]] = {}

    def take(self, report: Mapping[str, Any], now: float) -> None:
        """Take a report that was made at this time of the run."""
        if now <= SECONDS:
            self._reports.setdefault(str(report["broker"]), []).append(report)

    def means(self) -> dict[str, dict[str, float]]:
        """The mean of each metric by broker."""
        return {
            broker: {metric: fmean(float(each[metric]) for each in reports[1:] or reports) for metric in METRICS}
            for broker, reports in sorted(self._reports.items())
        }
