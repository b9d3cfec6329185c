"""Line charts as SVG text: no library, no external resource, readable in light and dark, and without colour.

Colours are the classes `s0` to `s7` of the page; each line also has its own dash and its name at its end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from plimsoll.core.printable import html_text

WIDTH, HEIGHT = 640, 260
LEFT, RIGHT, TOP, BOTTOM = 56, 92, 14, 32
LABEL_GAP: Final = 13.0
TICKS: Final = 5
SMALLEST_VALUE: Final = 1e-12
DECADES: Final = 6
"""Powers of ten on a logarithmic axis, at most; smaller values lie at its foot."""


@dataclass(frozen=True)
class ChartLine:
    """One line: points of (x, value), x ascending and usually seconds; a value of None breaks it. `look`: 0 to 7."""

    name: str
    look: int
    points: Sequence[tuple[float, float | None]]


@dataclass(frozen=True)
class Chart:
    """`unit` labels the axis; `least_top` is the least upper end of the axis.

    `along`: the quantity on the other axis, and its unit.
    """

    title: str
    unit: str
    lines: Sequence[ChartLine]
    least_top: float = 0.0
    logarithmic: bool = False
    along: tuple[str, str] = ("the seconds of the run", "s")


def chart_line(
    name: str, look: int, columns: Mapping[str, Sequence[float | None]], metric: str, scale: float = 1.0
) -> ChartLine:
    """A line from columns that have `seconds`."""
    seconds, values = columns.get("seconds", ()), columns.get(metric, ())
    points = [(float(s or 0), None if v is None else v * scale) for s, v in zip(seconds, values, strict=False)]
    return ChartLine(name, look, points)


def nice_step(span: float, ticks: int = TICKS) -> float:
    """The smallest of 1, 2, 5 x 10^n that needs at most `ticks` steps for the span."""
    if span < SMALLEST_VALUE:
        return 1.0
    rough = span / ticks
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))


def format_number(value: float) -> str:
    """Short, without a needless decimal point."""
    if value >= 10_000:
        return f"{value / 1000:,.0f}k"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.3g}"


def svg(chart: Chart) -> str:
    """The chart as an SVG element."""
    return "".join(_parts(chart, _Scale.of(chart)))


@dataclass(frozen=True)
class _Scale:
    """Map seconds and values to positions in the picture."""

    seconds: float
    low: float
    top: float
    logarithmic: bool

    @classmethod
    def of(cls, chart: Chart) -> _Scale:
        points = [(s, v) for line in chart.lines for s, v in line.points if v is not None]
        seconds = max((s for s, _ in points), default=1.0)
        highest = max([chart.least_top, *(v for _, v in points)])
        if chart.logarithmic:
            above = [v for _, v in points if v >= SMALLEST_VALUE] or [1.0]
            top = 10.0 ** math.ceil(math.log10(max(above)))
            low = max(10.0 ** math.floor(math.log10(max(min(above), top / 10**DECADES))), top / 10**DECADES)
            return cls(seconds, low, max(top, low * 10), True)
        step = nice_step(highest)
        return cls(seconds, 0.0, max(step * math.ceil(highest / step - 1e-9), step), False)

    def x(self, seconds: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * seconds / max(self.seconds, 1e-9)

    def y(self, value: float) -> float:
        if self.logarithmic:
            share = math.log10(max(value, self.low) / self.low) / math.log10(self.top / self.low)
        else:
            share = value / self.top
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    def ticks(self) -> list[float]:
        if self.logarithmic:
            return [self.low * 10.0**i for i in range(round(math.log10(self.top / self.low)) + 1)]
        step = nice_step(self.top)
        return [step * i for i in range(round(self.top / step) + 1)]


def _parts(chart: Chart, scale: _Scale) -> list[str]:
    names = ", ".join(line.name for line in chart.lines)
    label = html_text(f"{chart.title} in {chart.unit} over {chart.along[0]}, for {names}")
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">']
    parts += _axes(scale, chart.along[1])
    parts += [_path(line, scale) for line in chart.lines]
    parts += _labels(chart.lines, scale)
    return [*parts, "</svg>"]


def _axes(scale: _Scale, unit: str) -> list[str]:
    parts = []
    for tick in scale.ticks():
        y = scale.y(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{format_number(tick)}</text>'
        )
    step = nice_step(scale.seconds, 8)
    suffix = f" {unit}" if unit else ""
    for i in range(int(scale.seconds / step + 1e-9) + 1):
        at = f'x="{scale.x(i * step):.1f}" y="{HEIGHT - BOTTOM + 16}"'
        parts.append(
            f'<text class="tick" {at} text-anchor="middle">{format_number(i * step)}{suffix if i else ""}</text>'
        )
    return parts


def _path(line: ChartLine, scale: _Scale) -> str:
    steps, pen = [], "M"
    for seconds, value in line.points:
        if value is None:
            pen = "M"
        else:
            steps.append(f"{pen}{scale.x(seconds):.1f} {scale.y(value):.1f}")
            pen = "L"
    name = f"<title>{html_text(line.name)}</title>"
    return f'<path class="s{line.look % 8}" d="{" ".join(steps)}">{name}</path>' if steps else ""


def _labels(lines: Sequence[ChartLine], scale: _Scale) -> list[str]:
    """Each name at the end of its line, moved apart where names would overlap."""
    ends = sorted(
        (scale.y(last), i)
        for i, line in enumerate(lines)
        if (last := next((v for _, v in reversed(line.points) if v is not None), None)) is not None
    )
    parts, lowest = [], TOP - LABEL_GAP
    room = HEIGHT - BOTTOM - LABEL_GAP * (len(ends) - 1)
    for place, (y, i) in enumerate(ends):
        lowest = max(lowest + LABEL_GAP, min(y, room + LABEL_GAP * place))
        at = f'x="{WIDTH - RIGHT + 6}" y="{lowest + 4:.1f}"'
        parts.append(f'<text class="name s{lines[i].look % 8}" {at}>{html_text(lines[i].name)}</text>')
    return parts
