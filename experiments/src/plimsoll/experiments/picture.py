"""The figures of an experiment as one PNG, for papers and slides; lines differ by dash, too, for print in black."""

from __future__ import annotations

import io
import math
from typing import Final

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Drawing

from plimsoll.experiments.result import ExperimentResult, Figure

COLUMNS: Final = 2
CHART_INCHES: Final = (6.4, 3.4)
DOTS_PER_INCH: Final = 110
LOOKS: Final = (
    ("#52606d", "-"), ("#0b5fa5", "-"), ("#b3540a", "--"), ("#1b7a4b", ":"),
    ("#8a2f8f", "-."), ("#0b5fa5", "-."), ("#b3540a", ":"), ("#52606d", "--"),
)  # fmt: skip
"""Colour and dash of each look of a line, as on the page."""


def png(result: ExperimentResult) -> bytes:
    """All figures in a grid, under the title; the same result gives the same bytes."""
    rows = max(1, math.ceil(len(result.figures) / COLUMNS))
    width, height = CHART_INCHES
    drawing = Drawing(figsize=(COLUMNS * width, rows * height), dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(drawing)
    claims = f"{result.held} of {len(result.claims)} claims held"
    title = f"{result.title}\npolicy {result.policy}, seed {result.seed}; {claims}"
    drawing.suptitle(title, fontsize=11, parse_math=False)
    for place, figure in enumerate(result.figures, 1):
        _draw(drawing.add_subplot(rows, COLUMNS, place), figure)
    written = io.BytesIO()
    drawing.savefig(written, format="png", metadata={"Software": None})
    return written.getvalue()


def _draw(axes: Axes, figure: Figure) -> None:
    chart = figure.chart
    for line in chart.lines:
        colour, dash = LOOKS[line.look % len(LOOKS)]
        xs = [x for x, _ in line.points]
        ys = [math.nan if y is None else y for _, y in line.points]
        axes.plot(xs, ys, color=colour, linestyle=dash, linewidth=1.2, label=line.name)
    axes.set_title(f"{figure.name}: {chart.title}", fontsize=9, parse_math=False)
    along, unit = chart.along
    axes.set_xlabel(f"{along} ({unit})" if unit else along, fontsize=8, parse_math=False)
    axes.set_ylabel(chart.unit, fontsize=8, parse_math=False)
    axes.tick_params(labelsize=7)
    axes.grid(visible=True, linewidth=0.4, alpha=0.5)
    if chart.logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0.0, top=max(axes.get_ylim()[1], chart.least_top))
    if chart.lines:
        for text in axes.legend(fontsize=7, framealpha=0.6).get_texts():
            text.set_parse_math(False)
