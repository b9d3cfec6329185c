"""Rows and reports for tests, complete and valid; arguments change fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from plimsoll.telemetry.schema import EXPECTED, LOADS, MAJOR, METRICS, ExpectedBrokers, TelemetryTable
from plimsoll.telemetry.storage import parquet

NOW_US = 1_800_000_000_000_000


def row(broker: str = "e1", seq: int = 1, at_us: int = NOW_US, **other: Any) -> dict[str, Any]:
    """A row of the table `loads`."""
    found: dict[str, Any] = {field.name: None for field in LOADS.fields}
    found |= {
        "schema": MAJOR, "collector": "c0", "received_us": at_us, "event_us": at_us, "at_us": at_us, "fleet": "f",
        "cluster": "c", "broker": broker, "role": "edge", "epoch": 7, "seq": seq, "state": "OK", "subscribers": 3,
        "subscriptions": 4, "balanced_set": [], "publisher_rates": [], "covers": [], "index_delay_seconds": 0.0,
        **dict.fromkeys(METRICS, 0.25),
    }  # fmt: skip
    return found | other


def report(broker: str = "e1", seq: int = 1, at_us: int = NOW_US, **other: Any) -> dict[str, Any]:
    """A load report as a broker makes it, of the wall time `at_us`."""
    return {
        "broker": broker, "cluster": "c", "role": "edge", "epoch": 7, "seq": seq, "time_us": 5_000_000, "state": "OK",
        "clock_us": at_us, **dict.fromkeys(METRICS, 0.25), "index_delay_seconds": 0.0, "subscribers": 3,
        "subscriptions": 4, "balanced_set": ["e2"], "input_queue_messages": 0, "output_queue_messages": 0,
        "counters": {"arrivals": 10, "deliveries": 20, "bytes_out": 3000},
    } | other  # fmt: skip


def write_rows(path: Path, table: TelemetryTable, rows: Sequence[Mapping[str, Any]]) -> int:
    """Write rows given by name of column as one Parquet file."""
    return parquet.write_values(path, table, [tuple(row[name] for name in table.names) for row in rows])


def expected_brokers(root: Path) -> ExpectedBrokers:
    """The brokers that should report, as a collector has written them below `root`."""
    return msgspec.json.decode((root / EXPECTED).read_bytes(), type=ExpectedBrokers)
