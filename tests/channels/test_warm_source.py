"""The source of the stream that warms Spark up."""

from __future__ import annotations

from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.channels.warm_source import WarmReader


def test_it_has_one_row_once():
    reader = WarmReader()
    start = reader.initialOffset()
    rows, end = reader.read(start)
    assert list(rows) == [(1,)]
    nothing, same = reader.read(end)
    assert (list(nothing), same) == ([], end)
    assert list(reader.readBetweenOffsets(start, end)) == [(1,)]
    assert list(reader.readBetweenOffsets(end, end)) == []
