"""The report of the demo with bundles: claims, loads of edges, what was split, moved and killed, and who owns what."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from plimsoll.demo.report import page_parts
from plimsoll.demo.report.report_files import write_report_files
from plimsoll.pages.charts import Chart, ChartLine, chart_line

COUNTS: Final = ("published", "expected", "delivered", "lost", "duplicated", "reordered", "gaps")


def write_report(report: Mapping[str, Any], folder: Path) -> None:
    """`bundles.json` and `bundles.html`."""
    write_report_files(folder, "bundles", report, render_page(report))


def render_page(report: Mapping[str, Any]) -> str:
    """The page of a report."""
    passed = report["verdict"] == "passed"
    said = "Passed: nothing lost, repeated or reordered." if passed else "Failed."
    body = [
        f"<h1>{report['scenario']['topics']} topics in bundles on {len(report['brokers'])} edges</h1>",
        page_parts.verdict(passed, said, [(name, f"{report[name]:,}") for name in COUNTS]),
        *page_parts.bullets([*report["problems"], *report["violations"]]),
        "<h2>Claims</h2>",
        page_parts.claims(report["claims"]),
        "<h2>What happened</h2>",
        *page_parts.bullets(events(report)),
        "<h2>Edges over time</h2>",
        page_parts.charts(page_parts.figure(chart, caption) for chart, caption in _charts(report)),
        "<h2>Sessions</h2>",
        _sessions(report),
        "<h2>Bundles at the end</h2>",
        _bundles(report),
    ]
    return page_parts.page(f"Plimsoll with bundles: {report['verdict']}", body)


def events(report: Mapping[str, Any]) -> list[str]:
    """A sentence for each step of the run."""
    found = [
        (
            one["at"],
            f"{one['bundle']} was split at {one['rate']:.0f} messages a second into {' and '.join(one['halves'])}",
        )
        for one in report["splits"]
    ]
    found += [
        (one["at_seconds"], f"{one['name']} moved {one['moved']} units by {one['by']}: {one['state']}")
        for one in report["sessions"]
    ]
    if (killed := report["killed"]) is not None:
        found.append((killed["at_seconds"], f"edge {killed['edge']} was killed"))
    return [f"{at:.1f} s: {text}" for at, text in sorted(found)]


def _charts(report: Mapping[str, Any]) -> list[tuple[Chart, str]]:
    edges = {name: one["series"] for name, one in report["brokers"].items()}
    used = [
        chart_line(name, 1 + look, one, "output_utilization", 100) for look, (name, one) in enumerate(edges.items())
    ]
    units = [chart_line(name, 1 + look, one, "subscribers") for look, (name, one) in enumerate(edges.items())]
    rates = [ChartLine(name, 1 + look, _messages(one)) for look, (name, one) in enumerate(edges.items())]
    return [
        (Chart("Messages", "per second", rates), "In and out of each edge."),
        (Chart("Output utilisation", "%", used), "Bytes per second as a share of the edge's bandwidth."),
        (Chart("Units", "units", units), "Units of subscribers that each edge serves."),
    ]


def _messages(columns: Mapping[str, Any]) -> list[tuple[float, float | None]]:
    both = zip(columns["seconds"], columns["input_rate"], columns["output_rate"], strict=True)
    return [(at, taken + sent) for at, taken, sent in both]


def _sessions(report: Mapping[str, Any]) -> str:
    waits = report["waits"]
    rows = (
        (f"{one['at_seconds']:.1f} s", one["name"], one["by"], f"{one['moved']:,}", one["state"],
         _wait(waits.get(one["name"])), "; ".join(one["reasons"]) or one["message"])
        for one in report["sessions"]
    )  # fmt: skip
    return page_parts.table(("at", "session", "by", "units", "state", "longest wait", "why"), rows)


def _wait(found: Mapping[str, Any] | None) -> str:
    seconds = None if found is None else found["longest_seconds"]
    return "-" if seconds is None else f"{1000 * seconds:,.0f} ms"


def _bundles(report: Mapping[str, Any]) -> str:
    rows = (
        (one["bundle"], one["edge"] or "no edge", ", ".join(one["serving"]), f"{one['messages_per_second']:,.0f}")
        for one in report["bundles"]
    )
    return page_parts.table(("bundle", "owner", "served by", "messages per second"), rows)
