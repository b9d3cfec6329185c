"""What the live job keeps of a cluster, against the definition of a snapshot in plain Python."""

from __future__ import annotations

import random
from collections.abc import Iterable

import msgspec
import pyarrow as pa
import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run
from tests.sparkjobs.traces import disturbed, trace

from plimsoll.sparkjobs.streaming.block_encoder import encode_batches
from plimsoll.sparkjobs.streaming.report_buffer import HORIZON_US, SLICE_US, ReportBuffer, rank_candidates
from plimsoll.sparkjobs.telemetry_source import LARGEST_METRIC, POINT_COLUMNS
from plimsoll.telemetry.fold import ReportPoint, aggregate_cluster
from plimsoll.telemetry.metric_statistics import to_billionths
from plimsoll.telemetry.schema import METRICS
from plimsoll.telemetry.snapshot import SEEN_SECONDS, WINDOWS_SECONDS, ReportCounts

END_US = 1_800_000_000_000_000
TEXTS = ("cluster", "broker", "role", "state", "collector")
POINTS = pa.schema(
    [
        ("valid", pa.bool_()),
        ("late", pa.bool_()),
        *((name, pa.string() if name in TEXTS else pa.int64()) for name in (*POINT_COLUMNS, *METRICS)),
    ]
)
"""Columns of `reading.points`, and what `packing.packed` adds."""


def pointed(row: dict, valid: bool = True) -> dict:
    """A row as `reading.points` makes it."""
    return {**row, "valid": valid, **{name: to_billionths(row[name]) for name in METRICS if row[name] is not None}}


def blocks(rows: Iterable[dict]) -> list[bytes]:
    """Pointed rows as the operator is handed them; none is of one."""
    return [one["rows"] for one in packed_rows(rows) if one["rows"] is not None]


def packed_rows(rows: Iterable[dict]) -> list[dict]:
    """Pointed rows as `packing` makes them of one batch."""
    batch = pa.RecordBatch.from_pylist(list(rows), POINTS)
    return [one for made in encode_batches(iter([batch])) for one in made.to_pylist()]


def told(ring: ReportBuffer, end_us: int = END_US) -> tuple:
    seen = ring.summarize(end_us)
    return seen.seen, seen.states, msgspec.to_builtins(seen.windows)


def defined(rows: list[dict], end_us: int = END_US) -> tuple:
    """The same by `plimsoll.telemetry.fold`, of rows whose keys differ."""
    expected = {row["broker"] for row in rows}
    cluster = aggregate_cluster(map(ReportPoint.of, rows), expected, end_us, WINDOWS_SECONDS, SEEN_SECONDS)
    missing = set(cluster.missing)
    return sorted(expected - missing), cluster.states, msgspec.to_builtins(cluster.windows)


def first_copies(rows: list[dict]) -> list[dict]:
    kept: dict[tuple, dict] = {}
    for row in sorted(rows, key=lambda row: (row["received_us"], row["collector"])):
        kept.setdefault((row["broker"], row["epoch"], row["seq"]), row)
    return list(kept.values())


@pytest.mark.parametrize("seed", range(4))
def test_windows_are_those_of_the_definition_in_whatever_order_rows_come(seed: int):
    rows = trace(seed, END_US, clusters=1, edges=5)
    rows += [row | {"collector": "c1", "received_us": row["received_us"] - 3} for row in rows[::7]]
    random.Random(seed).shuffle(rows)
    ring = ReportBuffer()
    counts = ReportCounts()
    for start in range(0, len(rows), 50):
        fresh, _ = ring.add(blocks(map(pointed, rows[start : start + 50])), END_US)
        counts = ReportCounts(
            **{name: getattr(counts, name) + getattr(fresh, name) for name in ReportCounts.__struct_fields__}
        )
    assert told(ring) == defined(first_copies(rows))
    assert counts.unaccounted == 0
    assert counts.rows_in == len(rows)
    assert counts.late == sum(row["at_us"] <= END_US - HORIZON_US for row in rows)


def test_what_is_stored_comes_back():
    rows = trace(5, END_US, clusters=1)
    ring = ReportBuffer()
    _, changed = ring.add(blocks(map(pointed, rows)), END_US)
    assert sorted(changed) == ring.slices()
    blobs = [ring.encode_slice(number) for number in ring.slices()]
    assert ring.encode_slice(0) is None
    random.Random(5).shuffle(blobs)
    back = ReportBuffer.load(filter(None, blobs))
    assert told(back) == told(ring)
    again, changed = back.add(blocks(map(pointed, rows)), END_US)
    assert (again.counted, changed) == (0, set())


