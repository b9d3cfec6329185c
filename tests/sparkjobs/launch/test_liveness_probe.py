"""The probe of a live job in a collector's pod fails only when the job is dead."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest
from tests.sparkjobs.launch.test_live_job_health import ONE

from plimsoll.sparkjobs.launch.live_job_health import DEAD_SECONDS
from plimsoll.sparkjobs.launch.liveness_probe import main
from plimsoll.telemetry.schema import LATEST
from plimsoll.telemetry.snapshot import encode_snapshot


@pytest.mark.parametrize(("age", "code"), [(5.0, 0), (DEAD_SECONDS - 5, 0), (DEAD_SECONDS + 5, 1)])
def test_the_exit_code_depends_on_the_age_of_the_snapshot(age: float, code: int, tmp_path: Path):
    end = time.time_ns() // 1000 - round(age * 1e6)
    (tmp_path / LATEST).parent.mkdir(parents=True)
    (tmp_path / LATEST).write_bytes(encode_snapshot(msgspec.structs.replace(ONE, window_end_us=end)))
    assert main([str(tmp_path)]) == code


def test_a_missing_or_damaged_snapshot_is_dead(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(tmp_path)]) == 1
    assert LATEST not in capsys.readouterr().err
    (tmp_path / LATEST).parent.mkdir(parents=True)
    (tmp_path / LATEST).write_bytes(b"{}")
    assert main([str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert f"{tmp_path / LATEST}: schema None" in said
    assert "never written" in said
