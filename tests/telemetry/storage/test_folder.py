"""Files appear whole or not at all; a full disk is counted and does no harm; only old files are removed."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.telemetry.rows import NOW_US, expected_brokers, row

from plimsoll.telemetry.schema import INCOMING, LATEST, LOADS, SESSIONS, ExpectedBrokers
from plimsoll.telemetry.storage import parquet
from plimsoll.telemetry.storage.folder import TelemetryFolder

VALUES = [tuple(row("e1", seq)[name] for name in LOADS.names) for seq in range(1, 4)]


def files(root: Path, collector: str = "c0") -> TelemetryFolder:
    made = TelemetryFolder(root, collector)
    made.prepare()
    return made


def names(root: Path, folder: str = INCOMING) -> list[str]:
    return sorted(path.name for path in (root / folder).iterdir())


def test_a_file_is_named_by_collector_times_and_number(tmp_path: Path):
    written = files(tmp_path)
    assert written.write(INCOMING, LOADS, VALUES, NOW_US, NOW_US + 9_999_999)
    assert written.write(INCOMING, LOADS, VALUES, NOW_US, NOW_US)
    begin = NOW_US // 1000
    first, second = f"c0-{begin}-{begin + 9999}-1.parquet", f"c0-{begin}-{begin}-2.parquet"
    assert set(names(tmp_path)) == {first, second}
    assert (written.written, written.rows) == (2, 6)
    assert written.size_bytes == sum(path.stat().st_size for path in (tmp_path / INCOMING).iterdir())
    assert [each["seq"] for each in parquet.read_rows(tmp_path / INCOMING / first, LOADS)] == [1, 2, 3]


@pytest.mark.parametrize("trouble", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_write_that_fails_leaves_nothing_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: int):
    written = files(tmp_path)

    def fail(descriptor: int) -> None:
        raise OSError(trouble, os.strerror(trouble))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        assert not written.write(INCOMING, LOADS, VALUES, NOW_US, NOW_US)
    assert names(tmp_path) == []
    assert (written.failures, written.written, written.rows) == (1, 0, 0)
    assert os.strerror(trouble) in written.fault
    assert written.write(INCOMING, LOADS, VALUES, NOW_US, NOW_US)
    assert written.fault == ""


FILL = """
import sys
from pathlib import Path
from tests.telemetry.rows import NOW_US, expected_brokers, row
from plimsoll.telemetry.storage.folder import TelemetryFolder
from plimsoll.telemetry.schema import INCOMING, LOADS
root = Path(sys.argv[1])
files = TelemetryFolder(root, "c0")
files.prepare()
values = [tuple(row(f"broker-{i}", i + 1, cpu_ratio=i / 7)[name] for name in LOADS.names) for i in range(500)]
results = [files.write(INCOMING, LOADS, values, NOW_US, NOW_US) for _ in range(60)]
assert results[0] and not results[-1], results
assert "No space left" in files.fault, files.fault
assert files.failures == results.count(False)
names = [path.name for path in (root / INCOMING).iterdir()]
assert len(names) == results.count(True) and not any(name.startswith(".") for name in names), names
next((root / INCOMING).iterdir()).unlink()
assert files.write(INCOMING, LOADS, values, NOW_US, NOW_US) and not files.fault
print("full after", results.count(True))
"""


def test_a_disk_that_is_really_full(tmp_path: Path):
    """A file system of 256 KiB in a namespace of its own, which needs no root."""
    unshare = shutil.which("unshare")
    mount = f"mount -t tmpfs -o size=256k none {tmp_path}"
    if unshare is None or subprocess.run([unshare, "-rm", "sh", "-c", mount], capture_output=True).returncode:
        pytest.skip("this system lets only root make a small file system (unshare -rm mount -t tmpfs)")
    script = tmp_path.parent / f"{tmp_path.name}-fill.py"
    script.write_text(FILL)
    ran = subprocess.run(
        [unshare, "-rm", "sh", "-c", f"{mount} && {sys.executable} {script} {tmp_path}"],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "full after" in ran.stdout


def test_what_an_earlier_start_had_begun_is_cleared_away(tmp_path: Path):
    files(tmp_path)
    for name in (".c0-1-2-3.parquet.partial", ".c1-1-2-3.parquet.partial"):
        (tmp_path / INCOMING / name).write_bytes(b"x")
    files(tmp_path)
    assert names(tmp_path) == [".c1-1-2-3.parquet.partial"], "the other one may be being written"


def test_old_files_of_any_collector_go_and_others_stay(tmp_path: Path):
    written = files(tmp_path)
    for name in ("c0-1-1000-1", "c9-1-999-1", "c0-1-1001-2", "a-b-1-5-1"):
        (tmp_path / INCOMING / f"{name}.parquet").write_bytes(b"")
    for name in ("notes.txt", ".c1-1-5-1.parquet.partial"):
        (tmp_path / INCOMING / name).write_bytes(b"")
    (tmp_path / SESSIONS / "c0-1-5-1.parquet").write_bytes(b"")
    assert written.remove_before(1_000_000) == 3
    assert names(tmp_path) == [".c1-1-5-1.parquet.partial", "c0-1-1000-1.parquet", "c0-1-1001-2.parquet", "notes.txt"]
    assert names(tmp_path, SESSIONS) == []
    assert written.removed == 3


def test_recent_files_are_those_of_this_collector(tmp_path: Path):
    written = files(tmp_path, "c-1")
    for name in ("c-1-1-2000-1", "c-1-1-1000-2", "c-1-1-999-3", "c-1-1-1-3000-1", "c-1500-3000-1"):
        (tmp_path / INCOMING / f"{name}.parquet").write_bytes(b"")
    assert [each.path.stem for each in written.recent_files(INCOMING, 1_000_000)] == ["c-1-1-1000-2", "c-1-1-2000-1"]


def test_the_expected_brokers_are_written_for_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    written = files(tmp_path)
    said = ExpectedBrokers(schema=1, fleet="f", written_us=NOW_US, clusters={"c": ["h", "e1"]})
    assert written.write_expected(said)
    assert expected_brokers(tmp_path) == said

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", fail)
    assert not written.write_expected(said)
    assert "No space left" in written.fault
    assert expected_brokers(tmp_path) == said


def test_what_spark_wrote_last_is_found(tmp_path: Path):
    written = files(tmp_path)
    assert written.latest() is None
    (tmp_path / LATEST).write_bytes(b"{}")
    assert written.latest() == b"{}"
