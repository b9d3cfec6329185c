"""What a table shows of each kind: one line that tells the story, and more with `-o wide`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Object = Mapping[str, Any]
Text = Callable[[Object, datetime], str]


@dataclass(frozen=True)
class Column:
    """A heading and what stands below it for an object at a time; `wide` columns are shown on request."""

    title: str
    text: Callable[[Object, datetime], str]
    wide: bool = False


def at(*path: str, missing: str = "-") -> Callable[[Object, datetime], str]:
    """The text at a path of the object."""

    def text(item: Object, now: datetime) -> str:
        value: Any = item
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        return missing if value is None or value == "" else str(value)

    return text


def ratio(*path: str) -> Callable[[Object, datetime], str]:
    """`ready/desired` of the counts at a path."""
    ready, desired = at(*path, "ready", missing="0"), at(*path, "desired", missing="?")
    return lambda item, now: f"{ready(item, now)}/{desired(item, now)}"


def condition(type_: str, field: str = "status") -> Callable[[Object, datetime], str]:
    """A field of a condition."""

    def text(item: Object, now: datetime) -> str:
        found = item.get("status", {}).get("conditions", [])
        return next((str(c.get(field, "")) for c in found if c["type"] == type_), "Unknown") or "-"

    return text


def age(item: Object, now: datetime) -> str:
    """How long ago the object was made."""
    made = item["metadata"].get("creationTimestamp")
    return "-" if made is None else duration((now - datetime.fromisoformat(made)).total_seconds())


def duration(seconds: float) -> str:
    """Seconds as a person says them: two units while the second one matters."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m" + (f"{whole % 60}s" if whole < 600 and whole % 60 else "")
    if whole < 172_800:
        hours, minutes = whole // 3600, whole % 3600 // 60
        return f"{hours}h" + (f"{minutes}m" if hours < 10 and minutes else "")
    return f"{whole // 86_400}d"


NAME = Column("NAME", at("metadata", "name"))
READY = Column("READY", condition("Ready"))
AGE = Column("AGE", age)
MESSAGE = Column("MESSAGE", condition("Ready", "message"), wide=True)
REASON = Column("REASON", condition("Ready", "reason"))
FRESH = Column("LOAD-DATA", condition("LoadDataFresh", "reason"))


def _load(title: str, key: str, *, wide: bool = False, head: bool = False) -> Column:
    path = ("status", "head", "load", key) if head else ("status", "load", key)
    return Column(title, at(*path), wide)


def _either(first: Text, second: Text) -> Text:
    return lambda item, now: second(item, now) if first(item, now) == "-" else first(item, now)


def _cordoned(item: Object, now: datetime) -> str:
    return "yes" if item["spec"].get("cordoned", False) else "no"


def _moved(item: Object, now: datetime) -> str:
    """`moved/planned`."""
    progress = item.get("status", {}).get("progress", {})
    return f"{progress['moved']}/{progress['planned']}" if progress.get("planned") else "-"


def _eta(item: Object, now: datetime) -> str:
    seconds = item.get("status", {}).get("progress", {}).get("etaSeconds")
    return "-" if seconds is None else duration(seconds)


def _seconds(item: Object, now: datetime) -> str:
    """From the request to the end, or until what was stored last."""
    spent = item.get("status", {}).get("timeInPhases")
    return "-" if spent is None else f"{sum(one['milliseconds'] for one in spent) / 1000:.1f}"


