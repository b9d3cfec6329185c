"""Rows are encoded by cluster; none is lost, and invalid rows are counted."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest
from tests.sparkjobs.streaming.test_report_buffer import END_US, POINTS, packed_rows, pointed
from tests.sparkjobs.traces import trace

from plimsoll.sparkjobs.streaming.block_encoder import encode_batches
from plimsoll.sparkjobs.streaming.report_buffer import BROKER, FIRST_METRIC, SEQ, WIDTH, ReportBuffer
from plimsoll.telemetry.metric_statistics import to_billionths
from plimsoll.telemetry.schema import METRICS


@pytest.mark.parametrize("seed", range(3))
def test_each_row_is_encoded_once_with_its_numbers_in_its_cluster(seed: int):
    generator = random.Random(seed)
    rows = [(row, generator.random() > 0.2) for row in trace(seed, END_US, clusters=3)]
    generator.shuffle(rows)
    made = packed_rows(pointed(row, valid) for row, valid in rows)
    broken = Counter(row["cluster"] for row, valid in rows if not valid)
    assert {one["cluster"]: one["invalid"] for one in made} == broken
    for one in made:
        buffer = ReportBuffer.load([one["rows"]])
        assert buffer.rows.shape == (sum(valid and row["cluster"] == one["cluster"] for row, valid in rows), WIDTH)
        numbers = {(buffer.names[row[BROKER]], int(row[SEQ])): row[FIRST_METRIC:].tolist() for row in buffer.rows}
        wanted = {
            (row["broker"], row["seq"]): [to_billionths(row[name]) for name in METRICS]
            for row, valid in rows if valid and row["cluster"] == one["cluster"]
        }  # fmt: skip
        assert numbers == wanted


def test_a_row_without_values_is_counted():
    empty = dict.fromkeys(POINTS.names)
    assert packed_rows([empty | {"valid": False, "cluster": ""}]) == [
        {"cluster": "", "invalid": 1, "late": 0, "rows": None}
    ]


def test_late_rows_are_counted_and_an_invalid_row_is_not_late():
    first, second = (pointed(row) for row in trace(2, END_US, clusters=1, edges=1)[:2])
    made = packed_rows([first | {"late": True}, second | {"late": False}, first | {"late": True, "valid": False}])
    assert [(one["invalid"], one["late"]) for one in made] == [(1, 1)]
    assert ReportBuffer.load([made[0]["rows"]]).rows[:, SEQ].tolist() == [second["seq"]]


def test_a_batch_without_rows_has_no_blocks():
    assert list(encode_batches(iter([pa.RecordBatch.from_pylist([], POINTS)]))) == []


def test_null_values_of_a_row_do_not_change_the_numbers_of_others():
    big = trace(1, END_US, clusters=1, edges=1)[0] | {"epoch": 2**62 - 1}
    lacking = pointed(big, valid=False) | {"epoch": None, "broker": None}
    (made,) = packed_rows([lacking, pointed(big)])
    assert made["invalid"] == 1
    assert ReportBuffer.load([made["rows"]]).rows[0, 3] == 2**62 - 1
