"""Which of two drivers has the role, and how a standby waits for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run

from plimsoll.channels import standby
from plimsoll.channels.standby import driver_role

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def never() -> bool:
    return False


def nothing() -> None: ...


def unwanted() -> None:
    raise AssertionError("it does not wait")


def test_without_a_file_or_another_driver_it_has_the_role_at_once(tmp_path: Path):
    for file in ("", str(tmp_path / "role")):
        with driver_role(file, never, unwanted, unwanted, lambda seconds: unwanted()) as has_role:
            assert has_role


def test_a_standby_is_warm_before_it_waits_and_has_the_role_once_the_other_has_ended(tmp_path: Path):
    told: list[str] = []
    waits = 0

    def wait(seconds: float) -> None:
        nonlocal waits
        waits += 1
        if waits == 2 * round(standby.CHECK_SECONDS / standby.WAIT_SECONDS):
            told.append("the other ends")
            first.__exit__(None, None, None)

    first = driver_role(str(tmp_path / "role"), never, unwanted, unwanted)
    assert first.__enter__()
    second = driver_role(str(tmp_path / "role"), never, lambda: told.append("warm"), lambda: told.append("check"), wait)
    with second as has_role:
        assert has_role
        assert told == ["warm", "check", "the other ends", "check"]
        with driver_role(str(tmp_path / "role"), lambda: True, nothing, unwanted, wait) as third:
            assert not third, "the role is taken, and it was stopped"


def test_a_standby_whose_spark_has_ended_ends(tmp_path: Path):
    def fail() -> None:
        raise ConnectionRefusedError

    with driver_role(str(tmp_path / "role"), never, unwanted, unwanted) as has_role:
        assert has_role
        waiting = driver_role(str(tmp_path / "role"), never, nothing, fail, lambda seconds: None)
        with pytest.raises(ConnectionRefusedError), waiting:
            pass


@pytest.mark.slow
def test_spark_is_warmed_up_by_a_stream_that_ends(spark: SparkSession):
    standby.warm_up(spark)
    assert not spark.streams.active
    standby.check_java(spark)
