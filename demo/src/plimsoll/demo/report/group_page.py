"""The report of the demo with a consumer group: claims, who had how many slices, and what each consumer did."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from plimsoll.demo.report import page_parts
from plimsoll.demo.report.report_files import write_report_files
from plimsoll.pages.charts import Chart, ChartLine

COUNTS: Final = ("published", "processed_once", "lost", "repeated", "redelivered", "reordered")


def write_report(report: Mapping[str, Any], folder: Path) -> None:
    """`groups.json` and `groups.html`."""
    write_report_files(folder, "groups", report, render_page(report))


def render_page(report: Mapping[str, Any]) -> str:
    """The page of a report."""
    passed = report["verdict"] == "passed"
    said = "Passed: each item processed once, in order per slice." if passed else "Failed."
    body = [
        f"<h1>A group of {report['slices']} slices</h1>",
        page_parts.verdict(passed, said, [(name, f"{report[name]:,}") for name in COUNTS]),
        *page_parts.bullets(report["problems"]),
        "<h2>Claims</h2>",
        page_parts.claims(report["claims"]),
        "<h2>What happened</h2>",
        *page_parts.bullets([f"{at:.1f} s: {text}" for at, text in report["events"]]),
        "<h2>Consumers over time</h2>",
        page_parts.charts(page_parts.figure(chart, caption) for chart, caption in _charts(report)),
        "<h2>Consumers</h2>",
        _consumers(report),
    ]
    return page_parts.page(f"Plimsoll with a consumer group: {report['verdict']}", body)


def _charts(report: Mapping[str, Any]) -> list[tuple[Chart, str]]:
    names = list(report["consumers"])
    return [
        (Chart("Slices", "slices", _lines(report, names, "slices")), "As each consumer says itself."),
        (Chart("Items", "per second", _lines(report, names, "items_per_second")), "As consumers report them."),
        (Chart("Backlog", "items", [ChartLine("all", 1, [(one["at"], one["backlog"]) for one in report["looks"]])]),
         "Items that consumers have been sent and have not finished."),
    ]  # fmt: skip


def _lines(report: Mapping[str, Any], names: list[str], what: str) -> list[ChartLine]:
    return [
        ChartLine(name, 1 + look, [(one["at"], one[what].get(name)) for one in report["looks"]])
        for look, name in enumerate(names)
    ]


def _consumers(report: Mapping[str, Any]) -> str:
    rows = (
        (name, f"{one['finished']:,}", f"{one['redelivered']:,}", f"{1000 * one['seconds_per_item']:.1f} ms")
        for name, one in report["consumers"].items()
    )
    return page_parts.table(("consumer", "items finished", "marked as redelivered", "work per item"), rows)
