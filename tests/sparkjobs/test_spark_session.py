"""The settings of a Spark session, and the error where Spark cannot run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.sparkjobs.launch.local_process import missing_requirement
from plimsoll.sparkjobs.spark_session import (
    DEFAULT_SETTINGS,
    LOCAL_MASTER,
    REQUIRED_SETTINGS,
    SparkUnavailableError,
    is_submitted,
    make_spark_session,
    session_name,
    session_settings,
    user_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUBMIT = Path(sys.executable).with_name("spark-submit")


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


def test_settings_of_the_user_are_kept_but_for_those_that_results_depend_on():
    assert is_submitted({"PYSPARK_GATEWAY_PORT": "1"})
    assert not is_submitted({})
    assert "spark.master" not in session_settings({}, {}, submitted=True)
    assert session_settings({}, {}, submitted=True) == {**DEFAULT_SETTINGS, **REQUIRED_SETTINGS}
    assert session_settings({}, {}, submitted=False)["spark.master"] == LOCAL_MASTER
    given = {"spark.sql.shuffle.partitions": "48", "spark.master": "local[8]", "spark.sql.session.timeZone": "CET"}
    found = session_settings(given, {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "true"}, submitted=False)
    assert not {"spark.sql.shuffle.partitions", "spark.master"} & set(found)
    assert found["spark.ui.enabled"] == "true", "a job's default is stronger than that of all jobs"
    assert found["spark.sql.session.timeZone"] == "UTC"


def test_the_settings_of_a_local_job_are_those_of_its_files_and_variables(tmp_path: Path):
    (tmp_path / "spark-defaults.conf").write_text(
        "# comment\nspark.driver.memory  4g\nspark.sql.shuffle.partitions=7\n\nalone\n"
    )
    words = "--master local[6] --conf spark.driver.memory=5g -c spark.x='a b' --conf nothing pyspark-shell"
    found = user_settings({"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": words})
    assert found == {
        "spark.driver.memory": "5g", "spark.sql.shuffle.partitions": "7", "spark.master": "local[6]", "spark.x": "a b",
    }  # fmt: skip
    assert user_settings({}) == {}


def test_options_may_be_joined_to_their_values_and_another_file_replaces_the_defaults(tmp_path: Path):
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.memory  4g\n")
    other = tmp_path / "other.conf"
    other.write_text("spark.executor.memory 2g\nspark.master local[3]\n")
    words = f"--master=local[6] --conf=spark.x=y=z --name=nightly --properties-file={other} pyspark-shell"
    found = user_settings({"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": words})
    assert found == {
        "spark.master": "local[6]", "spark.x": "y=z", "spark.app.name": "nightly", "spark.executor.memory": "2g",
    }  # fmt: skip
    assert user_settings({"PYSPARK_SUBMIT_ARGS": f"--properties-file {tmp_path / 'none'} pyspark-shell"}) == {}


def test_the_name_of_the_user_stays():
    assert session_name("plimsoll-x", {}, "/opt/job.py") == "plimsoll-x"
    assert session_name("plimsoll-x", {"spark.app.name": "job.py"}, "/opt/job.py") == "plimsoll-x"
    assert session_name("plimsoll-x", {"spark.app.name": "nightly"}, "/opt/job.py") == "nightly"


def test_only_short_jobs_run_without_the_optimising_compiler():
    options = "spark.driver.extraJavaOptions"
    assert "TieredStopAtLevel" not in session_settings({}, {}, submitted=False)[options]
    assert "-XX:TieredStopAtLevel=1" in session_settings({}, {}, submitted=False, quick=True)[options]
    assert options not in session_settings({}, {}, submitted=True, quick=True), "a cluster has its own"
    assert options not in session_settings({options: "-Xint"}, {}, submitted=False, quick=True), "nor has the user's"


@pytest.mark.sweep
@pytest.mark.timeout(1200)
def test_spark_submit_decides(tmp_path: Path):
    """A job that is started by `spark-submit` has its settings, and Plimsoll's where it has none."""
    names = ["spark.sql.shuffle.partitions", "spark.default.parallelism", "spark.sql.session.timeZone",
             "spark.sql.adaptive.enabled", "spark.app.name"]  # fmt: skip
    program = tmp_path / "job.py"
    program.write_text(
        "from plimsoll.sparkjobs.spark_session import make_spark_session\n"
        "with make_spark_session('x', {'spark.sql.shuffle.partitions': '2'}) as spark:\n"
        f"    settings = spark.sparkContext.getConf()\n"
        f"    print([settings.get(name) for name in {names!r}], spark.conf.get('spark.sql.shuffle.partitions'))\n"
    )
    done = subprocess.run(
        [str(SUBMIT), "--master", "local[1]", "--conf", "spark.sql.shuffle.partitions=31",
         "--name", "nightly", "--conf", "spark.default.parallelism=5", "--conf", "spark.sql.session.timeZone=CET",
         str(program)],
        capture_output=True, text=True, check=True, env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "['31', '5', 'UTC', 'true', 'nightly'] 31"


def test_a_session_is_local_in_utc_and_without_a_web_page(spark: SparkSession):
    assert spark.sparkContext.master == LOCAL_MASTER
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.sql("select cast(timestamp_micros(0) as string) as at").collect()[0]["at"] == "1970-01-01 00:00:00"
