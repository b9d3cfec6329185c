"""Encodes rows for the stateful operator: one block for each cluster in each batch of rows.

Spark passes rows to the operator as Python objects, at some ninety microseconds each, but arrays as a whole. So rows
are encoded into blocks (`report_buffer`) by columns where they are read, and the operator gets a few blocks. Invalid
rows, and rows that are late already, are only counted here: after an hour without a driver nearly all rows are late.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # its name everywhere

from plimsoll.sparkjobs.streaming.report_buffer import WIDTH, Ints, encode_block
from plimsoll.telemetry.schema import METRICS

BLOCK_COLUMNS: Final = "cluster STRING, invalid BIGINT, late BIGINT, rows BINARY"
"""`rows` is a block, or null if all rows are invalid or late."""
_SCHEMA: Final = pa.schema(
    [("cluster", pa.string()), ("invalid", pa.int64()), ("late", pa.int64()), ("rows", pa.binary())]
)
_TEXTS: Final = {"broker": 0, "role": 1, "state": 2, "collector": 6}
_NUMBERS: Final = {"epoch": 3, "seq": 4, "received_us": 5, "at_us": 7, **{n: 8 + i for i, n in enumerate(METRICS)}}


def encode_blocks(points: DataFrame, late_us: Column) -> DataFrame:
    """Rows of BLOCK_COLUMNS from points (`telemetry_source.report_points`). Rows from `late_us` or before are late."""
    return points.withColumn("late", F.col("at_us") <= late_us).mapInArrow(encode_batches, BLOCK_COLUMNS)


def encode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same for Arrow batches of points with a column `late`."""
    for batch in batches:
        if batch.num_rows:
            yield _encode_batch(batch)


def _encode_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    names, rows = _integer_rows(batch)
    valid = batch.column("valid").to_numpy(zero_copy_only=False)
    late = batch.column("late").fill_null(False).to_numpy(zero_copy_only=False) & valid
    good = valid & ~late
    clusters = batch.column("cluster").dictionary_encode()
    of, count = clusters.indices.to_numpy(), len(clusters.dictionary)
    order = np.argsort(of, kind="stable")
    blocks = []
    for start, end in pairwise(np.searchsorted(of[order], np.arange(count + 1)).tolist()):
        mine = order[start:end]
        kept = mine[good[mine]]
        blocks.append(encode_block(names, rows[kept]) if len(kept) else None)
    numbers = [pa.array(np.bincount(of[which], minlength=count), pa.int64()) for which in (~valid, late)]
    columns = [clusters.dictionary, *numbers, pa.array(blocks, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _integer_rows(batch: pa.RecordBatch) -> tuple[list[str], Ints]:
    """All rows as a `ReportBuffer` stores them; null values of invalid rows become arbitrary numbers."""
    rows = np.empty((batch.num_rows, WIDTH), dtype=np.int64)
    names: list[str] = []
    for name, place in _TEXTS.items():
        column = batch.column(name).dictionary_encode()
        rows[:, place] = column.indices.fill_null(0).to_numpy(zero_copy_only=False) + len(names)
        names += column.dictionary.to_pylist()
    for name, place in _NUMBERS.items():
        rows[:, place] = batch.column(name).fill_null(0).to_numpy(zero_copy_only=False)
    return names, rows
