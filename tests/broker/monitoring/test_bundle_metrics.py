"""Series of bundles: one of each that the last report has, and none otherwise."""

from __future__ import annotations

from plimsoll.broker.monitoring.bundle_metrics import bundle_metrics
from plimsoll.core.policies.model.bundle_load import BundleLoad, report_fields
from plimsoll.core.policies.model.hash_ranges import BUNDLES_AT_MOST, HashRange, Partition


def series(report: dict[str, dict[str, float]]) -> int:
    return sum(len(family.samples) for family in bundle_metrics(report))


def test_without_bundles_there_is_no_series():
    assert series({}) == 0


def test_a_bundle_that_was_split_has_its_halves_instead():
    whole = report_fields([BundleLoad(HashRange(0, 2**31), 2, 4)])
    halves = report_fields([BundleLoad(HashRange(0, 2**30), 1, 2), BundleLoad(HashRange(2**30, 2**31), 1, 2)])
    assert (series(whole), series(halves)) == (6, 12)
    named = {sample.labels["bundle"] for family in bundle_metrics(halves) for sample in family.samples}
    assert named == {"0x00000000_0x40000000", "0x40000000_0x80000000"}


def test_their_number_is_bounded():
    many = [BundleLoad(bundle, 1, 1) for bundle in Partition.of_count(BUNDLES_AT_MOST).ranges]
    again = [BundleLoad(HashRange(each.bundle.low, each.bundle.high - 1), 1, 1) for each in many]
    assert series(report_fields([*many, *again])) == 6 * BUNDLES_AT_MOST
