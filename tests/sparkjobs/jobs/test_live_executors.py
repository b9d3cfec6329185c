"""Executors killed in the middle of a batch: every row is counted once, and the state stays complete."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run
from tests.sparkjobs.streaming.test_report_buffer import first_copies
from tests.sparkjobs.traces import FLEET, disturbed, expect, now_us, read_latest, trace, usable, write_files

from plimsoll.sparkjobs.jobs.live import LiveJobSettings
from plimsoll.sparkjobs.launch.local_process import job_environment
from plimsoll.sparkjobs.streaming import snapshot_files
from plimsoll.telemetry.fold import ReportPoint, aggregate_cluster
from plimsoll.telemetry.snapshot import SEEN_SECONDS, WINDOWS_SECONDS, TelemetrySnapshot, decode_snapshot

JOB = Path(__file__).parents[3] / "sparkjobs" / "job.py"
EXPECTED = {f"c{number}": [f"c{number}-e0", f"c{number}-head"] for number in range(4)}


@contextmanager
def cluster(root: Path, place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A live job with two executors as processes; the exit ends all of its processes."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    home = place / "spark"  # the same Spark in a folder of the test, by which its processes are found
    home.mkdir()
    for path in Path(found.origin).parent.iterdir():
        (home / path.name).symlink_to(path)
    settings = {
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.executor.memory": "512m",
        "spark.driver.memory": "512m", "spark.log.level": "ERROR",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }  # fmt: skip
    command = [str(home / "bin" / "spark-submit"), "--master", "local-cluster[2,1,512]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += [str(JOB), "live", str(root), "--fleet", FLEET, "--trigger", "1", "--lag", "2"]
    outer = job_environment(os.environ) | {"SPARK_HOME": str(home), "SPARK_LOCAL_DIRS": str(place / "local")}
    with (place / "output").open("wb") as output:
        process = subprocess.Popen(command, env=outer, start_new_session=True, stdout=output, stderr=output)
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pid in executors(home):  # Spark may start them in process groups of their own
            os.kill(pid, signal.SIGKILL)


def executors(home: Path) -> list[int]:
    """The executors of this Spark, oldest first."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            words = path.read_bytes().decode().split("\0")
            if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in words and str(home) in " ".join(words):
                found.append(int(path.parent.name))
    return sorted(found)


def wait_for(condition: Callable[[], Any], seconds: float, what: str, place: Path) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.005)
    raise AssertionError(f"waited {seconds} s for {what}: {(place / 'output').read_text()[-3000:]}")


def running(root: Path) -> int | None:
    """The batch that has begun and is not committed."""
    numbers = []
    for name in ("offsets", "commits"):
        folder = LiveJobSettings(root, FLEET).checkpoint / name
        numbers.append(max((int(path.name) for path in folder.glob("[0-9]*")), default=-1))
    begun, over = numbers
    return begun if begun > over else None


def wait_for_rows(root: Path, rows: int, seconds: float, place: Path) -> None:
    wait_for(lambda: count_of(root) == rows, seconds, f"{rows} rows", place)


def latest(root: Path) -> TelemetrySnapshot | None:
    return read_latest(root)


def count_of(root: Path) -> int:
    found = latest(root)
    return found.counts.rows_in if found is not None else 0


@pytest.mark.sweep  # a master, workers and a driver as processes; test_live.py asserts the same for a killed driver
@pytest.mark.timeout(1800)
def test_executors_killed_in_the_middle_of_a_batch_lose_and_repeat_no_rows(tmp_path: Path):
    root, place = tmp_path / "data", tmp_path / "spark"
    place.mkdir()
    # Rows from before the longest window until well after now, so that windows are full however long a batch takes.
    rows = disturbed(1, trace(1, now_us() + 300_000_000, clusters=4, seconds=640))
    parts = [rows[start::4] for start in range(4)]
    expect(root, EXPECTED)
    write_files(root, parts[0], 2, "first")
    sent, struck = len(parts[0]), 0
    with cluster(root, place) as driver:
        home = place / "spark"
        wait_for_rows(root, sent, 300, place)
        for number, part in enumerate(parts[1:]):
            before = wait_for(lambda: len(found := executors(home)) == 2 and found, 300.0, "two executors", place)
            write_files(root, part, 3, f"more-{number}")
            batch = wait_for(lambda: running(root), 300.0, "a batch", place)
            os.kill(before[number % 2], signal.SIGKILL)
            struck += running(root) == batch  # otherwise it was over before the executor was killed
            sent += len(part)
            wait_for_rows(root, sent, 180, place)
            assert driver.poll() is None
        last = latest(root)
    assert struck, "no batch was running when an executor was killed"
    assert last is not None
    assert last.counts.rows_in == sent == len(rows)
    counts, good = last.counts, [row for row in rows if usable(row)]
    assert (counts.unaccounted, counts.invalid) == (0, len(rows) - len(good))
    assert counts.counted + counts.late >= len(first_copies(good)) >= counts.counted > counts.late > 0
    for name, cluster_of in last.clusters.items():
        points = [ReportPoint.of(row) for row in first_copies(good) if row["cluster"] == name]
        wanted = aggregate_cluster(points, EXPECTED[name], last.window_end_us, WINDOWS_SECONDS, SEEN_SECONDS)
        assert msgspec.to_builtins(cluster_of) == msgspec.to_builtins(wanted)
    orders = [decode_snapshot(path.read_bytes()).order for path in (root / snapshot_files.LIVE).iterdir()]
    assert len({run for run, _ in orders}) == 1, "the driver was not killed, so its run must not change"
