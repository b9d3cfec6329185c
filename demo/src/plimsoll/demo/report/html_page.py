"""The report as one self-contained HTML file: no network, no font, no library; light and dark.

It shows the contents of `report.json` and how to read them. The verdict comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.core.printable import html_text
from plimsoll.demo.report import balancing_page, page_parts, prediction_page
from plimsoll.pages.charts import Chart, ChartLine, chart_line

_COUNTS = ("published", "expected", "delivered", "lost", "duplicated", "reordered", "gaps")
_SHARES = ("p50", "p99", "max")
_SHOWN_VIOLATIONS = 20


def render_page(report: Mapping[str, Any]) -> str:
    """The HTML of a report that `report.build` has made."""
    body = [
        f"<h1>Plimsoll demo: real quotes through {len(report['brokers'])} brokers</h1>",
        f'<p class="dim">{html_text(_run_description(report))}</p>',
        _verdict(report),
        *_problems(report),
        *([balancing_page.claims(report), balancing_page.summary(report)] if _is_balanced(report) else []),
        "<h2>Loads over time</h2>",
        page_parts.charts(
            page_parts.figure(chart, caption, _paper_figure(report, chart)) for chart, caption in _charts(report)
        ),
        *_sessions(report),
        *prediction_page.section(report),
        "<h2>Brokers</h2>",
        _brokers(report),
        "<h2>How to read this</h2>",
        _explanation(report),
        "<h2>The run</h2>",
        _facts(report),
    ]
    return page_parts.page(f"Plimsoll demo: {report['verdict']}", body)


def _run_description(report: Mapping[str, Any]) -> str:
    scenario, seconds = report["scenario"], report["durations"]["traffic_seconds"]
    return (
        f"{scenario['publishers']} publishers, {scenario['subscribers']:,} subscribers, {len(report['brokers'])} "
        f"brokers, {seconds:.0f} s of traffic, seed {report['seed']}, {report['started_at']}"
    )


def _verdict(report: Mapping[str, Any]) -> str:
    passed = report["verdict"] == "passed"
    said = "Passed: nothing lost, repeated or reordered." if passed else "Failed."
    figures = [(name, f"{report[name]:,}") for name in _COUNTS]
    figures += [(f"delay {name}", _milliseconds(report["delivery_delay_seconds"][name])) for name in _SHARES]
    return page_parts.verdict(passed, said, figures)


def _problems(report: Mapping[str, Any]) -> list[str]:
    return page_parts.bullets([*report["problems"], *report["violations"][:_SHOWN_VIOLATIONS]])


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:,.1f} ms"


def _is_balanced(report: Mapping[str, Any]) -> bool:
    return "policy" in report


def _charts(report: Mapping[str, Any]) -> list[tuple[Chart, str]]:
    own = balancing_page.charts(report) if _is_balanced(report) else []
    return [*_load_charts(report), *_delay_charts(report), *own]


def _paper_figure(report: Mapping[str, Any], chart: Chart) -> str:
    figure = balancing_page.FIGURES.get(chart.title) if _is_balanced(report) else None
    return "" if figure is None else f" <span class='dim'>PADRES 2006, figure {figure}</span>"


def _sessions(report: Mapping[str, Any]) -> list[str]:
    return ["<h2>Sessions</h2>", balancing_page.sessions(report)] if _is_balanced(report) else []


def _line_styles(report: Mapping[str, Any]) -> dict[str, int]:
    """A broker looks the same in every chart."""
    return {name: look for look, name in enumerate(report["brokers"])}


def _edges(report: Mapping[str, Any]) -> dict[str, Any]:
    return {name: broker for name, broker in report["brokers"].items() if broker["role"] == "edge"}


def _load_charts(report: Mapping[str, Any]) -> list[tuple[Chart, str]]:
    looks, brokers, edges = _line_styles(report), report["brokers"], _edges(report)

    def lines(metric: str, scale: float, of: Mapping[str, Any]) -> list[ChartLine]:
        return [chart_line(name, looks[name], broker["series"], metric, scale) for name, broker in of.items()]

    return [
        (Chart("Input utilisation", "%", lines("input_utilization", 100, brokers), 100),
         "Publications per second times the time that one takes. Above 100 % a queue grows."),
        (Chart("Output utilisation", "%", lines("output_utilization", 100, brokers), 100),
         "Bytes per second as a share of the broker's bandwidth."),
        (Chart("Matching delay", "ms", lines("match_delay_seconds", 1000, brokers)),
         "Time of one publication from frame in to buffers out, on the hardware that is emulated."),
        (Chart("Wait before matching", "ms", lines("input_queue_delay_seconds", 1000, brokers)),
         "How long a publication waits in a broker until its turn."),
        (Chart("Subscribers", "subscribers", lines("subscribers", 1, edges)),
         "Subscribers served by each edge. " + ("All newcomers come to the weakest edge." if _is_balanced(report) else
         "The head places each newcomer on the edge that is loaded least.")),
        (Chart("Deliveries", "per second", lines("output_rate", 1, edges)), "What each edge hands to its subscribers."),
    ]  # fmt: skip


def _delay_charts(report: Mapping[str, Any]) -> list[tuple[Chart, str]]:
    looks, total = _line_styles(report), report["delivery_delay_seconds"]["series"]
    of_all = [chart_line(name, 5 + i, total, name, 1000) for i, name in enumerate(_SHARES)]
    of_edges = [
        chart_line(name, looks[name], edge["delivery_delay_seconds"]["series"], "p50", 1000)
        for name, edge in _edges(report).items()
    ]
    return [
        (Chart("Delivery delay", "ms", of_all, logarithmic=True),
         "From the publisher's call to the subscriber's hand-over, by second; the axis is logarithmic."),
        (Chart("Median delivery delay by edge", "ms", of_edges),
         "It grows with the subscriptions that an edge holds, since its emulated processor looks at each."),
    ]  # fmt: skip


def _brokers(report: Mapping[str, Any]) -> str:
    titles = (
        "broker", "role", "subscribers", "mean input", "highest input", "mean output", "highest output", "delay p50",
        "delay p99",
    )  # fmt: skip
    return page_parts.table(titles, (_row(name, broker) for name, broker in report["brokers"].items()))


def _row(name: str, broker: Mapping[str, Any]) -> list[str]:
    series, delay = broker["series"], broker["delivery_delay_seconds"]
    cells = [name, broker["role"], f"{max(series['subscribers'], default=0):,}"]
    for metric in ("input_utilization", "output_utilization"):
        values: Sequence[float] = series[metric]
        cells += [f"{sum(values) / len(values):.0%}" if values else "-", f"{max(values):.0%}" if values else "-"]
    return [*cells, _milliseconds(delay["p50"]), _milliseconds(delay["p99"])]


def _explanation(report: Mapping[str, Any]) -> str:
    told = [
        "<strong>expected</strong>: pairs of publication and subscriber that had to be delivered, because the "
        "publication was accepted, and the subscription acknowledged before it was published. The audit finds them by "
        "comparing publications with subscriptions by itself, without the code that the brokers use.",
        "<strong>delivered</strong> can be higher than expected: what was published while a subscription was being "
        f"acknowledged may come or not. {report['uncertain']:,} such pairs did not come.",
        "<strong>lost, duplicated, reordered</strong>: expected and not delivered by the end; delivered twice; "
        "delivered after a later one of the same head. Each must be 0, or the run has failed.",
        "<strong>gaps</strong>: how often a subscriber was told that publications are missing for it, because a "
        f"bounded queue or log was full. {report['excused']:,} expected deliveries fell into gaps; they count as "
        "excused, not as lost.",
        "<strong>delay</strong>: from the publisher's call to the subscriber's hand-over, both on this machine's "
        "clock. It includes the time of the emulated hardware: a slow processor of the experiment is not this one.",
    ]
    told += balancing_page.EXPLANATION if _is_balanced(report) else ()
    return "<ul>" + "".join(f"<li>{one}</li>" for one in told) + "</ul>"


def _facts(report: Mapping[str, Any]) -> str:
    groups = ("machine", "versions", "durations", "scenario", "client_counters")
    facts = [(f"{group}: {key}".replace("_", " "), value) for group in groups for key, value in report[group].items()]
    rows = "".join(f"<tr><td>{html_text(key)}</td><td>{html_text(str(value))}</td></tr>" for key, value in facts)
    return f'<div class="scroll"><table><tbody>{rows}</tbody></table></div>'
