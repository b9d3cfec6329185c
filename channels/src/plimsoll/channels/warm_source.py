"""A source of one row, for the stream with which a standby warms Spark up; it is read as the source of feeds is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

SOURCE: Final = "plimsoll-warm"


class WarmSource(DataSource):
    """The source as Spark knows it."""

    @classmethod
    def name(cls) -> str:
        return SOURCE

    def schema(self) -> str:
        return "n INT"

    def simpleStreamReader(self, schema: StructType) -> WarmReader:  # noqa: N802  # its name in Spark
        return WarmReader()


class WarmReader(SimpleDataSourceStreamReader):
    """Reads one row, and then none."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # its name in Spark
        return {"row": 0}

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[int]], dict[str, Any]]:
        return iter([(1,)] if start["row"] == 0 else []), {"row": 1}

    def readBetweenOffsets(  # noqa: N802  # its name in Spark
        self, start: dict[str, Any], end: dict[str, Any]
    ) -> Iterator[tuple[int]]:
        return iter([(1,)] if start["row"] < end["row"] else [])
