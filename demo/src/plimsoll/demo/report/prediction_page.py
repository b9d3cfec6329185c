"""The prediction of the queueing model on the page, beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from plimsoll.core.printable import html_text

_TITLES: Final = ("", "predicted", "measured", "difference")
_METRICS: Final = (("input_utilization", "input"), ("output_utilization", "output"))


def section(report: Mapping[str, Any]) -> list[str]:
    """The section; nothing for a run without a prediction."""
    found = report.get("prediction")
    if found is None:
        return []
    title = "<h2>Predicted by the model</h2>"
    if "fault" in found:
        return [title, f"<p>There is no prediction: {html_text(found['fault'])}</p>"]
    told = (
        f"At {found['begin_seconds']:.0f} s <code>plimsoll world</code> made a World of this fleet and its load; it is "
        "beside this page, in <code>world.yaml</code>. Its simulation predicts the time until "
        f"{found['end_seconds']:.0f} s, in which rates stay as they are; the fleet's policy goes on in both. Delays "
        "of the model are those of the emulated hardware and of links: what this machine's processes take comes on top."
    )
    heads = "".join(f'<th scope="col">{each}</th>' for each in _TITLES)
    rows = "".join("<tr>" + "".join(f"<td>{html_text(cell)}</td>" for cell in row) + "</tr>" for row in _rows(found))
    table = (
        f'<div class="scroll"><table id="prediction"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )
    return [title, f"<p>{told}</p>", table]


def _rows(found: Mapping[str, Any]) -> list[list[str]]:
    rows = []
    for edge, metrics in found["edges"].items():
        for metric, words in _METRICS:
            rows.append(_row(f"{edge}, {words} utilisation", metrics[metric], 100, "%", 1))
    for edge, metrics in found["edges"].items():
        rows.append(_row(f"{edge}, deliveries per second", metrics["output_rate"], 1, "", 0))
    for name, pair in found["delay_seconds"].items():
        rows.append(_row(f"delivery delay, {name}", pair, 1000, "ms", 1))
    return rows


def _row(what: str, pair: Mapping[str, float | None], scale: float, unit: str, digits: int) -> list[str]:
    predicted, measured = pair["predicted"], pair["measured"]
    apart = None if predicted is None or measured is None else predicted - measured

    def text(value: float | None, sign: str = "") -> str:
        return "-" if value is None else f"{value * scale:{sign},.{digits}f} {unit}".rstrip()

    return [what, text(predicted), text(measured), text(apart, "+")]
