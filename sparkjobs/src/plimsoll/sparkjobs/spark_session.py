"""Makes the Spark session of every job: small, in UTC, without a web page, and with a clear error if Spark cannot run.

A job started as `python -m plimsoll.sparkjobs JOB` runs on two cores of this process. Started by `spark-submit`, as in
a driver pod, it takes master, memory and executors from there. What a user has set is never replaced by a default.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from plimsoll.sparkjobs import class_archive, lean_home
from plimsoll.sparkjobs.launch import local_process
from plimsoll.sparkjobs.launch.local_process import missing_requirement
from plimsoll.sparkjobs.launch.spec import SUBMIT_VARIABLE

LOCAL_MASTER: Final = "local[2]"
REQUIRED_SETTINGS: Final = {
    # Results are correct only with these, whatever the user has set.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass":
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    # A broken file is an error, which is dealt with, and not an empty table.
    "spark.sql.files.ignoreCorruptFiles": "false",
}  # fmt: skip
DEFAULT_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Adaptive execution merges small partitions after each shuffle, so a large job gets many and a small one few.
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # A batch writes its changes and not all tables of the store. The number of rows in the store is not used.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}
LOCAL_SETTINGS: Final = {
    "spark.master": LOCAL_MASTER,
    "spark.driver.memory": "900m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": local_process.JVM_OPTIONS,
    # Partitions before adaptive execution merges them: the default of 200 is for hundreds of cores.
    "spark.sql.shuffle.partitions": "16",
    # Jobs report failures in one line; Spark would print traces of Java as well.
    "spark.log.level": "FATAL",
}
QUICK_START_SETTINGS: Final = {"spark.driver.extraJavaOptions": local_process.QUICK_START_JVM_OPTIONS}
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
MAKES_ARCHIVE: Final = "-XX:ArchiveClassesAtExit"
SUBMIT_OPTIONS: Final = {
    "--master": "spark.master",
    "--driver-memory": "spark.driver.memory",
    "--driver-java-options": "spark.driver.extraJavaOptions",
    "--name": "spark.app.name",
}
CONF_OPTIONS: Final = ("--conf", "-c")
FILE_OPTION: Final = "--properties-file"
DEFAULTS_FILE: Final = "spark-defaults.conf"
NAME: Final = "spark.app.name"


class SparkUnavailableError(RuntimeError):
    """Spark cannot run here; the text says what is missing and how the fleet works without it."""


def is_submitted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process was started by `spark-submit`, which then has settings of its own."""
    return "PYSPARK_GATEWAY_PORT" in environment


def user_settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What the user has set for a local job: in `spark-defaults.conf` or, stronger, in PYSPARK_SUBMIT_ARGS."""
    home = environment.get("SPARK_HOME", "")
    folder = environment.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else "")
    file = Path(folder) / DEFAULTS_FILE if folder else None
    found: dict[str, str] = {}
    # `--name=value` is the same as `--name value`.
    joined = (word.split("=", 1) if word.startswith("--") else [word]
              for word in shlex.split(environment.get(SUBMIT_VARIABLE, "")))  # fmt: skip
    for word, value in itertools.pairwise(itertools.chain.from_iterable(joined)):
        if word in CONF_OPTIONS and "=" in value:
            name, _, text = value.partition("=")
            found[name] = text
        elif word in SUBMIT_OPTIONS:
            found[SUBMIT_OPTIONS[word]] = value
        elif word == FILE_OPTION:
            file = Path(value)  # in place of the other file
    return {**(_properties(file) if file is not None else {}), **found}


def _properties(path: Path) -> dict[str, str]:
    """The names and values of a file of properties; nothing if it does not exist, which Spark itself reports."""
    if not path.is_file():
        return {}
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    parts = (re.split(r"[\s=]+", line, maxsplit=1) for line in lines if line and not line.startswith("#"))
    return {part[0]: part[1].strip() for part in parts if len(part) == 2}


def session_settings(
    given: Mapping[str, str], extra: Mapping[str, str], *, submitted: bool, quick: bool = False
) -> dict[str, str]:
    """The settings of a session. `given`, what the user has set, replaces defaults, but not what results depend on.

    `quick`: a local job is short, so a fast start is worth more than the optimising compiler.
    """
    local = {**LOCAL_SETTINGS, **(QUICK_START_SETTINGS if quick else {})}
    defaults = {**DEFAULT_SETTINGS, **({} if submitted else local), **extra}
    return {**{name: value for name, value in defaults.items() if name not in given}, **REQUIRED_SETTINGS}


def submitted_settings() -> dict[str, str]:
    """What `spark-submit` was given, by options, files and `--conf`. Needs the Java virtual machine that it started."""
    SparkContext._ensure_initialized()  # pyspark has no other way before a session
    return dict(SparkConf().getAll())


def session_name(name: str, given: Mapping[str, str], program: str) -> str:
    """The name of the application: the user's, or the job's. Without one, `spark-submit` gives that of its file."""
    named = given.get(NAME, "")
    return named if named and named != Path(program).name else name


def make_spark_session(name: str, extra: Mapping[str, str] | None = None, *, quick: bool = False) -> SparkSession:
    """The session of this process. `extra`: defaults of this job, stronger than those of all jobs.

    `quick` is explained at `session_settings`.

    Raises:
        SparkUnavailableError: there is no Java, or a package that Spark needs is missing.

    """
    if lack := missing_requirement():
        raise SparkUnavailableError(f"{name} cannot start: {lack}. The fleet uses the collectors' fold instead.")
    # By default workers are `python3` from PATH, which may be another Python without the packages of this one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    submitted = is_submitted()
    given = submitted_settings() if submitted else user_settings()
    builder = SparkSession.builder.appName(session_name(name, given, sys.argv[0]))
    settings = session_settings(given, extra or {}, submitted=submitted, quick=quick)
    if not submitted:
        lean_home.use_home()
    options = settings.get(JAVA_OPTIONS, "")
    if not submitted and options and MAKES_ARCHIVE not in options:
        settings[JAVA_OPTIONS] = f"{options} {class_archive.use_options()}".strip()
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
