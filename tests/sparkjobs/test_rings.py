"""What the live job keeps of a cluster, against the definition of a snapshot in plain Python."""

from __future__ import annotations

import random

import msgspec
import pytest
from tests.sparkjobs.traces import disturbed, trace

from plimsoll.sparkjobs.rings import HORIZON_US, SLICE_US, Ring, candidates
from plimsoll.telemetry.figures import nano
from plimsoll.telemetry.fold import Point, aggregate
from plimsoll.telemetry.schema import METRICS
from plimsoll.telemetry.snapshot import SEEN_SECONDS, WINDOWS_SECONDS, Counts

END_US = 1_800_000_000_000_000


def pointed(row: dict, valid: bool = True) -> dict:
    """A row as `reading.points` makes it."""
    return {**row, "valid": valid, **{name: nano(row[name]) for name in METRICS if row[name] is not None}}


def told(ring: Ring, end_us: int = END_US) -> tuple:
    seen = ring.seen(end_us)
    return seen.seen, seen.states, msgspec.to_builtins(seen.windows)


def defined(rows: list[dict], end_us: int = END_US) -> tuple:
    """The same by `plimsoll.telemetry.fold`, of rows whose keys differ."""
    expected = {row["broker"] for row in rows}
    cluster = aggregate(map(Point.of, rows), expected, end_us, WINDOWS_SECONDS, SEEN_SECONDS)
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
    ring = Ring()
    counts = Counts()
    for start in range(0, len(rows), 50):
        fresh, _ = ring.add(map(pointed, rows[start : start + 50]), END_US)
        counts = Counts(**{name: getattr(counts, name) + getattr(fresh, name) for name in Counts.__struct_fields__})
    assert told(ring) == defined(first_copies(rows))
    assert counts.balance == 0
    assert counts.rows_in == len(rows)
    assert counts.late == sum(row["at_us"] <= END_US - HORIZON_US for row in rows)


def test_what_is_stored_comes_back():
    rows = trace(5, END_US, clusters=1)
    ring = Ring()
    _, changed = ring.add(map(pointed, rows), END_US)
    assert sorted(changed) == ring.slices()
    blobs = [ring.blob(number) for number in ring.slices()]
    assert ring.blob(0) is None
    random.Random(5).shuffle(blobs)
    back = Ring.load(filter(None, blobs))
    assert told(back) == told(ring)
    again, changed = back.add(map(pointed, rows), END_US)
    assert (again.counted, changed) == (0, set())


def test_only_slices_with_news_are_told_as_changed():
    rows = trace(6, END_US, clusters=1)
    ring = Ring()
    ring.add(map(pointed, rows[:-3]), END_US)
    _, changed = ring.add(map(pointed, rows[-3:]), END_US)
    assert changed == {row["at_us"] // SLICE_US for row in rows[-3:]}


def test_of_copies_the_first_received_counts_also_if_it_is_read_last():
    early, late = trace(7, END_US, clusters=1, edges=1)[-1], {}
    late = early | {"received_us": early["received_us"] + 9, "at_us": early["at_us"] + 9, "cpu_ratio": 0.9}
    for order in ([early, late], [late, early]):
        ring = Ring()
        for row in order:
            ring.add([pointed(row)], END_US)
        assert ring.rows[:, 7].tolist() == [early["at_us"]]
    same = early | {"collector": "b0", "cpu_ratio": 0.5}
    ring = Ring()
    ring.add([pointed(early), pointed(same)], END_US)
    assert [ring.names[place] for place in ring.rows[:, 6]] == ["b0"]


def test_late_is_what_no_window_can_hold_and_broken_is_what_is_not_valid():
    edge = trace(8, END_US, clusters=1, edges=1)[-1]
    inside = edge | {"at_us": END_US - HORIZON_US + 1, "seq": 900}
    outside = edge | {"at_us": END_US - HORIZON_US, "seq": 901}
    counts, _ = Ring().add([pointed(inside), pointed(outside), pointed(edge, valid=False)], END_US)
    assert counts == Counts(rows_in=3, counted=1, late=1, invalid=1)


def test_what_no_window_can_hold_any_more_is_forgotten():
    ring = Ring()
    ring.add(map(pointed, trace(9, END_US, clusters=1)), END_US)
    ring.prune(END_US + HORIZON_US)
    assert len(ring.rows) == 0
    seen = ring.seen(END_US + HORIZON_US)
    assert (seen.is_present, seen.seen, seen.states) == (False, [], {})
    assert {window.n for window in seen.windows.values()} == {0}


def test_a_row_after_the_window_waits_for_the_next_one():
    row = trace(10, END_US, clusters=1, edges=1)[-1] | {"at_us": END_US + 1, "broker": "c0-e0", "role": "edge"}
    ring = Ring()
    counts, _ = ring.add([pointed(row)], END_US)
    assert counts.counted == 1
    assert ring.seen(END_US).windows["10"].n == 0
    assert ring.seen(END_US + 1).windows["10"].n == 1


def test_sums_of_the_greatest_values_are_exact():
    rows = [row for row in trace(11, END_US, clusters=1) if row["at_us"] > END_US - HORIZON_US]
    for row in rows:
        row["output_bytes_per_second"] = 9.1e9
        row["input_rate"] = -9.1e9
    ring = Ring()
    ring.add(map(pointed, rows), END_US)
    assert told(ring) == defined(rows)


def test_candidates_are_ordered_by_load_then_name():
    over, under = candidates({"b": 0.5, "a": 0.5, "c": 0.1, "d": 0.9, "e": 0.3, "f": 0.2})
    assert [one.broker for one in over] == ["d", "a", "b", "e", "f"]
    assert [one.broker for one in under] == ["c", "f", "e", "a", "b"]


def test_disturbances_are_accounted_for():
    rows = disturbed(3, trace(3, END_US, clusters=1))
    broken = [i for i, row in enumerate(rows) if row["cpu_ratio"] != row["cpu_ratio"]]
    usable = [pointed(row | {"cpu_ratio": 0.0}, valid=i not in broken) for i, row in enumerate(rows)]
    counts, _ = Ring().add(usable, END_US)
    assert counts.balance == 0
    assert counts.duplicate > 0
    assert counts.invalid == len(broken)
