"""An experiment as one HTML page that needs nothing else."""

from __future__ import annotations

from plimsoll.core.printable import html_text
from plimsoll.experiments.result import Claim, ExperimentResult
from plimsoll.pages.charts import svg
from plimsoll.pages.style import STYLE


def page(result: ExperimentResult) -> str:
    """The whole page."""
    rows = "".join(_row(each) for each in result.claims)
    figures = "".join(
        f"<figure><h3>{html_text(each.name)}: {html_text(each.chart.title)} "
        f"<span class='dim'>({html_text(each.chart.unit)})</span></h3>{svg(each.chart)}"
        f"<figcaption>{html_text(each.caption)}</figcaption></figure>"
        for each in result.figures
    )
    notes = "".join(f"<p>{html_text(each)}</p>" for each in result.notes)
    what = (
        f"policy {result.policy}, seed {result.seed}, {result.processor_seconds:.0f} s of processor time; "
        f"{result.held} of {len(result.claims)} claims held"
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html_text(result.title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{html_text(result.title)}</h1>\n<p class='dim'>{html_text(what)}</p>\n"
        "<table><thead><tr><th>claim</th><th>paper</th><th>here</th><th></th></tr></thead>"
        f"<tbody>{rows}</tbody></table>\n{notes}\n<div class='charts'>{figures}</div>\n</body>\n</html>\n"
    )


def _row(claim: Claim) -> str:
    verdict = "held" if claim.held else "not held"
    return (
        f"<tr><td>{html_text(claim.claim)}</td><td>{html_text(claim.paper)}</td>"
        f"<td>{html_text(claim.ours)}</td><td>{verdict}</td></tr>"
    )


def lines(result: ExperimentResult) -> list[str]:
    """The result for a terminal."""
    found = [f"{result.name}: {result.title}"]
    for each in result.claims:
        found.append(f"  {'held    ' if each.held else 'NOT HELD'}  {each.claim}: paper {each.paper}; here {each.ours}")
    found.append(
        f"  {result.held} of {len(result.claims)} claims held; policy {result.policy}, seed {result.seed}, "
        f"{result.processor_seconds:.1f} s of processor time"
    )
    return found
