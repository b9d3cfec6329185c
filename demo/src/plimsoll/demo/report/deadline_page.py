"""The report of the demo of deadlines: claims, late deliveries by topic and policy, what moved, and both over time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from plimsoll.demo.report import page_parts
from plimsoll.demo.report.report_files import write_report_files
from plimsoll.pages.charts import Chart, ChartLine

COUNTS: Final = ("published", "expected", "delivered", "lost", "duplicated", "reordered", "gaps")


def write_report(report: Mapping[str, Any], folder: Path) -> None:
    """`deadlines.json` and `deadlines.html`."""
    write_report_files(folder, "deadlines", report, render_page(report))


def render_page(report: Mapping[str, Any]) -> str:
    """The page of a report."""
    passed = report["verdict"] == "passed"
    said = "Passed: nothing lost, repeated or reordered." if passed else "Failed."
    violations = [f"{name}: {text}" for name, one in report["runs"].items() for text in one["violations"]]
    body = [
        "<h1>A burst, and a deadline in danger</h1>",
        page_parts.verdict(passed, said, [(name, f"{report[name]:,}") for name in COUNTS]),
        *page_parts.bullets([*report["problems"], *violations]),
        "<h2>Claims</h2>",
        page_parts.claims(report["claims"]),
        "<h2>Late deliveries</h2>",
        _late_table(report),
        "<h2>What moved</h2>",
        *page_parts.bullets(events(report)),
        "<h2>Over time</h2>",
        page_parts.charts(page_parts.figure(chart, caption) for chart, caption in _charts(report)),
    ]
    return page_parts.page("Deadlines", body)


def late_lines(report: Mapping[str, Any]) -> list[str]:
    """Late deliveries by topic and policy, for the terminal: topics that were late under one of them."""
    rows = late_rows(report)
    some = [row for row in rows[:-1] if any(cell != "0" for cell in row[2:])] + rows[-1:]
    cells = [["late deliveries", "required", *report["runs"]], *some]
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    return ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in cells]


def late_rows(report: Mapping[str, Any]) -> list[list[str]]:
    """A row for each topic: required latency, and late deliveries by policy; the last is of all topics."""
    runs = report["runs"].values()
    rows = [
        [topic, f"{1000 * seconds:,.0f} ms", *(f"{one['topics'][topic]['late']:,}" for one in runs)]
        for topic, seconds in report["required_seconds"].items()
    ]
    return [*rows, ["all topics", "", *(f"{one['late']:,} of {one['delivered']:,}" for one in runs)]]


def _late_table(report: Mapping[str, Any]) -> str:
    return page_parts.table(("topic", "required", *report["runs"]), late_rows(report))


def events(report: Mapping[str, Any]) -> list[str]:
    """A sentence for the burst and for each move, by policy."""
    found = [f"{report['burst_at_seconds']:.1f} s: seven topics double their rates"]
    for name, one in report["runs"].items():
        for each in one["moves"]:
            what = ", ".join(f"{count} of {topic}" for topic, count in each["topics"].items())
            found.append(
                f"{name}, {each['at_seconds']:.1f} to {each['ended_at_seconds']:.1f} s: {what} from {each['from']} to "
                f"{each['to']}"
            )
        if not one["moves"]:
            found.append(f"{name}: nothing moved")
    return found


def _charts(report: Mapping[str, Any]) -> list[tuple[Chart, str]]:
    runs = report["runs"]

    def lines(field: str) -> list[ChartLine]:
        return [ChartLine(name, 1 + look, [(at, value) for at, value in one[field]])
                for look, (name, one) in enumerate(runs.items())]  # fmt: skip

    first = next(iter(runs))
    depth = ChartLine(first, 1, [(at, value) for at, value in runs[first]["depths"]])
    charts = [
        (Chart("Late deliveries", "per second", lines("late_over_time")), "Of all topics."),
        (Chart("Longest delay of topic 8", "seconds", lines("longest_over_time")),
         f"It is wanted within {report['required_seconds']['t8']:.2f} s."),
        (Chart("Messages of topic 8 that wait at b1", "messages", [depth]), "For each subscriber, by load reports."),
    ]  # fmt: skip
    for name, one in runs.items():
        used = [_uplink(edge, look, each["series"]) for look, (edge, each) in enumerate(one["brokers"].items())]
        charts.append(
            (Chart(f"Use of the uplinks, {name}", "%", used), "Bytes per second as a share of the bandwidth.")
        )
    return charts


def _uplink(edge: str, look: int, columns: Mapping[str, Any]) -> ChartLine:
    both = zip(columns["seconds"], columns["output_utilization"], strict=True)
    return ChartLine(edge, 1 + look, [(at, 100 * used) for at, used in both if at >= 0.0])
