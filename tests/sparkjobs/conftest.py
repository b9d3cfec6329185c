"""One small Spark for all tests of jobs. Test modules that use it begin with `from tests.sparkjobs import needs`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Tests have hundreds of rows: a JVM that compiles little is several times faster with them.
SETTINGS = {
    "spark.sql.streaming.pollingDelay": "20ms",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from plimsoll.sparkjobs.spark_session import make_spark_session

    with warnings.catch_warnings():
        # Sockets and pipes of Spark's gateway are closed when they are collected, not before.
        warnings.simplefilter("ignore", ResourceWarning)
        session = make_spark_session("plimsoll-tests", SETTINGS)
        yield session
        session.stop()
