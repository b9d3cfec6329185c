"""Jobs as processes beside a fleet of processes: a command line and its environment."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from plimsoll.sparkjobs.launch.spec import SparkLaunch, live_arguments

QUICK_START_JVM_OPTIONS = "-Duser.timezone=UTC -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Options of a virtual machine that has little to compute and is to be back soon: the optimising compiler would take
40 % of the CPU of a start."""
PASSED_VARIABLES = ("PATH", "HOME", "JAVA_HOME", "LANG", "PYTHONPATH", "TMPDIR")


def missing_requirement(environment: Mapping[str, str] = os.environ) -> str:
    """What Spark lacks on this machine, in a sentence; empty if nothing."""
    home = environment.get("JAVA_HOME", "")
    java = home and (Path(home) / "bin" / "java").exists()
    if not java and shutil.which("java", path=environment.get("PATH")) is None:
        return "there is no Java: no `java` on PATH and none in JAVA_HOME; Spark 4 needs Java 17 or 21"
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed: pip install 'plimsoll-operator[spark]'"
    if not _is_found("google.protobuf"):
        return "the Python package protobuf is not installed, which Spark's stateful streams speak in"
    return ""


def _is_found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it would be in
        return False


def live_command(launch: SparkLaunch, root: Path, python: str = sys.executable) -> list[str]:
    """Start this for snapshots below `root`. It ends with 2 if another one works there, and with 3 without Java."""
    return [python, "-m", "plimsoll.sparkjobs", *live_arguments(launch, str(root))]


def job_environment(outer: Mapping[str, str], python: str = sys.executable) -> dict[str, str]:
    """What of the outer environment a job needs; settings of a Spark that is installed elsewhere are not passed on."""
    kept = {name: outer[name] for name in PASSED_VARIABLES if name in outer}
    return {
        **kept,
        "TZ": "UTC",
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
