"""Offsets of streaming queries, as Spark keeps them."""

from __future__ import annotations

import json

from plimsoll.channels.batch import RowCounts
from plimsoll.channels.stream_offset import StreamOffset


def test_an_offset_comes_back_from_spark_as_it_was():
    offset = StreamOffset(
        {"reports": 7}, 12, RowCounts(4, 2, 1, 1), 1_700_000_000_500_000, 1_700_000_000_000_000, {"reports": "d1"}, True
    )
    assert StreamOffset.of_json(json.loads(json.dumps(offset.as_json()))) == offset


def test_one_without_a_change_is_the_same_text():
    start = StreamOffset({"reports": 7}).as_json()
    assert json.dumps(StreamOffset.of_json(start).as_json()) == json.dumps(start)


def test_places_in_a_dataset_that_was_made_anew_begin_in_front_of_its_first_row():
    offset = StreamOffset({"reports": 7, "alarms": 3, "old": 5}, datasets={"reports": "d1", "alarms": "d2", "old": ""})
    assert offset.places_in({"reports": "d3", "alarms": "d2", "old": "d4"}) == {"reports": 0, "alarms": 3, "old": 5}
