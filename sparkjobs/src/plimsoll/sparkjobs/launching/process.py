"""Jobs as processes beside a fleet of processes: a command line and its environment."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from plimsoll.sparkjobs.launching.values import Launch, live_arguments

PASSED_ON = ("PATH", "HOME", "JAVA_HOME", "LANG", "PYTHONPATH", "TMPDIR")


def live_command(launch: Launch, root: Path, python: str = sys.executable) -> list[str]:
    """Start this for snapshots below `root`. It ends with 2 if another one works there, and with 3 without Java."""
    return [python, "-m", "plimsoll.sparkjobs", *live_arguments(launch, str(root))]


def job_command(job: str, arguments: list[str], python: str = sys.executable) -> list[str]:
    """Start this for a job that ends."""
    return [python, "-m", "plimsoll.sparkjobs", job, *arguments]


def environment(outer: Mapping[str, str], python: str = sys.executable) -> dict[str, str]:
    """What of the outer environment a job needs; settings of a Spark that is installed elsewhere are not passed on."""
    kept = {name: outer[name] for name in PASSED_ON if name in outer}
    return {
        **kept,
        "TZ": "UTC",
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
