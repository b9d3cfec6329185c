"""Every report is accounted for exactly; bad input affects nothing else; all memory is bounded."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.telemetry.rows import NOW_US, report

from plimsoll.telemetry.ingest.report_intake import ReportIntake
from plimsoll.telemetry.ingest.report_sequence import WINDOW
from plimsoll.telemetry.schema import INCOMING, LOADS
from plimsoll.telemetry.storage import parquet
from plimsoll.telemetry.storage.folder import TelemetryFolder

SECOND = 1_000_000


def intake(**limits: int) -> ReportIntake:
    return ReportIntake("f", "c0", **limits)


def rows(of: ReportIntake) -> list[dict[str, Any]]:
    return [dict(zip(LOADS.names, row, strict=True)) for row in of.pending_rows]


def test_a_report_becomes_a_row():
    taken = intake()
    said = report(
        role="head", publisher_rates={"p": 3.0}, publisher_bytes_per_second={"p": 60.0}, covers={"e1": 4},
        publishers=1, interval_seconds=1.0, log_bytes=17, unheard_of={"x": 1},
    )  # fmt: skip
    assert taken.take_report(said, "c", NOW_US + 7) == "counted"
    (row,) = rows(taken)
    assert (row["received_us"], row["event_us"], row["at_us"]) == (NOW_US + 7, NOW_US, NOW_US)
    assert (row["schema"], row["collector"], row["fleet"], row["cluster"], row["broker"]) == (1, "c0", "f", "c", "e1")
    assert row["publisher_rates"] == [{"publisher": "p", "publications_per_second": 3.0, "bytes_per_second": 60.0}]
    assert row["covers"] == [{"link": "e1", "subscriptions": 4}]
    assert (row["arrivals_total"], row["deliveries_total"], row["bytes_out_total"]) == (10, 20, 3000)
    assert row["gaps_total"] is None
    assert row["log_bytes"] == 17


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"schema": 2}, "schema"),
        ({"schema": "1"}, "schema"),
        ({"broker": ""}, "malformed"),
        ({"broker": None}, "malformed"),
        ({"epoch": -1}, "malformed"),
        ({"seq": 0}, "malformed"),
        ({"seq": 1.5}, "malformed"),
        ({"seq": 2**63}, "malformed"),
        ({"state": "FINE"}, "malformed"),
        ({"cpu_ratio": math.nan}, "malformed"),
        ({"input_rate": math.inf}, "malformed"),
        ({"input_rate": 9.1e9}, "malformed"),
        ({"match_delay_seconds": -1e-9}, "malformed"),
        ({"publisher_rates": {"p": math.nan}}, "malformed"),
        ({"covers": ["e1"]}, "malformed"),
        ({"cluster": "other"}, "misplaced"),
        ({"clock_us": NOW_US + 3_601 * SECOND}, "future"),
    ],
)
def test_what_is_no_report_of_this_schema_and_place_is_refused(change: dict[str, Any], reason: str):
    taken = intake()
    assert taken.take_report(report(**change), "c", NOW_US) == "invalid"
    assert taken.reasons == {reason: 1}
    assert taken.pending_rows == []
    assert taken.brokers == 0, "nothing is remembered of it"
    assert taken.take_report(report(), "c", NOW_US) == "counted"


def test_missing_fields_are_refused_and_optional_ones_are_null():
    taken = intake()
    said = report()
    del said["input_rate"]
    assert taken.take_report(said, "c", NOW_US) == "invalid"
    said = report()
    del said["input_queue_messages"], said["counters"]
    assert taken.take_report(said, "c", NOW_US) == "counted"
    assert rows(taken)[0]["input_queue_messages"] is None


@pytest.mark.parametrize(
    ("event_us", "at_us", "skewed"),
    [
        (NOW_US - 5 * SECOND, NOW_US - 5 * SECOND, 0),
        (NOW_US + 5 * SECOND, NOW_US + 5 * SECOND, 0),
        (NOW_US - 5 * SECOND - 1, NOW_US, 1),
        (NOW_US + 5 * SECOND + 1, NOW_US, 1),
        (NOW_US - 86_400 * SECOND, NOW_US, 1),
        (3 * SECOND, NOW_US, 1),
        (0, NOW_US, 1),
    ],
)
def test_a_clock_that_is_wrong_does_not_date_its_reports(event_us: int, at_us: int, skewed: int):
    taken = intake()
    assert taken.take_report(report(clock_us=event_us), "c", NOW_US) == "counted"
    (row,) = rows(taken)
    assert row["at_us"] == at_us
    assert row["event_us"] == (event_us if event_us > 3 * SECOND else None), "a clock that was never set says nothing"
    assert taken.skewed == skewed


def test_rows_that_cannot_wait_are_dropped_oldest_first_and_counted():
    taken = intake(max_rows=3)
    for seq in range(1, 6):
        taken.take_report(report(seq=seq), "c", NOW_US)
    assert [row["seq"] for row in rows(taken)] == [3, 4, 5]
    given = taken.take_rows()
    taken.take_report(report(seq=6), "c", NOW_US)
    taken.return_rows(given)
    assert [row["seq"] for row in rows(taken)] == [4, 5, 6]
    assert taken.dropped == 3
    assert taken.counts.counted == 6


def test_no_more_brokers_are_remembered_than_there_is_room_for():
    taken = intake(max_brokers=2)
    outcomes = [taken.take_report(report(name), "c", NOW_US) for name in ("a", "b", "c", "a")]
    assert outcomes == ["counted", "counted", "invalid", "duplicate"]
    assert taken.reasons == {"full": 1}
    taken.forget_silent(["b"], NOW_US + 3_601 * SECOND)
    assert taken.take_report(report("c"), "c", NOW_US) == "counted"
    assert set(taken.newest["c"]) == {"b", "c"}


def test_the_newest_report_of_a_broker_is_kept_where_it_is_now():
    taken = intake()
    taken.take_report(report(seq=5, state="BUSY"), "c", NOW_US)
    taken.take_report(report(seq=4, state="OK"), "c", NOW_US)
    assert taken.newest["c"]["e1"].state == "BUSY"
    taken.take_report(report(seq=6, cluster="d"), "d", NOW_US)
    assert "c" not in taken.newest
    assert taken.newest["d"]["e1"].seq == 6


def storm(random_: random.Random) -> list[tuple[dict[str, Any], str]]:
    """Reports of ten brokers over their restarts, then reordered, repeated and mixed with invalid ones."""
    true: list[dict[str, Any]] = []
    for broker in range(10):
        epoch = 1
        for seq in range(1, 200):
            if random_.random() < 0.01:
                epoch += 1
            true.append(report(f"e{broker}", seq, NOW_US + seq * SECOND, epoch=epoch))
    said = [(each["seq"] + random_.expovariate(0.3), each, "c") for each in true]
    for _ in range(500):
        each = random_.choice(true)
        said.append((each["seq"] + random_.uniform(0, 400), each, "c"))
    for _ in range(200):
        each = random_.choice(true)
        changes: list[dict[str, Any]] = [
            {"schema": 9}, {"seq": "x"}, {"cpu_ratio": math.nan}, {"broker": 7}, {"clock_us": NOW_US * 2},
            {"epoch": None}, {"state": "?"}, {"covers": 3},
        ]  # fmt: skip
        change = random_.choice(changes)
        said.append((random_.uniform(0, 300), each | change, "c"))
    for _ in range(50):
        said.append((random_.uniform(0, 300), random_.choice(true), "elsewhere"))
    return [(each, cluster) for _, each, cluster in sorted(said, key=lambda one: one[0])]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(8))
def test_rows_in_are_counted_duplicate_late_or_invalid_through_a_storm_and_restarts(seed: int, tmp_path: Path):
    random_ = random.Random(seed)
    said = storm(random_)
    runs: list[ReportIntake] = []
    files = TelemetryFolder(tmp_path, "c0")
    files.prepare()
    taken, outcomes, at = intake(), Counter[str](), NOW_US

    def write() -> None:
        if given := taken.take_rows():
            assert files.write(INCOMING, LOADS, given, at, at)

    for each, cluster in said:
        at += SECOND // 10
        outcomes[taken.take_report(each, cluster, at)] += 1
        if random_.random() < 0.02:
            write()
        if random_.random() < 0.003:  # it is stopped and started again
            write()
            runs.append(taken)
            taken = intake()
            for stored in files.recent_files(INCOMING, at - 600 * SECOND):
                taken.remember(parquet.read_rows(stored.path, LOADS, ("broker", "epoch", "seq", "received_us")))
    write()
    runs.append(taken)
    assert len(runs) > 1
    counts = [run.counts for run in runs]
    assert sum(each.rows_in for each in counts) == len(said)
    assert all(each.unaccounted == 0 for each in counts)
    assert {name: sum(getattr(each, name) for each in counts) for name in outcomes} == outcomes
    assert min(outcomes[name] for name in ("counted", "duplicate", "late", "invalid")) > 0
    written = [row for path in (tmp_path / INCOMING).iterdir() for row in parquet.read_rows(path, LOADS)]
    assert len(written) == outcomes["counted"] == files.rows
    keys = Counter((row["broker"], row["epoch"], row["seq"]) for row in written)
    assert max(keys.values()) == 1, "nothing is written twice, not even across restarts"


def test_reports_that_are_not_too_late_are_all_counted():
    taken = intake()
    order = list(range(1, 1000))
    random.Random(1).shuffle(order)
    order.sort(key=lambda seq: seq + random.Random(seq).uniform(0, WINDOW - 2))
    assert {taken.take_report(report(seq=seq), "c", NOW_US) for seq in order} == {"counted"}
