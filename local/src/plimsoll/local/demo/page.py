"""The report as one HTML file that needs nothing else: no network, no font, no library; light and dark.

It shows what `report.json` holds, and says how to read it. The verdict stands first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from plimsoll.local.demo.charts import Chart, Line, line, svg

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --dim: #5b6675; --paper: #fbfbf9; --card: #ffffff; --rule: #d9dde3;
  --good: #11633b; --bad: #a3161b; --c0: #52606d; --c1: #0b5fa5; --c2: #b3540a; --c3: #1b7a4b; --c4: #8a2f8f; --c5: #7a6a00;
  --c6: #00727d; --c7: #b0235f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7eaee; --dim: #a0abb8; --paper: #14181d; --card: #1b2128;
  --rule: #343d48; --good: #6fd39d; --bad: #ff8d8a; --c0: #b4bfca; --c1: #6bb6f5; --c2: #f0a35e; --c3: #68d09a; --c4: #d892dd;
  --c5: #d6c65a; --c6: #5cc7d1; --c7: #f58ab6; } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 1360px; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem; margin: 0 0 .25rem } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem } h3 { font-size: 1rem; margin: 0 }
p { max-width: 75ch } .dim, figcaption { color: var(--dim) } figcaption { font-size: .875rem }
.verdict { border-left: .5rem solid; background: var(--card); padding: .75rem 1rem; margin: 1rem 0 }
.passed { border-color: var(--good) } .failed { border-color: var(--bad) }
.verdict strong { font-size: 1.25rem } .passed strong { color: var(--good) } .failed strong { color: var(--bad) }
.figures { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: .75rem 0 0; padding: 0 }
.figures div { display: flex; flex-direction: column } dt { color: var(--dim); font-size: .875rem } dd { margin: 0; font-size: 1.35rem;
  font-variant-numeric: tabular-nums }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 1rem }
figure { margin: 0; background: var(--card); border: 1px solid var(--rule); border-radius: 6px; padding: .75rem 1rem }
svg { width: 100%; height: auto; display: block } .grid { stroke: var(--rule); stroke-width: 1 }
.tick { fill: var(--dim); font-size: 11px } .name { font-size: 12px; font-weight: 600 }
path { fill: none; stroke-width: 1.8; stroke-linejoin: round }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-variant-numeric: tabular-nums; background: var(--card) }
th, td { border: 1px solid var(--rule); padding: .3rem .6rem; text-align: right } th:first-child, td:first-child { text-align: left }
code { font-size: .9em } li { max-width: 75ch }
"""
_DASHES = ("", "", "6 3", "2 3", "8 3 2 3", "1 2", "10 4", "4 2 1 2")


def page(report: Mapping[str, Any]) -> str:
    """The HTML of a report as `report.build` makes it."""
    passed = report["verdict"] == "passed"
    body = [
        "<h1>Plimsoll demo: real quotes through five brokers</h1>",
        f'<p class="dim">{escape(_what_ran(report))}</p>',
        _verdict(report, passed),
        *_problems(report),
        "<h2>Loads over time</h2>",
        '<div class="charts">',
        *(_figure(chart, caption) for chart, caption in _charts(report)),
        "</div>",
        "<h2>Brokers</h2>",
        _brokers(report),
        "<h2>How to read this</h2>",
        _explanation(report),
        "<h2>The run</h2>",
        _facts(report),
    ]
    colours = "".join(
        f"path.s{i} {{ stroke: var(--c{i}); stroke-dasharray: {dash or 'none'} }} text.s{i} {{ fill: var(--c{i}) }}\n"
        for i, dash in enumerate(_DASHES)
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Plimsoll demo: {report['verdict']}</title>\n<style>{_STYLE}{colours}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _what_ran(report: Mapping[str, Any]) -> str:
    scenario, durations = report["scenario"], report["durations"]
    return (
        f"{scenario['publishers']} publishers, {scenario['subscribers']:,} subscribers, {len(report['brokers'])} brokers, "
        f"{durations['traffic_seconds']:.0f} s of traffic, seed {report['seed']}. {report['started_at']}"
    )


def _verdict(report: Mapping[str, Any], passed: bool) -> str:
    said = "Passed: nothing lost, repeated or reordered." if passed else "Failed."
    delay = report["delivery_delay_seconds"]
    figures = [
        (name, f"{report[name]:,}")
        for name in ("published", "expected", "delivered", "lost", "duplicated", "reordered", "gaps")
    ]
    figures += [(f"delay {name}", _milliseconds(delay[name])) for name in ("p50", "p99", "max")]
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in figures)
    state = "passed" if passed else "failed"
    return f'<section class="verdict {state}" id="verdict"><strong>{said}</strong><dl class="figures">{cells}</dl></section>'


def _problems(report: Mapping[str, Any]) -> list[str]:
    lines = [*report["problems"], *report["violations"][:20]]
    return ["<ul>", *(f"<li>{escape(one)}</li>" for one in lines), "</ul>"] if lines else []


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:,.1f} ms"


