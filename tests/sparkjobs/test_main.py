"""One door to all jobs."""

from __future__ import annotations

import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.sparkjobs.__main__ import JOBS, main
from plimsoll.sparkjobs.jobs import live
from plimsoll.sparkjobs.spark_session import SparkUnavailableError


def test_a_job_that_does_not_exist_is_told_those_that_do(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 2
    assert main(["dance"]) == 2
    assert ", ".join(JOBS) in capsys.readouterr().err


@pytest.mark.parametrize("job", JOBS)
def test_every_job_says_how_it_is_used(job: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit, match="0"):
        main([job, "--help"])
    assert f"python -m plimsoll.sparkjobs {job}" in capsys.readouterr().out


def test_without_spark_a_job_ends_with_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def fails(_: list[str]) -> int:
        raise SparkUnavailableError("there is no Java")

    monkeypatch.setattr(live, "main", fails)
    assert main(["live"]) == 3
    assert capsys.readouterr().err == "there is no Java\n"
