"""Charts are well-formed, inside their frame, and readable: round steps, names apart, no resource from outside."""

import itertools
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.pages.charts import (
    BOTTOM,
    HEIGHT,
    LABEL_GAP,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Chart,
    ChartLine,
    chart_line,
    format_number,
    nice_step,
    svg,
)

values = st.floats(0, 1e7) | st.none()


def parse(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # noqa: S314  # it was made here


@pytest.mark.parametrize(
    ("span", "step"), [(100, 20), (1, 0.2), (0.03, 0.01), (7, 2), (40, 10), (60, 20), (0, 1), (5500, 2000)]
)  # fmt: skip
def test_steps_are_round(span, step):
    assert nice_step(span) == pytest.approx(step)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.25, "0.25"), (5, "5"), (1500, "1,500"), (20_000, "20k"), (3.14159, "3.14")]
)  # fmt: skip
def test_numbers_are_short(value, text):
    assert format_number(value) == text


@given(
    columns=st.lists(st.lists(values, max_size=8), max_size=6),
    logarithmic=st.booleans(),
    least_top=st.sampled_from([0.0, 100.0]),
)
def test_any_values_are_drawn_inside_the_frame(columns, logarithmic, least_top):
    lines = [ChartLine(f"b{i}", i, list(enumerate(column))) for i, column in enumerate(columns)]
    root = parse(svg(Chart("Load <of> a&b", "%", lines, least_top, logarithmic)))
    for path in root.iter("path"):
        for x, y in re.findall(r"[ML](\S+) (\S+)", path.attrib["d"]):
            assert LEFT - 0.1 <= float(x) <= WIDTH - RIGHT + 0.1
            assert TOP - 0.1 <= float(y) <= HEIGHT - BOTTOM + 0.1


def test_names_stand_apart_and_inside_though_all_lines_end_at_one_place():
    lines = [ChartLine(f"b{i}", i, [(0.0, 0.0), (1.0, 0.0)]) for i in range(6)]
    root = parse(svg(Chart("Load", "%", lines)))
    places = [float(text.attrib["y"]) for text in root.iter("text") if "name" in text.attrib["class"]]
    assert len(places) == 6
    assert min(b - a for a, b in itertools.pairwise(places)) >= LABEL_GAP - 0.1
    assert max(places) <= HEIGHT - BOTTOM + 5


def test_a_missing_value_breaks_the_line():
    root = parse(svg(Chart("Load", "%", [ChartLine("b1", 0, [(0, 1.0), (1, None), (2, 1.0), (3, 2.0)])])))
    (path,) = root.iter("path")
    assert "".join(re.findall("[ML]", path.attrib["d"])) == "MML"


def test_columns_become_a_line_in_the_unit_of_the_chart():
    made = chart_line("b1", 3, {"seconds": [1, 2], "delay": [0.001, None]}, "delay", 1000)
    assert made == ChartLine("b1", 3, [(1.0, 1.0), (2.0, None)])
    assert chart_line("b1", 0, {}, "delay").points == []


def test_it_says_what_it_shows():
    root = parse(svg(Chart("Input", "%", [ChartLine("b1", 0, [(0, 1.0)])])))
    assert root.attrib["aria-label"] == "Input in % over the seconds of the run, for b1"
