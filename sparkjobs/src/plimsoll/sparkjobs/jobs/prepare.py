"""`python -m plimsoll.sparkjobs prepare`: archives Spark's classes, so that later local jobs start faster.

It makes a folder of links to Spark without the libraries that no job uses (`lean_home`), runs the live job and the
means of `history` over an empty table from there, and has Java archive the classes that they have loaded: about 180 MB
in `~/.cache/plimsoll`. If both are there already, it does nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from plimsoll.core.printable import printable_lines
from plimsoll.sparkjobs import class_archive, lean_home, telemetry_source
from plimsoll.sparkjobs.job_errors import JobInputError
from plimsoll.sparkjobs.jobs import history, live
from plimsoll.sparkjobs.launch.local_process import JVM_OPTIONS
from plimsoll.sparkjobs.spark_session import make_spark_session
from plimsoll.telemetry.schema import INCOMING


def load_classes(spark: SparkSession, root: Path) -> None:
    """Run what jobs run, over an empty table below `root`."""
    empty = spark.createDataFrame([], telemetry_source.loads_schema()).coalesce(1)
    empty.write.parquet(str(root / "table"))
    (root / INCOMING).mkdir(parents=True)
    for path in telemetry_source.finished_files(root / "table"):
        path.replace(root / INCOMING / path.name)
    files = telemetry_source.finished_files(root / INCOMING)
    loads = telemetry_source.read_files(spark, files, telemetry_source.loads_schema())
    history.hourly_means(telemetry_source.report_points(loads, "prepare")).collect()
    live.run_query(spark, live.LiveJobSettings(root, "prepare"), available_now=True)


def prepare_home(path: Path) -> bool:
    """Make the folder of links at `path`, if it is not usable; whether it was made.

    The archive is of the class path of this folder, so Spark must start from it. A SPARK_HOME of the user is kept.
    """
    installed = lean_home.installed_home()
    if lean_home.HOME_VARIABLE in os.environ or installed is None or lean_home.is_usable(path, installed):
        return False
    lean_home.make_home(path, installed)
    return True


def make_archive(path: Path) -> None:
    """Write the archive, which appears whole or not at all. It ends the Java virtual machine of this process.

    Raises:
        JobInputError: Java has written none.

    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    options = {"spark.driver.extraJavaOptions": f"{JVM_OPTIONS} {class_archive.make_options(partial)}"}
    try:
        with tempfile.TemporaryDirectory(prefix="plimsoll-prepare-") as folder:
            with make_spark_session("plimsoll-prepare", options) as spark:
                load_classes(spark, Path(folder))
            end_java()
        if not partial.is_file():
            raise JobInputError(f"Java wrote no archive to {path}: use Java 17 or newer, of the kind that jobs use")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def end_java() -> None:
    """End the Java virtual machine of this process as its end would, and wait until it has written what it writes."""
    gateway = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m plimsoll.sparkjobs prepare", description=__doc__)
    parser.parse_args(arguments)
    path, home = class_archive.archive_path(), lean_home.home_path()
    if path is None or home is None:
        raise JobInputError(f"no archive is wanted: {class_archive.ARCHIVE_VARIABLE} is empty, or there is no HOME")
    path.parent.mkdir(parents=True, exist_ok=True)
    if prepare_home(home) or not path.exists():
        make_archive(path)
    sys.stdout.write(printable_lines(f"{path}: {path.stat().st_size / 1e6:.0f} MB\n"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
