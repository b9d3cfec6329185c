"""The schema of telemetry: every table and column with type and unit, and the layout of the files.

Collectors, jobs and readers all derive their schema from here; none is inferred. A change that old readers tolerate (a
new nullable column at the end) leaves MAJOR as it is; any other raises it, and readers refuse an unknown major. Times
are whole microseconds since 1970 (UTC), so that no reader's time zone can distort them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

MAJOR: Final = 1
"""The major version of the tables, of load reports, and of the folders below `raw/` and `agg/`."""

INCOMING: Final = f"raw/v{MAJOR}/incoming"
HOURLY: Final = f"raw/v{MAJOR}/loads"
"""Load reports by the hour, as `compact` merges them."""
SESSIONS: Final = f"raw/v{MAJOR}/sessions"
EXPECTED: Final = f"raw/v{MAJOR}/expected.json"
LATEST: Final = f"agg/v{MAJOR}/latest.json"
SET_ASIDE: Final = f"raw/v{MAJOR}/set-aside"
"""Files that a job could not read, each with its reason in a file of the same name and `.json`."""
CHECKPOINT: Final = f"checkpoints/live-v{MAJOR}"
"""The state of Spark's live job."""
OWNER: Final = f"{CHECKPOINT}/plimsoll-owner.json"
"""The driver that may commit batches to that state."""

SKEW_SECONDS: Final = 5.0
"""A broker's clock that is further away from the collector's does not decide when a report was made."""

ColumnType = Literal["int32", "int64", "float64", "string", "bool"]


@dataclass(frozen=True)
class TelemetryColumn:
    """One column. `type` is a scalar, or the fields of a list's items; a list of strings is `("string",)`."""

    name: str
    type: ColumnType | tuple[TelemetryColumn, ...] | tuple[Literal["string"]]
    unit: str
    about: str
    nullable: bool = False


TableRow = tuple[Any, ...]
"""The values of a table's columns, in their order; each column has its own type."""


