"""The table columns of each kind: one line per object, with more columns for `-o wide`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Object = Mapping[str, Any]
CellText = Callable[[Object, datetime], str]


@dataclass(frozen=True)
class TableColumn:
    """A heading, and the function for an object's cell; `wide` columns are shown on request."""

    title: str
    text: Callable[[Object, datetime], str]
    wide: bool = False


def field_text(*path: str, missing: str = "-") -> Callable[[Object, datetime], str]:
    """The text at a path of the object."""

    def text(item: Object, now: datetime) -> str:
        value: Any = item
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        return missing if value is None or value == "" else str(value)

    return text


def ready_ratio(*path: str) -> Callable[[Object, datetime], str]:
    """`ready/desired` of the counts at a path."""
    ready, desired = field_text(*path, "ready", missing="0"), field_text(*path, "desired", missing="?")
    return lambda item, now: f"{ready(item, now)}/{desired(item, now)}"


def condition_text(type_: str, field: str = "status") -> Callable[[Object, datetime], str]:
    """A field of a condition."""

    def text(item: Object, now: datetime) -> str:
        found = item.get("status", {}).get("conditions", [])
        return next((str(c.get(field, "")) for c in found if c["type"] == type_), "Unknown") or "-"

    return text


def age_text(item: Object, now: datetime) -> str:
    """How long ago the object was made."""
    made = item["metadata"].get("creationTimestamp")
    return "-" if made is None else duration_text((now - datetime.fromisoformat(made)).total_seconds())


