"""Importing this skips the importing test module where Spark cannot run, and says what is missing: a Java, mostly."""

from __future__ import annotations

import importlib.util
import shutil

import pytest


def lack() -> str:
    """What keeps Spark from running here; empty if nothing."""
    if shutil.which("java") is None:
        return "needs Spark, and there is no Java on PATH that it could run on"
    if importlib.util.find_spec("pyspark") is None:
        return "needs Spark, and pyspark is not installed: `make setup-spark` does that where there is a Java"
    return ""


if why := lack():
    pytest.skip(why, allow_module_level=True)