def test_only_slices_with_news_are_told_as_changed():
    rows = trace(6, END_US, clusters=1)
    ring = ReportBuffer()
    ring.add(blocks(map(pointed, rows[:-3])), END_US)
    _, changed = ring.add(blocks(map(pointed, rows[-3:])), END_US)
    assert changed == {row["at_us"] // SLICE_US for row in rows[-3:]}


def test_of_copies_the_first_received_counts_also_if_it_is_read_last():
    early, late = trace(7, END_US, clusters=1, edges=1)[-1], {}
    late = early | {"received_us": early["received_us"] + 9, "at_us": early["at_us"] + 9, "cpu_ratio": 0.9}
    for order in ([early, late], [late, early]):
        ring = ReportBuffer()
        for row in order:
            ring.add(blocks([pointed(row)]), END_US)
        assert ring.rows[:, 7].tolist() == [early["at_us"]]
    same = early | {"collector": "b0", "cpu_ratio": 0.5}
    ring = ReportBuffer()
    ring.add(blocks([pointed(early), pointed(same)]), END_US)
    assert [ring.names[place] for place in ring.rows[:, 6]] == ["b0"]


def test_late_is_what_no_window_can_hold():
    edge = trace(8, END_US, clusters=1, edges=1)[-1]
    inside = edge | {"at_us": END_US - HORIZON_US + 1, "seq": 900}
    outside = edge | {"at_us": END_US - HORIZON_US, "seq": 901}
    assert ReportBuffer().add(blocks([pointed(inside), pointed(outside)]), END_US)[0] == ReportCounts(
        rows_in=2, counted=1, late=1
    )
    assert ReportBuffer().add(blocks([pointed(outside)]), END_US) == (ReportCounts(rows_in=1, late=1), set())
    assert ReportBuffer().add([], END_US) == (ReportCounts(), set())


def test_what_no_window_can_hold_any_more_is_forgotten():
    ring = ReportBuffer()
    ring.add(blocks(map(pointed, trace(9, END_US, clusters=1))), END_US)
    ring.prune(END_US + HORIZON_US)
    assert len(ring.rows) == 0
    seen = ring.summarize(END_US + HORIZON_US)
    assert (seen.is_present, seen.seen, seen.states) == (False, [], {})
    assert {window.n for window in seen.windows.values()} == {0}


def test_a_row_after_the_window_waits_for_the_next_one():
    row = trace(10, END_US, clusters=1, edges=1)[-1] | {"at_us": END_US + 1, "broker": "c0-e0", "role": "edge"}
    ring = ReportBuffer()
    counts, _ = ring.add(blocks([pointed(row)]), END_US)
    assert counts.counted == 1
    assert ring.summarize(END_US).windows["10"].n == 0
    assert ring.summarize(END_US + 1).windows["10"].n == 1


def test_sums_of_the_greatest_values_are_exact():
    rows = [row for row in trace(11, END_US, clusters=1) if row["at_us"] > END_US - HORIZON_US]
    for row in rows:
        row["output_bytes_per_second"] = 9.1e9
        row["input_rate"] = -9.1e9
    ring = ReportBuffer()
    ring.add(blocks(map(pointed, rows)), END_US)
    assert told(ring) == defined(rows)


def test_candidates_are_ordered_by_load_then_name():
    over, under = rank_candidates({"b": 0.5, "a": 0.5, "c": 0.1, "d": 0.9, "e": 0.3, "f": 0.2})
    assert [one.broker for one in over] == ["d", "a", "b", "e", "f"]
    assert [one.broker for one in under] == ["c", "f", "e", "a", "b"]


def test_disturbances_are_accounted_for():
    rows = disturbed(3, trace(3, END_US, clusters=1))
    usable = [pointed(row) for row in rows if all(abs(row[name]) <= LARGEST_METRIC for name in METRICS)]
    counts, _ = ReportBuffer().add(blocks(usable), END_US)
    assert (counts.unaccounted, counts.rows_in) == (0, len(usable))
    assert counts.duplicate > 0


@pytest.mark.parametrize("seed", range(3))
def test_copies_among_what_is_kept_and_what_comes_change_the_slices_that_they_leave_and_enter(seed: int):
    generator = random.Random(seed)
    rows = [row for row in trace(seed, END_US, clusters=1, edges=1) if row["at_us"] > END_US - HORIZON_US]
    ring = ReportBuffer()
    ring.add(blocks(map(pointed, rows)), END_US)
    for row in generator.sample(rows, 10):
        at_us = row["at_us"] - generator.choice([0, SLICE_US])
        earlier = generator.choice([True, False])
        copy = row | {"at_us": at_us, "received_us": row["received_us"] + (-1 if earlier else 1)}
        counts, changed = ring.add(blocks([pointed(copy)]), END_US)
        assert (counts.counted, counts.duplicate + counts.late) == (0, 1)
        is_taken = earlier and not counts.late
        assert changed == ({row["at_us"] // SLICE_US, at_us // SLICE_US} if is_taken else set())
