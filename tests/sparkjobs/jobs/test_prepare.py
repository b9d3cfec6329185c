"""The archive of Spark's classes: made once, whole, and used by a later job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.sparkjobs import lean_home
from plimsoll.sparkjobs.class_archive import ARCHIVE_VARIABLE
from plimsoll.sparkjobs.job_errors import JobInputError
from plimsoll.sparkjobs.jobs import prepare

COMMAND = [sys.executable, "-m", "plimsoll.sparkjobs", "prepare"]


def test_without_a_place_it_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(ARCHIVE_VARIABLE, "")
    with pytest.raises(JobInputError, match="no archive is wanted"):
        prepare.main([])


def test_an_archive_of_another_class_path_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.jsa"
    made: list[Path] = []
    path.touch()
    monkeypatch.setenv(ARCHIVE_VARIABLE, str(path))
    monkeypatch.delenv(lean_home.HOME_VARIABLE, raising=False)
    monkeypatch.setattr(prepare, "make_archive", made.append)
    assert prepare.main([]) == 0
    assert made == [path]
    assert prepare.main([]) == 0
    assert made == [path], "both are there"


def test_an_archive_that_is_there_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "a.jsa"
    path.write_bytes(bytes(3_000_000))
    monkeypatch.setenv(ARCHIVE_VARIABLE, str(path))
    monkeypatch.delenv(lean_home.HOME_VARIABLE, raising=False)
    assert prepare.prepare_home(tmp_path / "a.home")
    assert prepare.main([]) == 0
    assert capsys.readouterr().out == f"{path}: 3 MB\n"


@pytest.mark.sweep  # two starts of Spark and a minute of Java's work, for what only makes jobs faster
@pytest.mark.timeout(1800)
def test_an_archive_is_made_and_a_job_runs_from_it(tmp_path: Path):
    path = tmp_path / "deep" / "a.jsa"
    environment = {**os.environ, ARCHIVE_VARIABLE: str(path)}
    environment.pop(lean_home.HOME_VARIABLE, None)
    subprocess.run(COMMAND, env=environment, check=True)
    assert sorted(each.name for each in path.parent.iterdir()) == ["a.home", "a.jsa"]
    assert path.stat().st_size > 50_000_000
    program = (
        "from plimsoll.sparkjobs.spark_session import make_spark_session\n"
        "with make_spark_session('x') as spark:\n"
        "    print(spark.conf.get('spark.driver.extraJavaOptions'), spark.range(3).count())"
    )
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    assert f"-XX:SharedArchiveFile={path}" in done.stdout
    assert done.stdout.split()[-1] == "3"
