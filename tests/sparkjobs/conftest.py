"""One small Spark for all tests of jobs; without Java they are skipped, and say that it is Java that they lack."""

from __future__ import annotations

import importlib.util
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent


def lack() -> str:
    """What keeps Spark from running here; empty if nothing."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed: `make setup-spark` does that where there is a Java"
    if shutil.which("java") is None:
        return "there is no Java on PATH, which Spark runs on"
    return ""


collect_ignore_glob: list[str] = []


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    if why := lack():
        pytest.skip(why)
    from plimsoll.sparkjobs.session import make_session  # noqa: PLC0415

    with warnings.catch_warnings():
        # Spark closes sockets and pipes of its gateway when they are collected, not before.
        warnings.simplefilter("ignore", ResourceWarning)
        session = make_session("plimsoll-tests", {"spark.sql.streaming.pollingDelay": "20ms"})
        yield session
        session.stop()
