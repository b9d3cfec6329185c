"""The report of a run: `channels.json` and `channels.html`, with claims, counts, loads, and a map."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from plimsoll.core.printable import html_text
from plimsoll.demo.analysis.measured_claims import MeasuredClaim
from plimsoll.demo.emergency.fleet import EDGE_PLACES
from plimsoll.demo.emergency.plan import BY_NAME, SIDE, CityPlan
from plimsoll.demo.emergency.run import EmergencyRun, cov
from plimsoll.demo.report import page_parts
from plimsoll.demo.report.report_files import write_report_files
from plimsoll.pages.charts import Chart, ChartLine

COUNTS: Final = ("due", "delivered", "missing", "wrong", "lost", "duplicated", "reordered")
MAP_PIXELS: Final = 420
SHOWN: Final = (
    "subscriptions", "batch", "rowsIn", "rowsUsed", "lateRows", "invalidRows", "results", "batchMilliseconds",
)  # fmt: skip
QUANTILES: Final = {"p50": 0.5, "p95": 0.95, "max": 1.0}


def claims_of(run: EmergencyRun) -> list[MeasuredClaim]:
    """What the run is judged by."""
    verdict = run.verdict
    sums = sum(
        each["rowsIn"] != run.reports or each["rowsIn"] != each["rowsUsed"] + each["lateRows"] + each["invalidRows"]
        for each in run.channels.values()
    )
    unaccepted = sum(each["results"] - each["acceptedResults"] for each in run.channels.values())
    found = [
        ("results that were due and did not come", verdict.missing),
        ("results that came and were not due, or had another content", verdict.wrong),
        ("results for parameters without a subscription", verdict.unasked),
        ("results that were published and did not come", verdict.lost),
        ("results that came twice", verdict.duplicated),
        ("results that came behind later ones of their channel", verdict.reordered),
        ("gaps", verdict.gaps),
        ("channels that did not account for every report", sums),
        ("results of batches that no head has accepted", unaccepted),
    ]
    return [MeasuredClaim(text, value, "0", value == 0) for text, value in found]


def plain(run: EmergencyRun) -> dict[str, Any]:
    """The report as JSON takes it."""
    claims, verdict = claims_of(run), run.verdict
    means = mean_loads(run)
    passed = verdict.passed and not run.problems and all(each.held for each in claims)
    return {
        "verdict": "passed" if passed else "failed",
        **{name: getattr(verdict, name) for name in COUNTS},
        "claims": [each.plain() for each in claims],
        "arm": run.arm, "placement": run.placement, "seed": run.plan.scenario.seed,
        "people": run.plan.scenario.people, "reports": run.reports, "shelters": run.plan.scenario.shelters,
        "frontEnd": run.front_end, "backEnd": run.back_end, "results": run.results,
        "delaySeconds": {name: quantile(run.delays, share) for name, share in QUANTILES.items()},
        "meanLoads": {edge: round(load) for edge, load in means.items()}, "cov": round(cov(means), 3),
        "migrations": run.migrations, "sessions": len(run.sessions),
        "channels": {name: dict(status) for name, status in run.channels.items()},
        "loads": [{"seconds": round(at, 2), **loads} for at, loads in run.loads],
        "problems": run.problems, "examples": list(verdict.examples), "wallSeconds": round(run.wall_seconds, 1),
    }  # fmt: skip


def mean_loads(run: EmergencyRun) -> dict[str, float]:
    """F of each edge in bytes/s, over the second half of the traffic: results come in bursts, once in a period."""
    seconds = run.plan.scenario.seconds
    late = [loads for at, loads in run.loads if seconds / 2 <= at <= seconds]
    return {
        edge: statistics.fmean(loads.get(edge, 0.0) for loads in late) for edge in sorted({e for x in late for e in x})
    }


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """The value below which this share of them lies; None without any."""
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3) if ordered else None


def write_report(run: EmergencyRun, folder: Path) -> dict[str, Any]:
    """Write both files; returns the report."""
    report = plain(run)
    folder.mkdir(parents=True, exist_ok=True)
    write_report_files(folder, "channels", report, render_page(report, run.plan))
    return report


def render_page(report: Mapping[str, Any], plan: CityPlan) -> str:
    """The page of a report."""
    passed = report["verdict"] == "passed"
    said = "Passed: every result that was due came, once, in order, and none that was not." if passed else "Failed."
    delay, means = report["delaySeconds"], report["meanLoads"]
    balance = [
        f"{report['frontEnd']:,} front-end and {report['backEnd']:,} back-end subscriptions;"
        f" {report['results']:,} results.",
        f"Placement {report['placement']}, arm {report['arm']}: {report['migrations']} subscribers moved in"
        f" {report['sessions']} sessions. In the second half of the traffic the most loaded edge had"
        f" {max(means.values(), default=0):,} B/s, and the cov of the mean loads was {report['cov']:.2f}.",
        f"From a report to a result at a person: p50 {delay['p50']} s, p95 {delay['p95']} s.",
    ]
    body = [
        f"<h1>Seven channels for {report['people']} people</h1>",
        page_parts.verdict(passed, said, [(name, f"{report[name]:,}") for name in COUNTS]),
        *page_parts.bullets([*report["problems"], *report["examples"]]),
        *page_parts.bullets(balance),
        "<h2>Claims</h2>",
        page_parts.claims(report["claims"]),
        "<h2>Channels</h2>",
        page_parts.table(
            ("channel", *SHOWN),
            ([BY_NAME[name].title, *(str(status.get(each, "")) for each in SHOWN)]
             for name, status in sorted(report["channels"].items())),
        ),
        "<h2>Edges over time</h2>",
        page_parts.charts(page_parts.figure(chart, caption) for chart, caption in _charts(report)),
        "<h2>Map</h2>",
        city_map(plan),
    ]  # fmt: skip
    return page_parts.page(f"Plimsoll with channels: {report['verdict']}", body)


def _charts(report: Mapping[str, Any]) -> list[tuple[Chart, str]]:
    rows = report["loads"]
    names = sorted({name for row in rows for name in row if name != "seconds"})
    lines = [
        ChartLine(name, look, [(row["seconds"], row.get(name)) for row in rows]) for look, name in enumerate(names)
    ]
    covs = [(row["seconds"], cov({name: row[name] for name in names if name in row})) for row in rows]
    return [
        (Chart("Load F", "bytes/s", lines), "What each edge takes in and sends."),
        (Chart("cov", "", [ChartLine("cov", 0, covs)]), "Standard deviation over mean of the loads."),
    ]


def city_map(plan: CityPlan) -> str:
    """Areas, edges (squares), and where people ended (dots), as SVG."""
    size = MAP_PIXELS
    lines = [
        f'<path class="grid" d="M{at} 0V{size}M0 {at}H{size}" stroke="currentColor" stroke-opacity="0.2"/>'
        for at in (size * step // SIDE for step in range(SIDE + 1))
    ]
    dots = [
        f'<circle cx="{x * size:.0f}" cy="{size - y * size:.0f}" r="2.5" fill="currentColor" fill-opacity="0.5"/>'
        for x, y in (person.places[-1][1] for person in plan.people)
    ]
    edges = [
        f'<rect x="{x * size - 6:.0f}" y="{size - y * size - 6:.0f}" width="12" height="12" fill="currentColor"/>'
        f'<text x="{x * size + 10:.0f}" y="{size - y * size + 4:.0f}" fill="currentColor">'
        f"{html_text(f'edge-{number}')}</text>"
        for number, (x, y) in enumerate(EDGE_PLACES)
    ]
    title = "<title>Areas, edges, and where people were in the end</title>"
    return f'<svg viewBox="0 0 {size} {size}" width="{size}" role="img">{title}{"".join([*lines, *dots, *edges])}</svg>'
