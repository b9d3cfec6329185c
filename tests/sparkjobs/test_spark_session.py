"""The settings of a Spark session, and the error where Spark cannot run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.sparkjobs.launch.local_process import missing_requirement
from plimsoll.sparkjobs.spark_session import (
    BASE_SETTINGS,
    LOCAL_MASTER,
    SparkUnavailableError,
    is_submitted,
    make_spark_session,
    session_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_missing_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert missing_requirement() == ""
    assert "Java" in missing_requirement({"PATH": str(tmp_path)})
    assert "Java" in missing_requirement({"PATH": str(tmp_path), "JAVA_HOME": str(tmp_path)})
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    assert missing_requirement({"PATH": "", "JAVA_HOME": str(tmp_path)}) == ""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SparkUnavailableError, match=r"plimsoll-x cannot start: there is no Java.*collectors' fold"):
        make_spark_session("plimsoll-x")


def test_settings_of_spark_submit_are_kept():
    assert is_submitted({"PYSPARK_GATEWAY_PORT": "1"})
    assert not is_submitted({})
    assert "spark.master" not in session_settings(True, {})
    assert session_settings(False, {})["spark.master"] == LOCAL_MASTER
    assert session_settings(True, {"spark.ui.enabled": "true"})["spark.ui.enabled"] == "true"
    assert session_settings(True, {}) == BASE_SETTINGS


def test_a_session_is_local_in_utc_and_without_a_web_page(spark: SparkSession):
    assert spark.sparkContext.master == LOCAL_MASTER
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.sql("select cast(timestamp_micros(0) as string) as at").collect()[0]["at"] == "1970-01-01 00:00:00"
