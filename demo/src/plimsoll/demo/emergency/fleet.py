"""The fleet of the scenario as resources: a head and five edges under BAD, the feed of reports, and seven channels."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal

from plimsoll.core.spec import Resources, SourceDocument, parse
from plimsoll.demo.emergency.plan import AREAS, CHANNELS, CityPlan, EmergencyChannel, near

Arm = Literal["nothing", "ldm", "sdm", "shuffle"]
Placement = Literal["nearest", "round-robin"]
ARMS: Final[dict[Arm, tuple[str, str]]] = {
    "nothing": ("None", "None"), "ldm": ("LoadBased", "None"), "sdm": ("SimilarityBased", "None"),
    "shuffle": ("None", "Greedy"),
}  # fmt: skip
"""Migration and shuffle of each arm of the paper's comparison."""
EDGE_PLACES: Final = ((0.2, 0.2), (0.8, 0.8), (0.2, 0.8), (0.8, 0.2), (0.5, 0.5))
TABLES: Final = "tables"
SHELTERS: Final = """
JOIN (SELECT o.area, array_join(sort_array(collect_list(s.name)), ',') AS names
      FROM around o JOIN shelters s ON s.area = o.other GROUP BY o.area) h"""
"""The shelters in an area and around it, as one text."""


def emergency_resources(plan: CityPlan, arm: Arm, placement: Placement) -> Resources:
    """All objects of the fleet."""
    return parse(SourceDocument(each) for each in _documents(plan, arm, placement))


def _documents(plan: CityPlan, arm: Arm, placement: Placement) -> Iterable[dict[str, Any]]:
    migration, shuffle = ARMS[arm]
    bad = {
        "placement": {"nearest": "Nearest", "round-robin": "RoundRobin"}[placement], "migration": migration,
        "shuffle": shuffle, "rules": "Paper",
    }  # fmt: skip
    policy = {"type": "Bad", "detection": {"interval": "2s", "stabilizeFor": "4s"}, "bad": bad}
    yield _object("BrokerFleet", "emergencies", {"telemetry": {"reportInterval": "1s"}})
    yield _object("HardwareProfile", "broker", {"cpu": "1", "memory": "256Mi"})
    edges = [
        {"name": f"edge-{number}", "profile": "broker", "replicas": 1, "location": {"east": str(x), "north": str(y)}}
        for number, (x, y) in enumerate(EDGE_PLACES)
    ]
    yield _object("BrokerCluster", "city", {"head": {"profile": "broker"}, "edges": edges, "policy": policy})
    columns = [{"name": name, "type": "Integer", "required": True} for name in ("event", "area", "report")]
    schema = {"columns": columns, "unknownAttributes": "Drop"}
    subscription = "[class,=,'REPORT']"
    yield _object("Feed", "reports", {"subscription": subscription, "commitInterval": "1s", "schema": schema})
    for channel in CHANNELS:
        yield _object("Channel", channel.name, _channel(channel, plan.scenario.period_factor))


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def _channel(channel: EmergencyChannel, factor: float) -> dict[str, Any]:
    tables = [{"name": name, "path": f"{TABLES}/{name}.csv", "format": "Csv"} for name in _tables_of(channel)]
    return {
        "parameters": [{"name": name, "type": "Integer"} for name in channel.parameters],
        "feeds": [{"name": "r", "feed": "reports"}],
        "tables": tables,
        "query": query_of(channel),
        "mode": "Repetitive",
        "every": f"{max(1000, round(channel.period_seconds * factor * 1000))}ms",
    }


def _tables_of(channel: EmergencyChannel) -> list[str]:
    return [*(["around"] if channel.reach == "Near" or channel.shelters else []),
            *(["shelters"] if channel.shelters else [])]  # fmt: skip


def query_of(channel: EmergencyChannel) -> str:
    """Its query: all parameters in force, joined with the new reports, and with the shelters near by."""
    where = next((name for name in ("area", "location") if name in channel.parameters), "")
    columns = [f"p.{name}" for name in channel.parameters]
    on = ["r.event = p.event"] if "event" in channel.parameters else []
    joins = "parameters p"
    if channel.reach == "Near":
        joins += f"\nJOIN around a ON a.area = p.{where}"
        on.append("r.area = a.other")
    elif where:
        on.append(f"r.area = p.{where}")
    joins += f"\nJOIN r ON {' AND '.join(on)}"
    if channel.shelters:
        joins += f"{SHELTERS} ON h.area = p.{where}"
        columns.append("h.names AS shelters")
    return f"SELECT {', '.join(columns)}, r.report, r._payload AS payload\nFROM {joins}\nORDER BY r._row"


def write_tables(plan: CityPlan, folder: Path) -> None:
    """The stored tables of the queries: which areas are around which, and the shelters."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "around.csv", ("area", "other"), ((area, other) for area in AREAS for other in near(area)))
    named = ((f"shelter-{number:03}", area) for number, area in enumerate(plan.shelters))
    _write(folder / "shelters.csv", ("name", "area"), named)


def _write(path: Path, names: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