def duration_text(seconds: float) -> str:
    """A duration for people: two units as long as the second one matters."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m" + (f"{whole % 60}s" if whole < 600 and whole % 60 else "")
    if whole < 172_800:
        hours, minutes = whole // 3600, whole % 3600 // 60
        return f"{hours}h" + (f"{minutes}m" if hours < 10 and minutes else "")
    return f"{whole // 86_400}d"


NAME = TableColumn("NAME", field_text("metadata", "name"))
READY = TableColumn("READY", condition_text("Ready"))
AGE = TableColumn("AGE", age_text)
MESSAGE = TableColumn("MESSAGE", condition_text("Ready", "message"), wide=True)
REASON = TableColumn("REASON", condition_text("Ready", "reason"))
LOAD_DATA = TableColumn("LOAD-DATA", condition_text("LoadDataFresh", "reason"))


def _load_column(title: str, key: str, *, wide: bool = False, head: bool = False) -> TableColumn:
    path = ("status", "head", "load", key) if head else ("status", "load", key)
    return TableColumn(title, field_text(*path), wide)


def _first_known(first: CellText, second: CellText) -> CellText:
    return lambda item, now: second(item, now) if first(item, now) == "-" else first(item, now)


def _cordoned_text(item: Object, now: datetime) -> str:
    return "yes" if item["spec"].get("cordoned", False) else "no"


def _moved_text(item: Object, now: datetime) -> str:
    """`moved/planned`."""
    progress = item.get("status", {}).get("progress", {})
    return f"{progress['moved']}/{progress['planned']}" if progress.get("planned") else "-"


def _eta_text(item: Object, now: datetime) -> str:
    seconds = item.get("status", {}).get("progress", {}).get("etaSeconds")
    return "-" if seconds is None else duration_text(seconds)


def _seconds_text(item: Object, now: datetime) -> str:
    """From the request to the end, or to the last stored change."""
    spent = item.get("status", {}).get("timeInPhases")
    return "-" if spent is None else f"{sum(one['milliseconds'] for one in spent) / 1000:.1f}"


COLUMNS: dict[str, tuple[TableColumn, ...]] = {
    "BrokerFleet": (
        NAME,
        READY,
        REASON,
        TableColumn("CLUSTERS", field_text("status", "clusters")),
        TableColumn("BROKERS", ready_ratio("status", "brokers")),
        TableColumn("SECURITY", field_text("status", "security")),
        LOAD_DATA,
        AGE,
        TableColumn("PID", field_text("status", "supervisor", "pid"), wide=True),
        MESSAGE,
    ),
    "BrokerCluster": (
        NAME,
        READY,
        REASON,
        TableColumn("EDGES", ready_ratio("status", "edges")),
        TableColumn("SUBSCRIBERS", field_text("status", "subscribers")),
        _load_column("PUBS/S", "publicationsPerSecond", head=True),
        _load_column("HEAD-IN%", "inputUtilizationPercent", head=True),
        TableColumn("BALANCED", condition_text("Balanced", "status")),
        TableColumn("IMBALANCE%", field_text("status", "imbalancePercent")),
        LOAD_DATA,
        AGE,
        TableColumn("WHY", condition_text("Balanced", "reason"), wide=True),
        TableColumn("LAST-SESSION", field_text("status", "lastSession", "reason"), wide=True),
        TableColumn("HEAD", field_text("status", "head", "name"), wide=True),
        TableColumn("TERM", field_text("status", "leadership", "term"), wide=True),
        TableColumn("STANDBY", condition_text("StandbyFollows", "reason"), wide=True),
        TableColumn("ENDPOINT", field_text("status", "endpoint"), wide=True),
        TableColumn("POLICY", field_text("spec", "policy", "type"), wide=True),
        MESSAGE,
    ),
    "EdgeBroker": (
        NAME,
        TableColumn("CLUSTER", field_text("spec", "clusterRef", "name")),
        TableColumn("PROFILE", field_text("spec", "profile")),
        READY,
        TableColumn("STATE", field_text("status", "state")),
        TableColumn("CORDONED", _cordoned_text),
        TableColumn("SUBSCRIBERS", field_text("status", "subscribers")),
        _load_column("IN%", "inputUtilizationPercent"),
        _load_column("OUT%", "outputUtilizationPercent"),
        _load_column("OUT/S", "deliveriesPerSecond"),
        TableColumn("RESTARTS", field_text("status", "restarts")),
        AGE,
        _load_column("CPU%", "cpuPercent", wide=True),
        _load_column("MATCH-US", "matchDelayMicroseconds", wide=True),
        _load_column("QUEUE", "outputQueueMessages", wide=True),
        TableColumn("PID", field_text("status", "pid"), wide=True),
        TableColumn("ENDPOINT", field_text("status", "endpoints", "data"), wide=True),
        MESSAGE,
    ),
    "HardwareProfile": (
        NAME,
        TableColumn("CPU", field_text("spec", "cpu", missing="1")),
        TableColumn("MEMORY", field_text("spec", "memory", missing="256Mi")),
        TableColumn("IN-BYTES/S", field_text("spec", "bandwidth", "inputBytesPerSecond", missing="unlimited")),
        TableColumn("OUT-BYTES/S", field_text("spec", "bandwidth", "outputBytesPerSecond", missing="unlimited")),
        TableColumn("EMULATED", lambda item, now: "yes" if "emulation" in item["spec"] else "no"),
        TableColumn("BROKERS", field_text("status", "brokers")),
        AGE,
        TableColumn("PUBLICATION-NS", field_text("status", "calibrated", "publicationNanoseconds"), wide=True),
        TableColumn("MATCH-NS", field_text("status", "calibrated", "matchNanoseconds"), wide=True),
        TableColumn("ERR%", field_text("status", "calibrated", "errorPercent"), wide=True),
    ),
    "LoadBalancingSession": (
        NAME,
        TableColumn("ACTION", field_text("spec", "action", missing="Rebalance")),
        TableColumn("SOURCE", _first_known(field_text("status", "source"), field_text("spec", "source", "name"))),
        TableColumn("TARGET", _first_known(field_text("status", "target"), field_text("spec", "target", "name"))),
        TableColumn("PHASE", field_text("status", "phase", missing="Requested")),
        TableColumn("REASON", field_text("status", "reason")),
        TableColumn("MOVED", _moved_text),
        TableColumn("DELIVERED", condition_text("Delivered")),
        TableColumn("LOST", field_text("status", "audit", "lost")),
        TableColumn("ETA", _eta_text),
        TableColumn("SECONDS", _seconds_text),
        AGE,
        TableColumn("AUDITED", field_text("status", "audit", "subscribers"), wide=True),
        TableColumn("DUPLICATED", field_text("status", "audit", "duplicated"), wide=True),
        TableColumn("REORDERED", field_text("status", "audit", "reordered"), wide=True),
        TableColumn("MODE", field_text("spec", "mode", missing="DryRun"), wide=True),
        TableColumn("SCOPE", field_text("spec", "scope"), wide=True),
        TableColumn("PLAN", field_text("status", "planHash"), wide=True),
        TableColumn("ATTEMPT", field_text("status", "attempt"), wide=True),
        TableColumn("SUCCEEDED", condition_text("Succeeded"), wide=True),
        TableColumn("MESSAGE", field_text("status", "message"), wide=True),
    ),
    "Feed": (
        NAME,
        TableColumn("RECORDING", condition_text("Recording")),
        TableColumn("ROWS", field_text("status", "rows")),
        TableColumn("DEAD-LETTERS", field_text("status", "deadLetters")),
        TableColumn("GAPS", field_text("status", "gaps")),
        TableColumn("FILES", field_text("status", "files")),
        TableColumn("BYTES", field_text("status", "sizeBytes")),
        TableColumn("RESTARTS", field_text("status", "restarts")),
        AGE,
        TableColumn("SUBSCRIPTION", field_text("spec", "subscription"), wide=True),
        TableColumn("PATH", field_text("status", "path"), wide=True),
    ),
    "Channel": (
        NAME,
        TableColumn("RUNNING", condition_text("Running")),
        TableColumn("REASON", condition_text("Running", "reason")),
        TableColumn("SUBSCRIPTIONS", field_text("status", "subscriptions")),
        TableColumn("MODE", field_text("spec", "mode", missing="Continuous")),
        TableColumn("EVERY", field_text("spec", "every")),
        TableColumn("BATCH", field_text("status", "batch")),
        TableColumn("LATE-MS", field_text("status", "lateMilliseconds")),
        TableColumn("ROWS", field_text("status", "rowsIn")),
        TableColumn("LATE-ROWS", field_text("status", "lateRows")),
        TableColumn("RESULTS", field_text("status", "results")),
        TableColumn("DRIVER", field_text("status", "pid")),
        AGE,
        TableColumn("OPEN", field_text("status", "openSubscriptions"), wide=True),
        TableColumn("INVALID", field_text("status", "invalidRows"), wide=True),
        TableColumn("UNKNOWN", field_text("status", "unknownResults"), wide=True),
        TableColumn("QUERY-MS", field_text("status", "batchMilliseconds"), wide=True),
        TableColumn("BATCH-AT", field_text("status", "batchAt"), wide=True),
        TableColumn("RESTARTS", field_text("status", "restarts"), wide=True),
    ),
}


def columns(kind: str, *, wide: bool = False) -> list[TableColumn]:
    """The columns of a kind."""
    return [column for column in COLUMNS[kind] if wide or not column.wide]


def row(shown: Sequence[TableColumn], item: Object, now: datetime) -> list[str]:
    """One object's line."""
    return [column.text(item, now) for column in shown]
