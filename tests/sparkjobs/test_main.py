"""The entry point of all jobs."""

from __future__ import annotations

import pytest
from pyspark.errors import StreamingQueryException
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.sparkjobs.__main__ import JOBS, main
from plimsoll.sparkjobs.jobs import live
from plimsoll.sparkjobs.spark_session import SparkUnavailableError
from plimsoll.sparkjobs.tables import JobTableError


def test_an_unknown_job_is_answered_with_a_list_of_jobs(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 2
    assert main(["dance"]) == 2
    assert ", ".join(JOBS) in capsys.readouterr().err


@pytest.mark.parametrize("job", JOBS)
def test_every_job_has_a_help_text(job: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="0"):
        main([job, "--help"])
    assert f"python -m plimsoll.sparkjobs {job}" in capsys.readouterr().out


def test_without_spark_a_job_exits_with_3_and_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fails(_: list[str]) -> int:
        raise SparkUnavailableError("there is no Java")

    monkeypatch.setattr(live, "main", fails)
    assert main(["live"]) == 3
    assert capsys.readouterr().err == "there is no Java\n"


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (JobTableError("there is no table at /x: write it"), 2, "live: there is no table at /x: write it"),
        (FileNotFoundError(2, "No such file or directory", "/x"), 4, "live: /x: No such file or directory"),
        (StreamingQueryException("[CANNOT_LOAD_STATE_STORE] broken\n\tat org.X"), 4, "live: [CANNOT_LOAD_STATE_STORE]"),
    ],
)
def test_failures_are_one_line_unless_traces_are_wanted(
    error: Exception, code: int, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fails(_: list[str]) -> int:
        raise error

    monkeypatch.setattr(live, "main", fails)
    assert main(["live"]) == code
    told = capsys.readouterr().err
    assert told.startswith(line)
    assert told.count("\n") == 1
    if code == 4:
        monkeypatch.setenv("PLIMSOLL_TRACE", "1")
        with pytest.raises(type(error)):
            main(["live"])
