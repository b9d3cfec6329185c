"""The load of publishers travels in a load report, bounded, and what cannot be read counts as nothing."""

from __future__ import annotations

import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.policies.model.publisher_load import (
    ROWS_AT_MOST,
    PublisherTopicLoad,
    publisher_report,
    reported_publishers,
)
from plimsoll.core.protocol import messages as msg

RATES = st.floats(min_value=0, max_value=1e9)
LOADS = st.builds(
    PublisherTopicLoad, st.text(min_size=1, max_size=20), st.none() | st.integers(0, 2**32 - 1), *[RATES] * 6
)


@given(st.lists(LOADS, max_size=20, unique_by=lambda load: load.row))
def test_a_report_says_what_was_put_in(loads: list[PublisherTopicLoad]):
    report = publisher_report(loads)
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(msg.LoadUpdate(report)), type=msg.LoadUpdate).report
    assert sorted(reported_publishers(sent), key=lambda load: load.row) == sorted(loads, key=lambda load: load.row)


def test_the_name_of_a_publisher_is_never_taken_for_a_topic():
    odd = [PublisherTopicLoad("p#0000000a", None, 1.0), PublisherTopicLoad("p", 10, 2.0), PublisherTopicLoad("p#-", 3)]
    assert set(reported_publishers(publisher_report(odd))) == set(odd)


def test_the_largest_rows_are_reported():
    loads = [PublisherTopicLoad(f"p{i}", i, 1.0, float(i), 0.0, 0.0, 0.0, 0.0) for i in range(ROWS_AT_MOST + 50)]
    found = reported_publishers(publisher_report(loads))
    assert {load.publisher for load in found} == {f"p{i}" for i in range(50, ROWS_AT_MOST + 50)}


def test_what_cannot_be_read_counts_as_nothing():
    report = publisher_report([PublisherTopicLoad("p", 1, 2.0, 3.0)])
    report["publisher_topic_input_rate"] |= {"q": 1.0, "r#xyz": 1.0, "s#1ffffffff": 1.0, "#00000001": 1.0}
    report["publisher_topic_input_bytes"]["p#00000001"] = math.nan
    assert reported_publishers(report) == (PublisherTopicLoad("p", 1, 2.0),)
    assert reported_publishers({"publisher_topic_input_rate": "many"}) == ()
