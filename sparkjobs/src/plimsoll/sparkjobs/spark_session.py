"""Makes the Spark session of every job: small, in UTC, without a web page, and with a clear error if Spark cannot run.

A job started as `python -m plimsoll.sparkjobs JOB` runs on two cores of this process. Started by `spark-submit`, as in
a driver pod, it takes master, memory and executors from there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from plimsoll.sparkjobs.launch import local_process
from plimsoll.sparkjobs.launch.local_process import missing_requirement

LOCAL_MASTER: Final = "local[2]"
BASE_SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # A load report is 74 bytes: two partitions hold an hour of a fleet's reports, and each costs a task per batch.
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass":
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    # A batch writes its changes and not all tables of the store. The number of rows in the store is not used.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # Jobs read only Parquet that Plimsoll wrote; a broken file is an error, not an empty table.
    "spark.sql.files.ignoreCorruptFiles": "false",
}  # fmt: skip
LOCAL_SETTINGS: Final = {
    "spark.master": LOCAL_MASTER,
    "spark.driver.memory": "900m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Jobs are small: on two cores the optimising compiler costs more than it saves.
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.log.level": "ERROR",
}
QUICK_START_SETTINGS: Final = {"spark.driver.extraJavaOptions": local_process.QUICK_START_JVM_OPTIONS}


class SparkUnavailableError(RuntimeError):
    """Spark cannot run here; the text says what is missing and how the fleet works without it."""


def is_submitted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process was started by `spark-submit`, which then has settings of its own."""
    return "PYSPARK_GATEWAY_PORT" in environment


def session_settings(submitted: bool, extra: Mapping[str, str]) -> dict[str, str]:
    """The settings of a session. Those of `spark-submit` are not replaced by local ones."""
    return {**BASE_SETTINGS, **({} if submitted else LOCAL_SETTINGS), **extra}


def make_spark_session(name: str, extra: Mapping[str, str] | None = None, *, quick: bool = False) -> SparkSession:
    """The session of this process. `quick`: a fast start is more important than fast computation.

    Raises:
        SparkUnavailableError: there is no Java, or a package that Spark needs is missing.

    """
    if lack := missing_requirement():
        raise SparkUnavailableError(f"{name} cannot start: {lack}. The fleet uses the collectors' fold instead.")
    # By default workers are `python3` from PATH, which may be another Python without the packages of this one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    submitted = is_submitted()
    more = {**(QUICK_START_SETTINGS if quick and not submitted else {}), **(extra or {})}
    for key, value in session_settings(submitted, more).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
