"""Topics in load reports: deadlines, eq. 2, and rows that come from elsewhere."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.policies.model.topic_load import TOPICS_AT_MOST, TopicLoad, reported_topics, topic_report
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

# Tao, Poslad, Bigham 2013, Tables V and VI: topic 8 at b1 after the burst, with a fair queue for each subscriber.
EIGHT = TopicLoad(8, "8", 7, 7, arrival_rate=200.0, delivery_rate=175.0, required_seconds=1.1, transmission_seconds=0.3)

measures = st.floats(0.0, 1e9, allow_nan=False)
counts = st.integers(0, 10**6)
loads = st.builds(
    TopicLoad,
    topic=st.integers(0, 2**32 - 1),
    text=st.text(max_size=64),
    subscribers=counts,
    waiting=counts,
    input_rate=measures,
    depth=counts,
    arrival_rate=measures,
    delivery_rate=measures,
    required_seconds=measures,
    transmission_seconds=measures,
    broker_seconds=measures,
    late=counts,
)


def test_equation_2_of_the_paper():
    assert EIGHT.allowed_seconds == pytest.approx(0.8)
    assert EIGHT.depth_threshold(0.1) == pytest.approx(97.5)


def test_a_threshold_below_zero_is_crossed_by_an_empty_queue():
    slow = TopicLoad(1, required_seconds=0.2, transmission_seconds=0.3, delivery_rate=100.0, arrival_rate=100.0)
    assert slow.depth_threshold(0.1) < 0


def test_predicted_rates_take_the_place_of_measured_ones():
    assert EIGHT.depth_threshold(0.1, arrival_rate=225.0) == pytest.approx(72.5)
    assert EIGHT.depth_threshold(0.1, delivery_rate=200.0) == pytest.approx(140.0)


def test_without_a_deadline_no_depth_is_too_much():
    free = TopicLoad(1, depth=10**6, arrival_rate=5.0)
    assert free.allowed_seconds == free.depth_threshold(1.0) == math.inf


@given(st.lists(loads, max_size=20, unique_by=lambda load: load.topic))
def test_a_report_says_what_was_measured(some: list[TopicLoad]):
    assert reported_topics(topic_report(some)) == tuple(sorted(some, key=lambda load: load.topic))


def test_a_report_is_bounded_and_keeps_the_most_urgent():
    free = [TopicLoad(number) for number in range(TOPICS_AT_MOST)]
    urgent = TopicLoad(10**6, required_seconds=1.0, depth=5, delivery_rate=10.0)
    found = reported_topics(topic_report([*free, urgent]))
    assert len(found) == TOPICS_AT_MOST
    assert urgent in found


@pytest.mark.parametrize(
    "row",
    [
        None, "topic", [], [1, "x"], ["1", "x", *[0] * 14], [True, "x", *[0] * 14], [2**32, "x", *[0] * 14],
        [-1, "x", *[0] * 14], [1, 2, *[0] * 14], [1, "x", *[0] * 13, math.nan], [1, "x", *[0] * 13, -1.0],
        [1, "x", *[0] * 13, True], [1, "x", *[0] * 13, "0"],
    ],
)  # fmt: skip
def test_rows_that_cannot_be_read_are_left_out(row: object):
    good = json.dumps([7, "seven", *[0] * 14])
    assert reported_topics({"topics": [json.dumps(row), row, good]}) == (TopicLoad(7, "seven"),)


@pytest.mark.parametrize("row", ["", "[", "[" * 2000, "[" * 3000, "7"])
def test_rows_that_are_no_json_are_left_out(row: str):
    assert reported_topics({"topics": [row]}) == ()


def test_rows_travel_in_a_load_update():
    told = topic_report([EIGHT, TopicLoad(9, "\U0001f600" * 64)])
    rows: list[str | dict[str, str | int | float | bool]] = [*told["topics"]]
    said = msg.LoadUpdate({"broker": "b1", "topics": rows})
    heard = msg.decode(msg.control, wire.encode(said))
    assert isinstance(heard, msg.LoadUpdate)
    assert reported_topics(heard.report) == (EIGHT, TopicLoad(9, "\U0001f600" * 64))


@pytest.mark.parametrize("report", [{}, {"topics": None}, {"topics": "x"}, {"topics": {"1": 2}}])
def test_a_report_without_topics(report: dict[str, object]):
    assert reported_topics(report) == ()


def test_columns_of_a_later_version_are_ignored():
    assert reported_topics({"topics": [json.dumps([7, "seven", *[0] * 14, "more"])]}) == (TopicLoad(7, "seven"),)


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "1e400", "1e16", "1" + "0" * 400, "1" * 5000, "-1", "true", "null"]
)
def test_a_number_that_nobody_can_reckon_with_makes_no_row(number: str):
    [row] = topic_report([EIGHT])["topics"]
    assert reported_topics({"topics": [row, row.replace("175.0", number), "[" * 1500]}) == (EIGHT,)
    assert reported_topics({"topics": [row.replace("175.0", number)]}) == ()
