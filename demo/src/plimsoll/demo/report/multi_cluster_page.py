"""The report of the demo between clusters: figures 8a to 8c of PADRES 2006 from a run, in a self-contained page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from plimsoll.core.printable import html_text
from plimsoll.pages.charts import Chart, ChartLine, svg
from plimsoll.pages.style import STYLE

FIGURES: Final = (
    ("8a", "Input utilisation", "input_utilization", "%", 100.0),
    ("8b", "Output utilisation", "output_utilization", "%", 100.0),
    ("8c", "Matching delay", "match_delay_seconds", "ms", 1000.0),
)


def write_report(report: Mapping[str, Any], folder: Path) -> None:
    """`global.json` and `global.html`."""
    (folder / "global.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (folder / "global.html").write_text(render_page(report), encoding="utf-8")


def render_page(report: Mapping[str, Any]) -> str:
    """The page of a report."""
    passed = report["verdict"] == "passed"
    counts = ", ".join(f"{report[name]:,} {name}" for name in ("delivered", "lost", "duplicated", "reordered", "gaps"))
    problems = "".join(f"<li>{html_text(each)}</li>" for each in report["problems"])
    body = [
        f"<h1>Balancing between {len(report['clusters'])} clusters in a chain</h1>",
        f'<div class="verdict {"passed" if passed else "failed"}"><strong>{"Passed" if passed else "Failed"}</strong>'
        f"<p>{counts}</p><ul>{problems}</ul></div>",
        '<div class="charts">',
        *(_figure(report, *figure) for figure in FIGURES),
        "</div>",
        "<h2>In the end</h2>",
        _clusters(report),
        "<h2>Sessions between clusters</h2>",
        _sessions(report),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Plimsoll between clusters</title>\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


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
    return f"<figure><h3>{title} ({unit})</h3>{svg(chart)}<figcaption>{caption}</figcaption></figure>"


def _clusters(report: Mapping[str, Any]) -> str:
    rows = "".join(_row(name, one["subscribers"], one["last"]) for name, one in report["clusters"].items())
    titles = "".join(f"<th>{each}</th>" for each in ("cluster", "subscribers", "input", "output", "matching delay"))
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>"


def _row(name: str, subscribers: int, last: Mapping[str, float]) -> str:
    cells = (
        html_text(name), f"{subscribers:,}", f"{last['input_utilization']:.0%}", f"{last['output_utilization']:.0%}",
        f"{1000 * last['match_delay_seconds']:.2f} ms",
    )  # fmt: skip
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _sessions(report: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td>{one['at_seconds']:.0f} s</td><td>{html_text(one['source'])}</td><td>{html_text(one['target'])}</td>"
        f"<td>{one['moved']:,}</td><td>{html_text(one['state'])}</td><td>{html_text(one['reason'])}</td></tr>"
        for one in report["sessions"] if one["between"]
    )  # fmt: skip
    titles = "".join(f"<th>{each}</th>" for each in ("at", "from", "to", "moved", "state", "reason"))
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>"
