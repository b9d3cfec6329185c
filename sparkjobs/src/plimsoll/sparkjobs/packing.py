"""Rows on their way to the stateful operator, put together: of each batch of rows one block for each cluster.

The operator is handed Python objects, one by one, at some ninety microseconds each; arrays are handed over whole. So
rows are turned into blocks (`rings`) where they are read, by columns, and the operator meets some blocks and never a
row. What is not valid ends here, as a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from plimsoll.sparkjobs.rings import WIDTH, Ints, block
from plimsoll.telemetry.schema import METRICS

PACKED: Final = "cluster STRING, invalid BIGINT, rows BINARY"
"""`rows` is a block, null without rows that are valid."""
_SCHEMA: Final = pa.schema([("cluster", pa.string()), ("invalid", pa.int64()), ("rows", pa.binary())])
_TEXTS: Final = {"broker": 0, "role": 1, "state": 2, "collector": 6}
_NUMBERS: Final = {"epoch": 3, "seq": 4, "received_us": 5, "at_us": 7, **{n: 8 + i for i, n in enumerate(METRICS)}}


def packed(points: DataFrame) -> DataFrame:
    """Rows of PACKED from points (`reading.points`)."""
    return points.mapInArrow(pack, PACKED)


def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same, batch by batch."""
    for batch in batches:
        if batch.num_rows:
            yield _packed(batch)


def _packed(batch: pa.RecordBatch) -> pa.RecordBatch:
    names, rows = _numbers(batch)
    valid = batch.column("valid").to_numpy(zero_copy_only=False)
    clusters = batch.column("cluster").dictionary_encode()
    of = clusters.indices.to_numpy()
    order = np.argsort(of, kind="stable")
    bounds = np.searchsorted(of[order], np.arange(len(clusters.dictionary) + 1))
    invalid, blocks = [], []
    for start, end in pairwise(bounds.tolist()):
        mine = order[start:end]
        good = mine[valid[mine]]
        invalid.append(len(mine) - len(good))
        blocks.append(block(names, rows[good]) if len(good) else None)
    columns = [clusters.dictionary, pa.array(invalid, pa.int64()), pa.array(blocks, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _numbers(batch: pa.RecordBatch) -> tuple[list[str], Ints]:
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
