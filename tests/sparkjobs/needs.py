"""Importing this module skips the importing test module where Spark cannot run, mostly for lack of a Java."""

from __future__ import annotations

import importlib.util
import shutil

import pytest


def lack() -> str:
    """Why Spark cannot run here; empty if it can."""
    if shutil.which("java") is None:
        return "needs Spark, and there is no Java on PATH"
    if importlib.util.find_spec("pyspark") is None:
        return "needs Spark, and pyspark is not installed: run `make setup-spark`"
    return ""


if why := lack():
    pytest.skip(why, allow_module_level=True)