@dataclass(frozen=True)
class TelemetryTable:
    """One kind of row. `key`: rows with equal values there are the same row."""

    name: str
    about: str
    key: tuple[str, ...]
    fields: tuple[TelemetryColumn, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def field(self, name: str) -> TelemetryColumn:
        return next(field for field in self.fields if field.name == name)


RATE: Final = (
    TelemetryColumn("publisher", "string", "", "Name of the publisher."),
    TelemetryColumn("publications_per_second", "float64", "publications/s", "Accepted from it in the interval."),
    TelemetryColumn("bytes_per_second", "float64", "bytes/s", "Bodies accepted from it in the interval."),
)

COVER: Final = (
    TelemetryColumn("link", "string", "", "The edge or the neighbouring head that announced it."),
    TelemetryColumn("subscriptions", "int64", "subscriptions", "Size of the covering set that it has announced."),
)

LOADS: Final = TelemetryTable(
    "loads",
    "A load report (PIE) of one broker over one report interval, as a collector stored it.",
    ("broker", "epoch", "seq"),
    (
        TelemetryColumn("schema", "int32", "", "Major version of this table."),
        TelemetryColumn("collector", "string", "", "The collector that stored it."),
        TelemetryColumn("received_us", "int64", "us since 1970", "When it arrived, by the collector's clock."),
        TelemetryColumn(
            "event_us", "int64", "us since 1970", "When it was made, by the broker's clock.", nullable=True
        ),
        TelemetryColumn(
            "at_us",
            "int64",
            "us since 1970",
            "The time by which windows take it: event_us; received_us where that is"
            f" unknown or more than {SKEW_SECONDS:g} s away.",
        ),
        TelemetryColumn("fleet", "string", "", "Fleet of the broker."),
        TelemetryColumn("cluster", "string", "", "Cluster of the broker."),
        TelemetryColumn("broker", "string", "", "Name of the broker."),
        TelemetryColumn("role", "string", "", "head or edge."),
        TelemetryColumn(
            "epoch", "int64", "", "Epoch of the broker: later starts have greater ones unless its clock was set back."
        ),
        TelemetryColumn("seq", "int64", "", "Number of the report within the epoch, from 1."),
        TelemetryColumn("state", "string", "", "OK, BUSY, N/A or STABILIZING."),
        TelemetryColumn("input_utilization", "float64", "ratio", "Arrival rate x matching delay; may exceed 1."),
        TelemetryColumn(
            "output_utilization", "float64", "ratio", "Bytes per second / bandwidth; 0 where output is not limited."
        ),
        TelemetryColumn("cpu_ratio", "float64", "ratio", "Of the profile's CPU."),
        TelemetryColumn("memory_ratio", "float64", "ratio", "Of the profile's memory."),
        TelemetryColumn(
            "match_delay_seconds", "float64", "s", "Service time of a publication, from frame in to buffers out."
        ),
        TelemetryColumn("index_delay_seconds", "float64", "s", "The part of it spent in the index."),
        TelemetryColumn("input_queue_delay_seconds", "float64", "s", "Mean wait before service."),
        TelemetryColumn("output_queue_delay_seconds", "float64", "s", "Mean wait after service."),
        TelemetryColumn("input_rate", "float64", "publications/s", "Arrivals."),
        TelemetryColumn("output_rate", "float64", "deliveries/s", "Deliveries."),
        TelemetryColumn("output_bytes_per_second", "float64", "bytes/s", "Bytes sent."),
        TelemetryColumn("subscribers", "int64", "subscribers", "Served here; at a head, in its cluster."),
        TelemetryColumn(
            "subscriptions", "int64", "subscriptions", "Subscriptions that publications are matched with here."
        ),
        TelemetryColumn(
            "interval_seconds",
            "float64",
            "s",
            "Length of the reported interval, which ends at event_us.",
            nullable=True,
        ),
        TelemetryColumn("input_queue_messages", "int64", "messages", "Waiting for service.", nullable=True),
        TelemetryColumn("output_queue_messages", "int64", "messages", "Waiting to be sent.", nullable=True),
        TelemetryColumn("output_queue_bytes", "int64", "bytes", "Waiting to be sent.", nullable=True),
        TelemetryColumn(
            "bandwidth_bytes_per_second", "float64", "bytes/s", "Output capacity; null: not limited.", nullable=True
        ),
        TelemetryColumn(
            "match_base_seconds", "float64", "s", "Fitted delay of a publication without matches.", nullable=True
        ),
        TelemetryColumn("match_seconds_per_match", "float64", "s", "Fitted delay of each match.", nullable=True),
        TelemetryColumn("log_bytes", "int64", "bytes", "In a head's log.", nullable=True),
        TelemetryColumn("log_limit_bytes", "int64", "bytes", "Limit of a head's log.", nullable=True),
        TelemetryColumn("log_bytes_per_second", "float64", "bytes/s", "How fast a head's log fills.", nullable=True),
        TelemetryColumn(
            "cover_subscriptions",
            "int64",
            "subscriptions",
            "Size of the covering set that an edge announces.",
            nullable=True,
        ),
        TelemetryColumn("publishers", "int64", "publishers", "Known to a head.", nullable=True),
        TelemetryColumn("arrivals_total", "int64", "publications", "Since the start of the epoch.", nullable=True),
        TelemetryColumn("deliveries_total", "int64", "deliveries", "Since the start of the epoch.", nullable=True),
        TelemetryColumn("bytes_out_total", "int64", "bytes", "Since the start of the epoch.", nullable=True),
        TelemetryColumn("gaps_total", "int64", "gaps", "Reported since the start of the epoch.", nullable=True),
        TelemetryColumn("balanced_set", ("string",), "", "Edges whose loads are within this one's triggers."),
        TelemetryColumn("publisher_rates", RATE, "", "The publishers of a head that sent most in the interval."),
        TelemetryColumn("covers", COVER, "", "Covering sets that a head holds, by link."),
    ),
)

FORECAST: Final = (
    TelemetryColumn("broker", "string", "", "An edge that the plan changes."),
    TelemetryColumn("utilization_before", "float64", "ratio", "The greater of input and output, at planning."),
    TelemetryColumn("utilization_predicted", "float64", "ratio", "As predicted by the plan."),
    TelemetryColumn("utilization_measured", "float64", "ratio", "As measured once loads had settled.", nullable=True),
    TelemetryColumn("input_predicted", "float64", "ratio", "Predicted input utilisation.", nullable=True),
    TelemetryColumn("input_measured", "float64", "ratio", "Measured input utilisation.", nullable=True),
    TelemetryColumn("output_predicted", "float64", "ratio", "Predicted output utilisation.", nullable=True),
    TelemetryColumn("output_measured", "float64", "ratio", "Measured output utilisation.", nullable=True),
    TelemetryColumn("match_predicted_seconds", "float64", "s", "Predicted matching delay.", nullable=True),
    TelemetryColumn("match_measured_seconds", "float64", "s", "Measured matching delay.", nullable=True),
)

OUTCOMES: Final = TelemetryTable(
    "sessions",
    "A load-balancing session that has ended, with its predictions and the measurements.",
    ("uid",),
    (
        TelemetryColumn("schema", "int32", "", "Major version of this table."),
        TelemetryColumn("collector", "string", "", "The collector that stored it."),
        TelemetryColumn("received_us", "int64", "us since 1970", "When it arrived, by the collector's clock."),
        TelemetryColumn("fleet", "string", "", "Fleet of the session."),
        TelemetryColumn("uid", "string", "", "Identity of the object; its name where it has none."),
        TelemetryColumn("name", "string", "", "Name of the object."),
        TelemetryColumn("scope", "string", "", "Local or Global."),
        TelemetryColumn("mode", "string", "", "DryRun, Execute or Simulate."),
        TelemetryColumn("phase", "string", "", "How it ended: Succeeded, Planned, Failed, RolledBack or Rejected."),
        TelemetryColumn("reason", "string", "", "Why, in one word."),
        TelemetryColumn("source", "string", "", "Edges that gave subscribers, joined by commas."),
        TelemetryColumn("target", "string", "", "Edges that took subscribers, joined by commas."),
        TelemetryColumn("policy", "string", "", "Policy that chose the subscribers; empty: a user chose."),
        TelemetryColumn(
            "metric", "string", "", "Metric that it balanced: input, match or output; empty: a user chose."
        ),
        TelemetryColumn("estimator", "string", "", "Estimator of loads: Press or Ring; empty: unknown."),
        TelemetryColumn("handover", "string", "", "drain or replay; empty: nothing was planned."),
        TelemetryColumn("attempts", "int64", "attempts", "Number of attempts."),
        TelemetryColumn("requested_us", "int64", "us since 1970", "When it was requested."),
        TelemetryColumn("ended_us", "int64", "us since 1970", "When it ended."),
        TelemetryColumn("planned", "int64", "subscribers", "Named by the plan."),
        TelemetryColumn("moved", "int64", "subscribers", "Served by the target now."),
        TelemetryColumn("stayed", "int64", "subscribers", "Not moved; served by the source as before."),
        TelemetryColumn("returned", "int64", "subscribers", "Attached again by themselves, at any edge."),
        TelemetryColumn("detached", "int64", "subscribers", "Disconnected meanwhile."),
        TelemetryColumn("unknown", "int64", "subscribers", "Not known to be served: no answer of source or head."),
        TelemetryColumn("drain_predicted_seconds", "float64", "s", "Longest drain as predicted.", nullable=True),
        TelemetryColumn(
            "drain_measured_seconds", "float64", "s", "Longest drain of a batch as measured.", nullable=True
        ),
        TelemetryColumn("edges", FORECAST, "", "Loads of the edges that it changed: before, predicted, measured."),
        TelemetryColumn(
            "away", "int64", "subscribers", "Not moved; kept by the source, and not connected.", nullable=True
        ),
        TelemetryColumn("gone", "int64", "subscribers", "Not moved; not known at the source any more.", nullable=True),
    ),
)

METRICS: Final = (
    "input_utilization", "output_utilization", "cpu_ratio", "memory_ratio", "match_delay_seconds",
    "input_queue_delay_seconds", "output_queue_delay_seconds", "input_rate", "output_rate", "output_bytes_per_second",
)  # fmt: skip
"""Columns of `loads` that aggregates are made of, in this order."""


class SetAsideFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file set aside. `folder`: the one that it was in, below the root; `by`: the job that could not read it."""

    schema: str = "plimsoll.set-aside/1"
    file: str
    folder: str
    reason: str
    size_bytes: int
    at_us: int
    by: str


class SetAsideList(msgspec.Struct, frozen=True):
    """How many files are set aside, and the newest of them, newest first."""

    count: int
    newest: list[SetAsideFile]

    def describe(self) -> str:
        """The newest one and its reason; empty if there is none."""
        return f"{self.newest[0].file}: {self.newest[0].reason}" if self.newest else ""


class ExpectedBrokers(msgspec.Struct, frozen=True, kw_only=True):
    """The brokers of each cluster that should report, as collectors write it beside their files."""

    schema: int
    fleet: str
    written_us: int
    clusters: dict[str, list[str]]
