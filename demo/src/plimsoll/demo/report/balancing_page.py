"""Balancing on the page: when it converged, its overhead, and the predictions and measurements of each session.

Charts of loads, delays and subscribers are those of every run; with these they are figures 6a to 6f of PADRES 2006, and
the differences of pairs of edges, which 6h shows for several thresholds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from plimsoll.core.printable import html_text
from plimsoll.pages.charts import Chart, ChartLine, chart_line

FIGURES: Final = {
    "Input utilisation": "6a", "Output utilisation": "6b", "Matching delay": "6c", "Delivery delay": "6d",
    "Subscribers": "6e", "Message overhead": "6f", "Largest difference of two edges": "6h",
}  # fmt: skip
"""The figure of PADRES 2006 that a chart corresponds to."""

Figures = list[tuple[Chart, str]]
_METRICS: Final = (("input_utilization", "input", 100, "%"), ("output_utilization", "output", 100, "%"),
                   ("match_delay_seconds", "matching", 1000, "ms"))  # fmt: skip


def charts(report: Mapping[str, Any]) -> Figures:
    """The two charts of balancing alone."""
    overhead, apart = report["overhead_series"], report["differences"]
    ratio = chart_line("all", 7, overhead, "ratio", 100)
    parts = [
        ChartLine(name.replace("_", " "), look, _shares(overhead, name)) for look, name in enumerate(
            ("load_reports", "sessions", "redirects", "resubscriptions"), 1
        )
    ]  # fmt: skip
    widest = [
        chart_line(name, look, apart, metric)
        for look, (name, metric) in enumerate((("input", "input"), ("output", "output"), ("matching", "match")), 1)
    ]
    return [
        (Chart("Message overhead", "%", [ratio, *parts], 1.0),
         "Load reports, sessions, redirects and repeated subscriptions, as shares of all messages; five seconds each."),
        (Chart("Largest difference of two edges", "ratio", widest, 0.2),
         "0.1 triggers balancing; matching delays differ by N_f. Output may differ more where the stability rule says "
         "so."),
    ]  # fmt: skip


def _shares(overhead: Mapping[str, Sequence[float | None]], name: str) -> list[tuple[float, float | None]]:
    """One category, as a share of all messages in per cent: the overhead ratio, split by category."""
    found: list[tuple[float, float | None]] = []
    kinds = ("load_reports", "sessions", "redirects", "resubscriptions")
    for i, seconds in enumerate(overhead["seconds"]):
        whole, ratio = sum(overhead[kind][i] or 0.0 for kind in kinds), overhead["ratio"][i]
        share = None if ratio is None else ratio * 100 * (overhead[name][i] or 0.0) / whole if whole else 0.0
        found.append((float(seconds or 0.0), share))
    return found


def claims(report: Mapping[str, Any]) -> str:
    """Whether the run met the claims of PADRES; other policies claim nothing."""
    found, load = report["claims"], report["machine_load"]
    if report["policy"] != "padres":
        return ""
    text = {
        "held": "All claims on balancing held.",
        "not held": "Claims on balancing that did not hold in this run:",
        "not judged": "Claims on balancing are not judged: the machine was too busy with other work"
        f" ({load['other_processors']} of {load['processors']} processors). Not shown in this run:",
    }[found["state"]]
    items = "".join(f"<li>{html_text(each)}</li>" for each in found["unmet"])
    return f'<section id="claims"><p>{html_text(text)}</p>{f"<ul>{items}</ul>" if items else ""}</section>'


def summary(report: Mapping[str, Any]) -> str:
    """When it converged, and at what cost."""
    ratios, known = report["overhead_ratio"], report["estimation_accuracy"]
    told = [
        ("policy", report["policy"]),
        ("converged", _time_text(report["converged_at_seconds"])),
        ("converged again", _time_text(report["converged_again_at_seconds"])),
        ("detections balanced after", _percent(report["share_of_detections_balanced_after"])),
        ("overhead converging", _percent(ratios["converging"])),
        ("overhead after", _percent(ratios["steady"])),
        ("sessions", str(len(report["sessions"]))),
        ("subscribers moved", f"{sum(row['subscribers'] for row in report['sessions']):,}"),
        *((f"accuracy, {name}", _percent(known[metric])) for metric, name, _, _ in _METRICS),
    ]
    cells = "".join(f"<div><dt>{html_text(name)}</dt><dd>{html_text(value)}</dd></div>" for name, value in told)
    return f'<section class="verdict"><dl class="figures">{cells}</dl></section>'


def _time_text(seconds: float | None) -> str:
    return "not" if seconds is None else f"at {seconds:.0f} s"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.2%}" if share < 0.1 else f"{share:.1%}"


def sessions(report: Mapping[str, Any]) -> str:
    """Each session with its predictions and measurements, edge by edge."""
    titles = ("at", "took", "session", "metric", "moved", "state", "edge", "input", "output", "matching", "why it ends")
    heads = "".join(f'<th scope="col">{title}</th>' for title in titles)
    rows = "".join(_rows(row) for row in report["sessions"])
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'


def _rows(row: Mapping[str, Any]) -> str:
    took = "-" if row["duration_seconds"] is None else f"{row['duration_seconds']:.1f} s"
    names = f"{row['source']} to {row['target']}" if row["target"] else row["source"]
    first = [f"{row['at_seconds']:.1f} s", took, names, row["metric"], str(row["subscribers"]), row["state"]]
    why = row["stopped"] or row["message"]
    edges = list(row["predicted"]) or [""]
    found = []
    for i, edge in enumerate(edges):
        cells = [*(first if i == 0 else [""] * len(first)), edge]
        cells += [_before_predicted_measured(row, edge, metric, scale, unit) for metric, _, scale, unit in _METRICS]
        cells.append(why if i == 0 else "")
        found.append("<tr>" + "".join(f"<td>{html_text(cell)}</td>" for cell in cells) + "</tr>")
    return "".join(found)


def _before_predicted_measured(row: Mapping[str, Any], edge: str, metric: str, scale: float, unit: str) -> str:
    """Before, predicted and measured: `82 > 41 / 43 %`."""

    def of(which: str) -> str:
        value = row[which].get(edge, {}).get(metric)
        return "-" if value is None else f"{value * scale:.1f}" if scale > 100 else f"{value * scale:.0f}"

    return f"{of('before')} > {of('predicted')} / {of('measured')} {unit}" if edge else ""


EXPLANATION: Final = (
    "<strong>converged</strong>: for three detections running, input utilisation and matching delay of every pair of "
    "edges were within 0.1 (delays by N_f), and output, too, or the stability rule of Phase-II had ended a session of "
    "the two. Computed from the load reports, averaged over a detection interval.",
    "<strong>overhead</strong>: load reports, sessions, redirects and repeated subscriptions, as a share of all "
    "messages. What a session reads again from the log are publications; acknowledgements and credit are counted "
    "apart: <code>overhead_ratio</code> of the JSON has both.",
    "<strong>accuracy</strong>: 1 - |predicted - measured| / measured, averaged over both edges of all sessions. A "
    "prediction knows nothing of subscribers who come while it comes true.",
    "<strong>sessions</strong>: before > predicted / measured, for each of the two edges.",
)