COLUMNS: dict[str, tuple[Column, ...]] = {
    "BrokerFleet": (
        NAME, READY, REASON, Column("CLUSTERS", at("status", "clusters")),
        Column("BROKERS", ratio("status", "brokers")),
        Column("SECURITY", at("status", "security")), FRESH, AGE,
        Column("PID", at("status", "supervisor", "pid"), wide=True), MESSAGE,
    ),
    "BrokerCluster": (
        NAME, READY, REASON, Column("EDGES", ratio("status", "edges")),
        Column("SUBSCRIBERS", at("status", "subscribers")),
        _load("PUBS/S", "publicationsPerSecond", head=True), _load("HEAD-IN%", "inputUtilizationPercent", head=True),
        Column("BALANCED", condition("Balanced", "status")),
        Column("IMBALANCE%", at("status", "imbalancePercent")), FRESH, AGE,
        Column("WHY", condition("Balanced", "reason"), wide=True),
        Column("LAST-SESSION", at("status", "lastSession", "reason"), wide=True),
        Column("HEAD", at("status", "head", "name"), wide=True),
        Column("ENDPOINT", at("status", "endpoint"), wide=True),
        Column("POLICY", at("spec", "policy", "type"), wide=True), MESSAGE,
    ),
    "EdgeBroker": (
        NAME, Column("CLUSTER", at("spec", "clusterRef", "name")), Column("PROFILE", at("spec", "profile")), READY,
        Column("STATE", at("status", "state")), Column("CORDONED", _cordoned),
        Column("SUBSCRIBERS", at("status", "subscribers")),
        _load("IN%", "inputUtilizationPercent"), _load("OUT%", "outputUtilizationPercent"),
        _load("OUT/S", "deliveriesPerSecond"), Column("RESTARTS", at("status", "restarts")), AGE,
        _load("CPU%", "cpuPercent", wide=True), _load("MATCH-US", "matchDelayMicroseconds", wide=True),
        _load("QUEUE", "outputQueueMessages", wide=True), Column("PID", at("status", "pid"), wide=True),
        Column("ENDPOINT", at("status", "endpoints", "data"), wide=True), MESSAGE,
    ),
    "HardwareProfile": (
        NAME, Column("CPU", at("spec", "cpu", missing="1")), Column("MEMORY", at("spec", "memory", missing="256Mi")),
        Column("IN-BYTES/S", at("spec", "bandwidth", "inputBytesPerSecond", missing="unlimited")),
        Column("OUT-BYTES/S", at("spec", "bandwidth", "outputBytesPerSecond", missing="unlimited")),
        Column("EMULATED", lambda item, now: "yes" if "emulation" in item["spec"] else "no"),
        Column("BROKERS", at("status", "brokers")), AGE,
        Column("PUBLICATION-NS", at("status", "calibrated", "publicationNanoseconds"), wide=True),
        Column("MATCH-NS", at("status", "calibrated", "matchNanoseconds"), wide=True),
        Column("ERR%", at("status", "calibrated", "errorPercent"), wide=True),
    ),
    "LoadBalancingSession": (
        NAME, Column("ACTION", at("spec", "action", missing="Rebalance")),
        Column("SOURCE", _either(at("status", "source"), at("spec", "source", "name"))),
        Column("TARGET", _either(at("status", "target"), at("spec", "target", "name"))),
        Column("PHASE", at("status", "phase", missing="Requested")), Column("REASON", at("status", "reason")),
        Column("MOVED", _moved), Column("LOST", at("status", "audit", "lost")), Column("ETA", _eta),
        Column("SECONDS", _seconds), AGE,
        Column("AUDITED", at("status", "audit", "subscribers"), wide=True),
        Column("DUPLICATED", at("status", "audit", "duplicated"), wide=True),
        Column("REORDERED", at("status", "audit", "reordered"), wide=True),
        Column("MODE", at("spec", "mode", missing="DryRun"), wide=True),
        Column("SCOPE", at("spec", "scope"), wide=True), Column("PLAN", at("status", "planHash"), wide=True),
        Column("ATTEMPT", at("status", "attempt"), wide=True), Column("SUCCEEDED", condition("Succeeded"), wide=True),
        Column("MESSAGE", at("status", "message"), wide=True),
    ),
}  # fmt: skip


def columns(kind: str, *, wide: bool = False) -> list[Column]:
    """The columns of a kind."""
    return [column for column in COLUMNS[kind] if wide or not column.wide]


def row(shown: Sequence[Column], item: Object, now: datetime) -> list[str]:
    """One object's line."""
    return [column.text(item, now) for column in shown]
