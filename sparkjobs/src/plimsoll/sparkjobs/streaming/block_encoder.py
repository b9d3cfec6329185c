"""Rows on their way to the stateful operator, put together: of each batch of rows one block for each cluster.

The operator is handed Python objects, one by one, at some ninety microseconds each; arrays are handed over whole. So
rows are turned into blocks (`rings`) where they are read, by columns, and the operator meets some blocks and never a
row. What is not valid ends here, as a number, and so does what is late for long: after an hour without a driver that is
nearly all there is to read.
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
"""`rows` is a block, null if all are invalid or late."""
_SCHEMA: Final = pa.schema(
    [("cluster", pa.string()), ("invalid", pa.int64()), ("late", pa.int64()), ("rows", pa.binary())]
)
_TEXTS: Final = {"broker": 0, "role": 1, "state": 2, "collector": 6}
_NUMBERS: Final = {"epoch": 3, "seq": 4, "received_us": 5, "at_us": 7, **{n: 8 + i for i, n in enumerate(METRICS)}}


def encode_blocks(points: DataFrame, late_us: Column) -> DataFrame:
    """Rows of PACKED from points (`reading.points`). What was made at `late_us` or before is late."""
    return points.withColumn("late", F.col("at_us") <= late_us).mapInArrow(encode_batches, BLOCK_COLUMNS)


def encode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same, batch by batch, of points that also say whether each is `late`."""
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
    """All rows as `rings` has them; what a row that is not valid lacks is anything."""
    rows = np.empty((batch.num_rows, WIDTH), dtype=np.int64)
    names: list[str] = []
    for name, place in _TEXTS.items():
        column = batch.column(name).dictionary_encode()
        rows[:, place] = column.indices.fill_null(0).to_numpy(zero_copy_only=False) + len(names)
        names += column.dictionary.to_pylist()
    for name, place in _NUMBERS.items():
        rows[:, place] = batch.column(name).fill_null(0).to_numpy(zero_copy_only=False)
    return names, rows
