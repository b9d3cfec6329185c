"""The report of the demo between clusters: figures 8a to 8c of PADRES 2006 from a run, in a self-contained page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from plimsoll.demo.report import page_parts
from plimsoll.demo.report.report_files import write_report_files
from plimsoll.pages.charts import Chart, ChartLine

FIGURES: Final = (
    ("8a", "Input utilisation", "input_utilization", "%", 100.0),
    ("8b", "Output utilisation", "output_utilization", "%", 100.0),
    ("8c", "Matching delay", "match_delay_seconds", "ms", 1000.0),
)


def write_report(report: Mapping[str, Any], folder: Path) -> None:
    """`global.json` and `global.html`."""
    write_report_files(folder, "global", report, render_page(report))


def render_page(report: Mapping[str, Any]) -> str:
    """The page of a report."""
    passed = report["verdict"] == "passed"
    counts = [(name, f"{report[name]:,}") for name in ("delivered", "lost", "duplicated", "reordered", "gaps")]
    body = [
        f"<h1>Balancing between {len(report['clusters'])} clusters in a chain</h1>",
        page_parts.verdict(passed, "Passed" if passed else "Failed", counts),
        *page_parts.bullets(report["problems"]),
        page_parts.charts(_figure(report, *figure) for figure in FIGURES),
        "<h2>In the end</h2>",
        _clusters(report),
        "<h2>Sessions between clusters</h2>",
        _sessions(report),
    ]
    return page_parts.page("Plimsoll between clusters", body)


def _figure(report: Mapping[str, Any], number: str, title: str, metric: str, unit: str, scale: float) -> str:
    lines = [
        ChartLine(name, look, [
            (at, None if value is None else value * scale)
            for at, value in zip(one["over_time"]["seconds"], one["over_time"][metric], strict=True)
        ])
        for look, (name, one) in enumerate(report["clusters"].items())
    ]  # fmt: skip
    chart = Chart(title, unit, lines)
    caption = f"Figure {number}: {title.lower()} of each cluster, averaged over its edges"
    return page_parts.figure(chart, caption)


def _clusters(report: Mapping[str, Any]) -> str:
    rows = (_row(name, one["subscribers"], one["last"]) for name, one in report["clusters"].items())
    return page_parts.table(("cluster", "subscribers", "input", "output", "matching delay"), rows)


def _row(name: str, subscribers: int, last: Mapping[str, float]) -> tuple[str, ...]:
    return (
        name, f"{subscribers:,}", f"{last['input_utilization']:.0%}", f"{last['output_utilization']:.0%}",
        f"{1000 * last['match_delay_seconds']:.2f} ms",
    )  # fmt: skip


def _sessions(report: Mapping[str, Any]) -> str:
    rows = (
        (f"{one['at_seconds']:.0f} s", one["source"], one["target"], f"{one['moved']:,}", one["state"], one["reason"])
        for one in report["sessions"] if one["between"]
    )  # fmt: skip
    return page_parts.table(("at", "from", "to", "moved", "state", "reason"), rows)