def _figure(chart: Chart, caption: str) -> str:
    return (
        f"<figure><h3>{escape(chart.title)} <span class='dim'>({escape(chart.unit)})</span></h3>{svg(chart)}"
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _charts(report: Mapping[str, Any]) -> list[tuple[Chart, str]]:
    brokers: Mapping[str, Any] = report["brokers"]
    edges = {name: broker for name, broker in brokers.items() if broker["role"] == "edge"}

    def lines(metric: str, scale: float, of: Mapping[str, Any]) -> list[Line]:
        return [line(name, broker["series"], metric, scale) for name, broker in brokers.items() if name in of]

    delay = report["delivery_delay_seconds"]["series"]
    return [
        (Chart("Input utilisation", "%", lines("input_utilization", 100, brokers), 100),
         "Publications per second times the time that one takes. Above 100 % a queue grows."),
        (Chart("Output utilisation", "%", lines("output_utilization", 100, brokers), 100),
         "Bytes per second as a share of the broker's bandwidth."),
        (Chart("Matching delay", "ms", lines("match_delay_seconds", 1000, brokers)),
         "Time of one publication from frame in to buffers out, on the hardware that is emulated."),
        (Chart("Subscribers", "subscribers", lines("subscribers", 1, edges)),
         "Who is served where. The head places each newcomer on the edge that is loaded least."),
        (Chart("Deliveries", "per second", lines("output_rate", 1, edges)), "What each edge hands to its subscribers."),
        (Chart("Delivery delay", "ms", [line(name, delay, name, 1000) for name in ("p50", "p99", "max")], 0, True),
         "From the publisher's call to the subscriber's hand-over, per second of the run; the axis is logarithmic."),
        (Chart("Delivery delay, median per edge", "ms",
               [line(name, edge["delivery_delay_seconds"]["series"], "p50", 1000) for name, edge in edges.items()]),
         "A slower edge takes longer for each publication, and more so the more subscriptions it holds."),
        (Chart("Wait before matching", "ms", lines("input_queue_delay_seconds", 1000, brokers)),
         "How long a publication waits in a broker until its turn."),
    ]  # fmt: skip


def _brokers(report: Mapping[str, Any]) -> str:
    titles = (
        "broker",
        "role",
        "subscribers",
        "mean input",
        "highest input",
        "mean output",
        "highest output",
        "delay p50",
        "delay p99",
    )
    rows = "".join(_row(name, broker) for name, broker in report["brokers"].items())
    heads = "".join(f'<th scope="col">{title}</th>' for title in titles)
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'


def _row(name: str, broker: Mapping[str, Any]) -> str:
    series, delay = broker["series"], broker["delivery_delay_seconds"]
    cells = [name, broker["role"], f"{max(series['subscribers'], default=0):,}"]
    for metric in ("input_utilization", "output_utilization"):
        values: Sequence[float] = series[metric]
        cells += [f"{sum(values) / len(values):.0%}" if values else "-", f"{max(values):.0%}" if values else "-"]
    cells += [_milliseconds(delay["p50"]), _milliseconds(delay["p99"])]
    return "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>"


def _explanation(report: Mapping[str, Any]) -> str:
    told = [
        "<strong>expected</strong>: pairs of publication and subscriber that had to be delivered, because the publication was "
        "accepted and the subscription acknowledged before it was published. The audit finds them by comparing each publication "
        "with each subscription, without the code that the brokers use.",
        "<strong>delivered</strong> can be higher than expected: a publication that was on its way while its subscription was "
        f"being acknowledged may be delivered, or not. There were {report['uncertain']:,} such pairs that were not.",
        "<strong>lost, duplicated, reordered</strong>: expected and not delivered by the end; delivered twice; delivered "
        "before an earlier one of the same head. Each must be 0, or the run fails.",
        "<strong>gaps</strong>: a subscriber was told that publications are missing for it, because a bounded queue or log was "
        f"full. {report['excused']:,} expected deliveries fell into gaps; those are counted as excused, not as lost.",
        "<strong>delay</strong>: from the publisher's call to the subscriber's hand-over, both on this machine's clock. It "
        "includes the time of the emulated hardware: edge b1 stands for a processor of 100 MHz.",
    ]
    return "<ul>" + "".join(f"<li>{one}</li>" for one in told) + "</ul>"


def _facts(report: Mapping[str, Any]) -> str:
    groups = ("machine", "versions", "durations", "scenario")
    facts = [(f"{group}: {key}", value) for group in groups for key, value in report[group].items()]
    rows = "".join(
        f"<tr><td>{escape(key.replace('_', ' '))}</td><td>{escape(str(value))}</td></tr>" for key, value in facts
    )
    return f'<div class="scroll"><table><tbody>{rows}</tbody></table></div>'
