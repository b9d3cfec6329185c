"""What telemetry consists of: every table, every column, its type, its unit, and where the files lie.

Collectors, jobs and readers all derive their schema from here; nobody infers one. A change that old readers can live
with (a new nullable column at the end) leaves MAJOR as it is; any other raises it, and readers refuse a major that they
do not know. Times are whole microseconds since 1970 (UTC), so that no reader's time zone can bend them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

MAJOR: Final = 1
"""The major version of the tables, of load reports, and of the folders below `raw/` and `agg/`."""

INCOMING: Final = f"raw/v{MAJOR}/incoming"
SESSIONS: Final = f"raw/v{MAJOR}/sessions"
EXPECTED: Final = f"raw/v{MAJOR}/expected.json"
LATEST: Final = f"agg/v{MAJOR}/latest.json"

SKEW_SECONDS: Final = 5.0
"""A broker's clock that is further away from the collector's does not decide when a report was made."""

Scalar = Literal["int32", "int64", "float64", "string", "bool"]


@dataclass(frozen=True)
class Field:
    """One column. `type` is a scalar, or the fields of what a list holds; a list of strings is `("string",)`."""

    name: str
    type: Scalar | tuple[Field, ...] | tuple[Literal["string"]]
    unit: str
    about: str
    nullable: bool = False

    @property
    def is_list(self) -> bool:
        return isinstance(self.type, tuple)


@dataclass(frozen=True)
class Table:
    """One kind of row. `key`: rows with equal values there are the same row."""

    name: str
    about: str
    key: tuple[str, ...]
    fields: tuple[Field, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def field(self, name: str) -> Field:
        return next(field for field in self.fields if field.name == name)


RATE: Final = (
    Field("publisher", "string", "", "Name of the publisher."),
    Field("publications_per_second", "float64", "publications/s", "Accepted from it in the interval."),
    Field("bytes_per_second", "float64", "bytes/s", "Bodies accepted from it in the interval."),
)

COVER: Final = (
    Field("link", "string", "", "The edge or the neighbouring head that announced it."),
    Field("subscriptions", "int64", "subscriptions", "Size of the covering set that it has announced."),
)

LOADS: Final = Table(
    "loads",
    "A load report (PIE) of one broker over one report interval, as a collector took it.",
    ("broker", "epoch", "seq"),
    (
        Field("schema", "int32", "", "Major version of this table."),
        Field("collector", "string", "", "Who took it."),
        Field("received_us", "int64", "us since 1970", "When it came, by the collector's clock."),
        Field("event_us", "int64", "us since 1970", "When it was made, by the broker's clock.", nullable=True),
        Field("at_us", "int64", "us since 1970", "When windows take it to be made: event_us; received_us where that is"
              f" unknown or more than {SKEW_SECONDS:g} s away."),
        Field("fleet", "string", "", "Fleet of the broker."),
        Field("cluster", "string", "", "Cluster of the broker."),
        Field("broker", "string", "", "Name of the broker."),
        Field("role", "string", "", "head or edge."),
        Field("epoch", "int64", "", "Which start of the broker: later ones are greater unless its clock was set back."),
        Field("seq", "int64", "", "Number of the report within the epoch, from 1."),
        Field("state", "string", "", "OK, BUSY, N/A or STABILIZING."),
        Field("input_utilization", "float64", "ratio", "Arrival rate x matching delay; may exceed 1."),
        Field("output_utilization", "float64", "ratio", "Bytes per second / bandwidth; 0 where output is not limited."),
        Field("cpu_ratio", "float64", "ratio", "Of the profile's CPU."),
        Field("memory_ratio", "float64", "ratio", "Of the profile's memory."),
        Field("match_delay_seconds", "float64", "s", "Service time of a publication, from frame in to buffers out."),
        Field("index_delay_seconds", "float64", "s", "The part of it that the index takes."),
        Field("input_queue_delay_seconds", "float64", "s", "Mean wait before service."),
        Field("output_queue_delay_seconds", "float64", "s", "Mean wait after service."),
        Field("input_rate", "float64", "publications/s", "Arrivals."),
        Field("output_rate", "float64", "deliveries/s", "Deliveries."),
        Field("output_bytes_per_second", "float64", "bytes/s", "Bytes sent."),
        Field("subscribers", "int64", "subscribers", "Served here; at a head, in its cluster."),
        Field("subscriptions", "int64", "subscriptions", "What a publication is matched with here."),
        Field("interval_seconds", "float64", "s", "What the report is about, up to event_us.", nullable=True),
        Field("input_queue_messages", "int64", "messages", "Waiting for service.", nullable=True),
        Field("output_queue_messages", "int64", "messages", "Waiting to be sent.", nullable=True),
        Field("output_queue_bytes", "int64", "bytes", "Waiting to be sent.", nullable=True),
        Field("bandwidth_bytes_per_second", "float64", "bytes/s", "Output capacity; null: not limited.", nullable=True),
        Field("match_base_seconds", "float64", "s", "Fitted delay of a publication without matches.", nullable=True),
        Field("match_seconds_per_match", "float64", "s", "Fitted delay of each match.", nullable=True),
        Field("log_bytes", "int64", "bytes", "In a head's log.", nullable=True),
        Field("log_limit_bytes", "int64", "bytes", "What a head's log may hold.", nullable=True),
        Field("log_bytes_per_second", "float64", "bytes/s", "How fast a head's log fills.", nullable=True),
        Field("cover_subscriptions", "int64", "subscriptions", "Size of the covering set that an edge announces.",
              nullable=True),
        Field("publishers", "int64", "publishers", "Known to a head.", nullable=True),
        Field("arrivals_total", "int64", "publications", "Since the start of the epoch.", nullable=True),
        Field("deliveries_total", "int64", "deliveries", "Since the start of the epoch.", nullable=True),
        Field("bytes_out_total", "int64", "bytes", "Since the start of the epoch.", nullable=True),
        Field("gaps_total", "int64", "gaps", "Told of since the start of the epoch.", nullable=True),
        Field("balanced_set", ("string",), "", "Edges whose loads are within this one's triggers."),
        Field("publisher_rates", RATE, "", "The publishers of a head that sent most in the interval."),
        Field("covers", COVER, "", "Covering sets that a head holds, by link."),
    ),
)  # fmt: skip

FORECAST: Final = (
    Field("broker", "string", "", "An edge that the plan changes."),
    Field("utilization_before", "float64", "ratio", "The greater of input and output, at planning."),
    Field("utilization_predicted", "float64", "ratio", "What the plan promised."),
    Field("utilization_measured", "float64", "ratio", "What came after it had settled.", nullable=True),
    Field("input_predicted", "float64", "ratio", "Input utilisation promised.", nullable=True),
    Field("input_measured", "float64", "ratio", "Input utilisation that came.", nullable=True),
    Field("output_predicted", "float64", "ratio", "Output utilisation promised.", nullable=True),
    Field("output_measured", "float64", "ratio", "Output utilisation that came.", nullable=True),
    Field("match_predicted_seconds", "float64", "s", "Matching delay promised.", nullable=True),
    Field("match_measured_seconds", "float64", "s", "Matching delay that came.", nullable=True),
)

OUTCOMES: Final = Table(
    "sessions",
    "A load-balancing session that is over, with what it promised and what was measured.",
    ("uid",),
    (
        Field("schema", "int32", "", "Major version of this table."),
        Field("collector", "string", "", "Who took it."),
        Field("received_us", "int64", "us since 1970", "When it came, by the collector's clock."),
        Field("fleet", "string", "", "Fleet of the session."),
        Field("uid", "string", "", "Identity of the object; its name where it has none."),
        Field("name", "string", "", "Name of the object."),
        Field("scope", "string", "", "Local or Global."),
        Field("mode", "string", "", "DryRun, Execute or Simulate."),
        Field("phase", "string", "", "How it ended: Succeeded, Planned, Failed, RolledBack or Rejected."),
        Field("reason", "string", "", "Why, as one word."),
        Field("source", "string", "", "Edges that gave, joined by commas."),
        Field("target", "string", "", "Edges that took, joined by commas."),
        Field("policy", "string", "", "Policy that chose; empty: a user did."),
        Field("metric", "string", "", "What it relieved: input, match or output; empty: a user's choice."),
        Field("estimator", "string", "", "How it estimated: Press or Ring; empty: unknown."),
        Field("handover", "string", "", "drain or replay; empty: nothing was planned."),
        Field("attempts", "int64", "attempts", "How often it was tried."),
        Field("requested_us", "int64", "us since 1970", "When it was asked for."),
        Field("ended_us", "int64", "us since 1970", "When it ended."),
        Field("planned", "int64", "subscribers", "Named by the plan."),
        Field("moved", "int64", "subscribers", "Served by the target now."),
        Field("stayed", "int64", "subscribers", "Not moved."),
        Field("returned", "int64", "subscribers", "Moved, and back."),
        Field("detached", "int64", "subscribers", "Gone meanwhile."),
        Field("unknown", "int64", "subscribers", "Forgotten by the head, and served by neither."),
        Field("drain_predicted_seconds", "float64", "s", "Longest drain promised.", nullable=True),
        Field("drain_measured_seconds", "float64", "s", "Longest drain of a batch.", nullable=True),
        Field("edges", FORECAST, "", "Loads of the edges that it changed: before, promised, measured."),
    ),
)

TABLES: Final = (LOADS, OUTCOMES)

METRICS: Final = (
    "input_utilization", "output_utilization", "cpu_ratio", "memory_ratio", "match_delay_seconds",
    "input_queue_delay_seconds", "output_queue_delay_seconds", "input_rate", "output_rate", "output_bytes_per_second",
)  # fmt: skip
"""Columns of `loads` that aggregates are made of, in this order."""


def ddl(fields: tuple[Field, ...]) -> str:
    """The columns as Spark reads them: `StructType.fromDDL(ddl(LOADS.fields))`. Columns of files are all nullable."""
    return ", ".join(f"`{field.name}` {_spark(field)}" for field in fields)


def _spark(field: Field) -> str:
    names = {"int32": "INT", "int64": "BIGINT", "float64": "DOUBLE", "string": "STRING", "bool": "BOOLEAN"}
    if isinstance(field.type, str):
        return names[field.type]
    items = ", ".join(f"`{inner.name}`: {_spark(inner)}" for inner in field.type if isinstance(inner, Field))
    return f"ARRAY<STRUCT<{items}>>" if items else "ARRAY<STRING>"


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """Whom reports are expected from, as collectors write it beside their files: the brokers of each cluster."""

    schema: int
    fleet: str
    written_us: int
    clusters: dict[str, list[str]]


def columns(table: Table) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, unit and meaning of each column, for a page."""
    for field in table.fields:
        kind = field.type if isinstance(field.type, str) else "list"
        yield field.name, f"{kind}?" if field.nullable else kind, field.unit, field.about
