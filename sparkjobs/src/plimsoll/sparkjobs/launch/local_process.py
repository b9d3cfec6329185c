"""Jobs as local processes: their command lines and environment."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from plimsoll.sparkjobs.launch.spec import SparkLaunch, live_arguments

_SMALL_MACHINE = "-Duser.timezone=UTC -XX:+UseSerialGC -XX:NewRatio=1 -XX:MetaspaceSize=192m"
"""Threads of a parallel collector would wait for cores. Loading Spark's classes collects no garbage."""
JVM_OPTIONS = (
    f"{_SMALL_MACHINE} -XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000"
    " -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""Options of a Java virtual machine on a small machine: the optimising compiler gets only code that runs most, since it
would take as much processor time as the rest of a job of a minute."""
SCAN_JVM_OPTIONS = f"{JVM_OPTIONS} -XX:NewSize=160m -XX:MaxNewSize=160m -XX:PretenureSizeThreshold=1m"
"""Those of a job that reads large files: their buffers, of megabytes each, live as long as a file is read. They are not
copied within a young generation, and a small one is touched again and again instead of all memory once."""
QUICK_START_JVM_OPTIONS = f"{_SMALL_MACHINE} -XX:TieredStopAtLevel=1"
"""Those of a short job: no code runs long enough to be worth optimising."""
PASSED_VARIABLES = ("PATH", "HOME", "JAVA_HOME", "LANG", "PYTHONPATH", "TMPDIR")


def missing_requirement(environment: Mapping[str, str] = os.environ) -> str:
    """What Spark lacks on this machine, as a sentence; empty if it lacks nothing."""
    home = environment.get("JAVA_HOME", "")
    java = home and (Path(home) / "bin" / "java").exists()
    if home and not java:
        return f"JAVA_HOME is {home}, and there is no bin/java in it; Spark 4 needs Java 17 or 21"
    if not home and shutil.which("java", path=environment.get("PATH")) is None:
        return "there is no Java: no `java` on PATH and none in JAVA_HOME; Spark 4 needs Java 17 or 21"
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed: pip install 'plimsoll-operator[spark]'"
    if not _is_found("google.protobuf"):
        return "the Python package protobuf is not installed; Spark's stateful streams need it"
    return ""


def _is_found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is not installed
        return False


def live_command(launch: SparkLaunch, root: Path, python: str = sys.executable) -> list[str]:
    """The command of the live job. It exits with 2 if another one works below `root`, and with 3 without Java."""
    return [python, "-m", "plimsoll.sparkjobs", *live_arguments(launch, str(root))]


def job_environment(outer: Mapping[str, str], python: str = sys.executable) -> dict[str, str]:
    """The environment of a job. Settings of a Spark that is installed elsewhere are not passed on."""
    kept = {name: outer[name] for name in PASSED_VARIABLES if name in outer}
    return {
        **kept,
        "TZ": "UTC",
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
