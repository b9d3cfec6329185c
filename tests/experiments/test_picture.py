"""The PNG of an experiment: every figure is in it, and the same result gives the same bytes."""

import struct
from dataclasses import replace

from plimsoll.experiments.picture import CHART_INCHES, DOTS_PER_INCH, png
from plimsoll.experiments.result import Claim, ExperimentResult, Figure
from plimsoll.pages.charts import Chart, ChartLine


def figure(name: str, *, logarithmic: bool = False) -> Figure:
    lines = [
        ChartLine("b1 $ of [a,=,1]", 1, [(0.0, 1.0), (1.0, None), (2.0, 3.0)]),
        ChartLine("b2", 2, [(0.0, 2.0), (2.0, 0.5)]),
    ]
    return Figure(name, Chart("load $x$", "part of 1", lines, 1.0, logarithmic=logarithmic), "what it shows")


def result(*figures: Figure) -> ExperimentResult:
    return ExperimentResult("one", "A title", "Padres", 7, [Claim("falls", "0.4", "0.5", held=True)], figures, {})


def size(data: bytes) -> tuple[int, int]:
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def test_figures_stand_in_two_columns():
    width, height = (round(DOTS_PER_INCH * inches) for inches in CHART_INCHES)
    assert size(png(result(figure("6a")))) == (2 * width, height)
    assert size(png(result(figure("6a"), figure("6b"), figure("6c", logarithmic=True)))) == (2 * width, 2 * height)


def test_the_same_result_gives_the_same_bytes_and_another_one_others():
    one = result(figure("6a"))
    assert png(one) == png(one)
    assert png(replace(one, seed=8)) != png(one)


def test_a_result_without_figures_is_a_title():
    assert size(png(result()))[1] > 0
