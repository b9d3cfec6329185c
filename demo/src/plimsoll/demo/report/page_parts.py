"""What all pages of demos have in common: frame, verdict, figures and tables. No network is needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plimsoll.core.printable import html_text
from plimsoll.pages.charts import Chart, svg
from plimsoll.pages.style import STYLE


def page(title: str, body: Iterable[str]) -> str:
    """A whole file; `title` is text, `body` is HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def verdict(passed: bool, text: str, figures: Iterable[tuple[str, str]]) -> str:
    """What is to be seen first: the verdict and its figures, by name."""
    cells = "".join(f"<div><dt>{html_text(name)}</dt><dd>{html_text(value)}</dd></div>" for name, value in figures)
    return (
        f'<section class="verdict {"passed" if passed else "failed"}" id="verdict"><strong>{html_text(text)}</strong>'
        f'<dl class="figures">{cells}</dl></section>'
    )


def bullets(lines: Sequence[str]) -> list[str]:
    """A list of sentences; nothing without any."""
    return ["<ul>", *(f"<li>{html_text(one)}</li>" for one in lines), "</ul>"] if lines else []


def figure(chart: Chart, caption: str, beside: str = "") -> str:
    """A chart with its caption; `beside` is HTML beside its title."""
    return (
        f"<figure><h3>{html_text(chart.title)} <span class='dim'>({html_text(chart.unit)})</span>{beside}</h3>"
        f"{svg(chart)}"
        f"<figcaption>{html_text(caption)}</figcaption></figure>"
    )


def charts(figures: Iterable[str]) -> str:
    """Figures beside each other, as many as there is room for."""
    return "\n".join(['<div class="charts">', *figures, "</div>"])


def claims(found: Iterable[Mapping[str, Any]]) -> str:
    """The claims of a report: value, bound, and whether it held."""
    rows = (
        (one["claim"], "not measured" if one["value"] is None else f"{one['value']:.4g}", one["bound"],
         "held" if one["held"] else "not held")
        for one in found
    )  # fmt: skip
    return table(("claim", "value", "bound", ""), rows)


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of texts."""
    heads = "".join(f'<th scope="col">{html_text(title)}</th>' for title in titles)
    lines = "".join("<tr>" + "".join(f"<td>{html_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>'
