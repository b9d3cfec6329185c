"""Bundle loads in load reports."""

from __future__ import annotations

import pytest

from plimsoll.core.policies.model.bundle_load import BundleLoad, report_fields, reported_bundles
from plimsoll.core.policies.model.hash_ranges import HashRange

LOW, HIGH = HashRange(0, 0x80000000), HashRange(0x80000000, 0xFFFFFFFF)


def test_what_an_edge_reports_is_read_again():
    some = (BundleLoad(LOW, 3, 7, 0x1200, 10.0, 30.5, 1e3, 3e3), BundleLoad(HIGH))
    assert reported_bundles(report_fields(some)) == some
    assert (some[0].message_rate, some[0].throughput) == (40.5, 4e3)


def test_a_report_without_bundles_has_none():
    assert reported_bundles({}) == ()


@pytest.mark.parametrize("wrong", [float("nan"), -1, True, "3", None, [1]])
def test_a_measure_that_cannot_be_read_is_left_out(wrong: object):
    report = report_fields([BundleLoad(LOW, 3, 7, input_rate=2.0)])
    report["bundle_sessions"] = {LOW.name: wrong, "another writing": 4}  # type: ignore[dict-item]  # what a broker may send
    assert reported_bundles(report) == (BundleLoad(LOW, 3, 0, input_rate=2.0),)
    report["bundle_topics"] = 7  # type: ignore[assignment]  # what a broker may send
    assert reported_bundles(report) == (BundleLoad(LOW, input_rate=2.0),)
