"""A snapshot is read back as it was written; each possible fault is refused by its name."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from tests.telemetry.rows import NOW_US, row

from plimsoll.telemetry.fold import ReportPoint, SnapshotHeader, fold_reports
from plimsoll.telemetry.snapshot import (
    SCHEMA,
    ReportCounts,
    SnapshotError,
    SnapshotRequirements,
    TelemetrySnapshot,
    canonical_json,
    check_usable,
    checksum,
    decode_snapshot,
    decode_usable,
    encode_snapshot,
)


def snapshot(seen: int = 4, expected: int = 4, **header: Any) -> TelemetrySnapshot:
    about: dict[str, Any] = {
        "source": "fold", "fleet": "f", "run_us": 5, "batch": 2, "window_end_us": NOW_US, "written_us": NOW_US,
    }  # fmt: skip
    points = [ReportPoint.of(row(f"e{i}", input_utilization=0.1 * i)) for i in range(seen)]
    counts = ReportCounts(rows_in=seen + 1, counted=seen, duplicate=1)
    names = [f"e{i}" for i in range(expected)]
    return fold_reports({"c": points}, {"c": names}, SnapshotHeader(**(about | header)), counts)


def changed(data: bytes, change: dict[str, Any], *, resealed: bool) -> bytes:
    content = json.loads(data) | change
    if resealed:
        content["sha256"] = checksum(content)
    return canonical_json(content)


def fault(data: bytes, wanted: SnapshotRequirements | None = None, now_us: int = NOW_US) -> str:
    with pytest.raises(SnapshotError) as refused:
        decode_usable(data, wanted or SnapshotRequirements("f"), now_us)
    return refused.value.fault


def test_what_is_written_is_read_back():
    written = snapshot()
    assert decode_usable(encode_snapshot(written), SnapshotRequirements("f"), NOW_US) == written
    assert encode_snapshot(decode_snapshot(encode_snapshot(written))) == encode_snapshot(written)


def test_the_checksum_is_over_the_canonical_form():
    content = json.loads(encode_snapshot(snapshot()))
    rewritten = json.dumps(content, indent=3).encode()
    assert decode_snapshot(rewritten) == snapshot(), "space and order of keys are not content"


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_a_part_of_a_snapshot_is_malformed(cut: int):
    assert fault(encode_snapshot(snapshot())[:cut]) == "Malformed"


@pytest.mark.parametrize("data", [b"[]", b"3", b"\xff", b'{"a": NaN}', b'{"a": 1e400}', b"[" * 100_000])
def test_other_things_are_malformed(data: bytes):
    assert fault(data) == "Malformed"


def test_another_schema_is_refused_even_with_a_right_checksum():
    data = changed(encode_snapshot(snapshot()), {"schema": "plimsoll.snapshot/2"}, resealed=True)
    assert fault(data) == "UnknownSchema"


@pytest.mark.parametrize("change", [{"seen": 9}, {"batch": 3}, {"clusters": {}}, {"sha256": ""}])
def test_what_was_changed_afterwards_is_refused(change: dict[str, Any]):
    assert fault(changed(encode_snapshot(snapshot()), change, resealed=False)) == "ChecksumMismatch"


@pytest.mark.parametrize("change", [{"seen": "many"}, {"clusters": []}, {"source": "rumour"}])
def test_content_of_another_shape_is_malformed(change: dict[str, Any]):
    assert fault(changed(encode_snapshot(snapshot()), change, resealed=True)) == "Malformed"


def test_rows_that_are_not_accounted_for_are_refused():
    counts = msgspec.to_builtins(ReportCounts(rows_in=10, counted=8, duplicate=1))
    assert fault(changed(encode_snapshot(snapshot()), {"counts": counts}, resealed=True)) == "Malformed"


def test_readers_pass_over_fields_that_they_do_not_know():
    data = changed(encode_snapshot(snapshot()), {"weather": "fair"}, resealed=True)
    assert decode_snapshot(data) == snapshot()


def test_age_coverage_order_and_fleet_are_checked():
    data = encode_snapshot(snapshot())
    assert fault(data, SnapshotRequirements("g")) == "WrongFleet"
    assert fault(data, now_us=NOW_US + 45_100_000) == "Stale"
    assert fault(data, now_us=NOW_US - 5_100_000) == "FromFuture"
    assert fault(data, SnapshotRequirements("f", after=(5, 3))) == "OutOfOrder"
    assert fault(data, SnapshotRequirements("f", after=(6, 0))) == "OutOfOrder"
    assert fault(encode_snapshot(snapshot(seen=3))) == "Incomplete"
    assert fault(encode_snapshot(snapshot(0, 0))) == "Incomplete", "no broker expected: nothing is known"


def test_what_is_just_good_enough_is_taken():
    data = encode_snapshot(snapshot(19, 20))
    assert decode_usable(data, SnapshotRequirements("f", after=(5, 2)), NOW_US + 45_000_000).coverage == 0.95
    assert decode_usable(data, SnapshotRequirements("f", after=(4, 9)), NOW_US - 5_000_000).order == (5, 2)


def test_a_refusal_names_who_is_missing():
    with pytest.raises(SnapshotError, match=r"3 of 9 brokers seen.*e3, e4, e5 and 3 more"):
        check_usable(snapshot(3, 9), SnapshotRequirements("f"), NOW_US)


def test_the_schema_is_named():
    assert json.loads(encode_snapshot(snapshot()))["schema"] == SCHEMA
