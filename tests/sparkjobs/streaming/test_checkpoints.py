"""Runs and file logs in a checkpoint, and its lock, which only one driver gets."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from plimsoll.sparkjobs.job_errors import JobInputError
from plimsoll.sparkjobs.streaming.checkpoints import (
    OWNER_FILE,
    CheckpointBusyError,
    CheckpointLostError,
    checkpoint_lock,
    committed_files,
    files_until,
    read_owner,
    run_start_us,
    take_checkpoint,
)


def test_a_run_lasts_as_long_as_its_checkpoint(tmp_path: Path):
    checkpoint = tmp_path / "checkpoints" / "live"
    assert run_start_us(checkpoint, 100) == 100
    assert run_start_us(checkpoint, 200) == 100
    (checkpoint / "plimsoll-run.json").unlink()
    assert run_start_us(checkpoint, 300) == 300


def log(folder: Path, name: str, entries: list[tuple[str, int]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"path": f"file://{path}", "timestamp": 1, "batchId": batch}) for path, batch in entries]
    (folder / name).write_text("\n".join(["v1", *lines]))


def test_the_files_of_batches_are_read_from_the_log_of_the_source_compacted_or_not(tmp_path: Path):
    source = tmp_path / "sources" / "0"
    log(source, "0.compact", [("/data/a%20b.parquet", 0), ("/data/c.parquet", 0)])
    log(source, "1", [("/data/d.parquet", 1)])
    log(source, ".2.crc", [])
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    for batch, last in ((3, 0), (4, 1)):  # there are batches without new files in between
        (offsets / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"logOffset":{last}}}')
    (offsets / "5").write_text('v1\n{"batchWatermarkMs":0}\n-')
    assert files_until(tmp_path, 3) == [Path("/data/a b.parquet"), Path("/data/c.parquet")]
    assert files_until(tmp_path, 4)[-1] == Path("/data/d.parquet")
    assert files_until(tmp_path, 5) == []
    assert committed_files(tmp_path) == []
    (tmp_path / "commits").mkdir()
    for name in ("3", ".3.crc"):
        (tmp_path / "commits" / name).touch()
    assert committed_files(tmp_path) == files_until(tmp_path, 3)
    with pytest.raises(JobInputError, match="has no usable log of batch 9"):
        files_until(tmp_path, 9)


@pytest.mark.parametrize("offset", ["NaN", "Infinity", "1e400", "1.5", '"1"', "[]", "null"])
def test_a_number_that_json_does_not_have_is_no_log(tmp_path: Path, offset: str):
    log(tmp_path / "sources" / "0", "0", [("/data/a.parquet", 0)])
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_text(f'v1\n{{}}\n{{"logOffset":{offset}}}')
    with pytest.raises(JobInputError, match="has no usable log of batch 3"):
        files_until(tmp_path, 3)
    (tmp_path / "offsets" / "3").write_text('v1\n{}\n{"logOffset":0}')
    assert files_until(tmp_path, 3) == [Path("/data/a.parquet")]
    (tmp_path / "sources" / "0" / "1").write_text(f'v1\n{{"path":"file:///b","batchId":{offset}}}')
    with pytest.raises(JobInputError, match="has no usable log of batch 3"):
        files_until(tmp_path, 3)


def test_a_second_driver_is_refused_until_the_first_has_ended(tmp_path: Path):
    program = (
        "import sys, pathlib; from plimsoll.sparkjobs.streaming.checkpoints import checkpoint_lock\n"
        "with checkpoint_lock(pathlib.Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        busy = rf"another live job works on .*process {other.pid} on"
        with pytest.raises(CheckpointBusyError, match=busy), checkpoint_lock(tmp_path):
            pass
        threading.Timer(0.3, other.kill).start()
        with checkpoint_lock(tmp_path, wait_seconds=60):  # as soon as the other has ended
            assert other.wait(10) != 0
    finally:
        other.kill()
        other.communicate()
    with checkpoint_lock(tmp_path):
        pass


def test_the_last_to_take_a_checkpoint_owns_it(tmp_path: Path):
    """Where two nodes do not share locks, or a frozen driver wakes up, only one of the two commits."""
    first = take_checkpoint(tmp_path, 5)
    first.check()
    second = take_checkpoint(tmp_path, 1_700_000_000_000_000)
    second.check()
    with pytest.raises(CheckpointLostError, match=r"another driver: process \d+ on .*, since 2023-11-14 22:13:20 UTC"):
        first.check()
    owner = read_owner(tmp_path)
    assert owner is not None
    assert owner.drivers == 2
    (tmp_path / OWNER_FILE).unlink()
    with pytest.raises(CheckpointLostError, match="no driver"):
        second.check()
    (tmp_path / OWNER_FILE).write_text("{")
    take_checkpoint(tmp_path, 5).check()
