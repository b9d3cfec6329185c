"""The entry point of all jobs."""

from __future__ import annotations

import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.sparkjobs.__main__ import JOBS, main
from plimsoll.sparkjobs.jobs import live
from plimsoll.sparkjobs.spark_session import SparkUnavailableError


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
