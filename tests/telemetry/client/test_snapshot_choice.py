"""Spark's snapshot is used once it has been valid twice in a row, and only as long as it is valid."""

from __future__ import annotations

from tests.telemetry.rows import NOW_US
from tests.telemetry.test_collector import by_spark

from plimsoll.telemetry.client.snapshot_choice import SnapshotChooser
from plimsoll.telemetry.snapshot import SnapshotRequirements, TelemetrySnapshot, decode_snapshot

SECOND = 1_000_000
FOLD: TelemetrySnapshot = decode_snapshot(by_spark())


def spark(number: int, later_seconds: int = 0) -> bytes:
    return by_spark(batch=number, end_us=NOW_US + (number * 10 + later_seconds) * SECOND)


def at(number: int) -> int:
    return NOW_US + number * 10 * SECOND


def test_two_windows_must_be_right():
    choice = SnapshotChooser(SnapshotRequirements("f"))
    first = choice.choose(spark(1), FOLD, at(1))
    assert (first.is_spark, first.reason, first.snapshot) == (False, "Unproven: right for 1 of 2 windows", FOLD)
    assert not choice.choose(spark(1), FOLD, at(1)).is_spark, "the same window twice is one window"
    second = choice.choose(spark(2), FOLD, at(2))
    assert (second.is_spark, second.reason, second.snapshot.batch) == (True, "", 2)
    assert choice.choose(spark(2), FOLD, at(2) + SECOND).is_spark, "nothing newer yet, and it is fresh"


def test_one_fault_is_enough_to_fall_back_and_two_windows_to_return():
    choice = SnapshotChooser(SnapshotRequirements("f"))
    choice.choose(spark(1), FOLD, at(1))
    assert choice.choose(spark(2), FOLD, at(2)).is_spark
    number = 2
    for bad, fault in ((None, "Missing"), (spark(3)[:-9], "Malformed"), (spark(1, 50), "OutOfOrder")):
        fallen = choice.choose(bad, FOLD, at(number))
        assert (fallen.snapshot, fallen.reason.partition(":")[0]) == (FOLD, fault)
        assert not choice.choose(spark(number + 1), FOLD, at(number + 1)).is_spark
        assert choice.choose(spark(number + 2), FOLD, at(number + 2)).is_spark
        number += 2
    assert choice.choose(spark(number), FOLD, at(number) + 46 * SECOND).reason.startswith("Stale: ")


def test_the_same_window_after_a_fault_counts_again():
    choice = SnapshotChooser(SnapshotRequirements("f"))
    choice.choose(spark(1), FOLD, at(1))
    choice.choose(spark(2), FOLD, at(2))
    choice.choose(None, FOLD, at(2))
    assert choice.choose(spark(2), FOLD, at(2)).reason == "Unproven: right for 1 of 2 windows"
    assert choice.choose(spark(3), FOLD, at(3)).is_spark
