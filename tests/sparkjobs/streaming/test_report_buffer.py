"""The live job's buffer of a cluster, compared with the definition of a snapshot in plain Python."""

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
"""The columns of `telemetry_source.report_points`, and those that `block_encoder.encode_blocks` adds."""


def pointed(row: dict, valid: bool = True) -> dict:
    """A row as `telemetry_source.report_points` makes it."""
    return {**row, "valid": valid, **{name: to_billionths(row[name]) for name in METRICS if row[name] is not None}}


def blocks(rows: Iterable[dict]) -> list[bytes]:
    """The blocks that the operator gets for pointed rows."""
    return [one["rows"] for one in packed_rows(rows) if one["rows"] is not None]


def packed_rows(rows: Iterable[dict]) -> list[dict]:
    """Pointed rows as `block_encoder` encodes them in one batch."""
    batch = pa.RecordBatch.from_pylist(list(rows), POINTS)
    return [one for made in encode_batches(iter([batch])) for one in made.to_pylist()]


def summarized(buffer: ReportBuffer, end_us: int = END_US) -> tuple:
    seen = buffer.summarize(end_us)
    return seen.seen, seen.states, msgspec.to_builtins(seen.windows)


def defined(rows: list[dict], end_us: int = END_US) -> tuple:
    """The same by `plimsoll.telemetry.fold`, for rows with different keys."""
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
def test_windows_equal_the_definition_for_rows_in_any_order(seed: int):
    rows = trace(seed, END_US, clusters=1, edges=5)
    rows += [row | {"collector": "c1", "received_us": row["received_us"] - 3} for row in rows[::7]]
    random.Random(seed).shuffle(rows)
    buffer = ReportBuffer()
    counts = ReportCounts()
    for start in range(0, len(rows), 50):
        fresh, _ = buffer.add(blocks(map(pointed, rows[start : start + 50])), END_US)
        counts = ReportCounts(
            **{name: getattr(counts, name) + getattr(fresh, name) for name in ReportCounts.__struct_fields__}
        )
    assert summarized(buffer) == defined(first_copies(rows))
    assert counts.unaccounted == 0
    assert counts.rows_in == len(rows)
    assert counts.late == sum(row["at_us"] <= END_US - HORIZON_US for row in rows)


def test_stored_slices_are_loaded_again():
    rows = trace(5, END_US, clusters=1)
    buffer = ReportBuffer()
    _, changed = buffer.add(blocks(map(pointed, rows)), END_US)
    assert sorted(changed) == buffer.slices()
    blobs = [buffer.encode_slice(number) for number in buffer.slices()]
    assert buffer.encode_slice(0) is None
    random.Random(5).shuffle(blobs)
    back = ReportBuffer.load(filter(None, blobs))
    assert summarized(back) == summarized(buffer)
    again, changed = back.add(blocks(map(pointed, rows)), END_US)
    assert (again.counted, changed) == (0, set())


def test_only_slices_with_new_rows_are_reported_as_changed():
    rows = trace(6, END_US, clusters=1)
    buffer = ReportBuffer()
    buffer.add(blocks(map(pointed, rows[:-3])), END_US)
    _, changed = buffer.add(blocks(map(pointed, rows[-3:])), END_US)
    assert changed == {row["at_us"] // SLICE_US for row in rows[-3:]}


def test_of_copies_the_one_received_first_counts_even_if_it_is_read_last():
    early, late = trace(7, END_US, clusters=1, edges=1)[-1], {}
    late = early | {"received_us": early["received_us"] + 9, "at_us": early["at_us"] + 9, "cpu_ratio": 0.9}
    for order in ([early, late], [late, early]):
        buffer = ReportBuffer()
        for row in order:
            buffer.add(blocks([pointed(row)]), END_US)
        assert buffer.rows[:, 7].tolist() == [early["at_us"]]
    same = early | {"collector": "b0", "cpu_ratio": 0.5}
    buffer = ReportBuffer()
    buffer.add(blocks([pointed(early), pointed(same)]), END_US)
    assert [buffer.names[place] for place in buffer.rows[:, 6]] == ["b0"]


def test_a_row_that_is_in_no_window_is_late():
    edge = trace(8, END_US, clusters=1, edges=1)[-1]
    inside = edge | {"at_us": END_US - HORIZON_US + 1, "seq": 900}
    outside = edge | {"at_us": END_US - HORIZON_US, "seq": 901}
    assert ReportBuffer().add(blocks([pointed(inside), pointed(outside)]), END_US)[0] == ReportCounts(
        rows_in=2, counted=1, late=1
    )
    assert ReportBuffer().add(blocks([pointed(outside)]), END_US) == (ReportCounts(rows_in=1, late=1), set())
    assert ReportBuffer().add([], END_US) == (ReportCounts(), set())


def test_rows_that_have_left_all_windows_are_dropped():
    buffer = ReportBuffer()
    buffer.add(blocks(map(pointed, trace(9, END_US, clusters=1))), END_US)
    buffer.prune(END_US + HORIZON_US)
    assert len(buffer.rows) == 0
    seen = buffer.summarize(END_US + HORIZON_US)
    assert (seen.is_present, seen.seen, seen.states) == (False, [], {})
    assert {window.n for window in seen.windows.values()} == {0}


def test_a_row_after_the_end_of_the_window_is_in_the_next_one():
    row = trace(10, END_US, clusters=1, edges=1)[-1] | {"at_us": END_US + 1, "broker": "c0-e0", "role": "edge"}
    buffer = ReportBuffer()
    counts, _ = buffer.add(blocks([pointed(row)]), END_US)
    assert counts.counted == 1
    assert buffer.summarize(END_US).windows["10"].n == 0
    assert buffer.summarize(END_US + 1).windows["10"].n == 1


def test_sums_of_the_largest_values_are_exact():
    rows = [row for row in trace(11, END_US, clusters=1) if row["at_us"] > END_US - HORIZON_US]
    for row in rows:
        row["output_bytes_per_second"] = 9.1e9
        row["input_rate"] = -9.1e9
    buffer = ReportBuffer()
    buffer.add(blocks(map(pointed, rows)), END_US)
    assert summarized(buffer) == defined(rows)


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
def test_a_copy_received_earlier_changes_the_slices_of_both_rows(seed: int):
    generator = random.Random(seed)
    rows = [row for row in trace(seed, END_US, clusters=1, edges=1) if row["at_us"] > END_US - HORIZON_US]
    buffer = ReportBuffer()
    buffer.add(blocks(map(pointed, rows)), END_US)
    for row in generator.sample(rows, 10):
        at_us = row["at_us"] - generator.choice([0, SLICE_US])
        earlier = generator.choice([True, False])
        copy = row | {"at_us": at_us, "received_us": row["received_us"] + (-1 if earlier else 1)}
        counts, changed = buffer.add(blocks([pointed(copy)]), END_US)
        assert (counts.counted, counts.duplicate + counts.late) == (0, 1)
        is_taken = earlier and not counts.late
        assert changed == ({row["at_us"] // SLICE_US, at_us // SLICE_US} if is_taken else set())
