"""The live job: its statistics equal the oracle's in every batch, and every row is counted once, through any crash."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.sparkjobs import needs  # noqa: F401  # skips this module by name where Spark cannot run
from tests.sparkjobs.streaming.test_report_buffer import packed_rows, pointed
from tests.sparkjobs.traces import FLEET, disturbed, expect, now_us, read_latest, trace, usable, write_files

from plimsoll.sparkjobs.__main__ import main as run_job
from plimsoll.sparkjobs.jobs import live, oracle
from plimsoll.sparkjobs.jobs.live import ClusterProcessor, LiveJobSettings, run_query, snapshot_of
from plimsoll.sparkjobs.launch.local_process import job_environment, live_command
from plimsoll.sparkjobs.launch.spec import SparkLaunch
from plimsoll.sparkjobs.streaming import checkpoints, snapshot_files
from plimsoll.sparkjobs.streaming.report_buffer import ClusterSummary
from plimsoll.telemetry.schema import LATEST
from plimsoll.telemetry.snapshot import (
    SnapshotError,
    SnapshotRequirements,
    TelemetrySnapshot,
    decode_snapshot,
    decode_usable,
    encode_snapshot,
)
from plimsoll.telemetry.storage.set_aside import files_set_aside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXPECTED = {"c0": ["c0-e0", "c0-e1", "c0-head", "c0-gone"], "c1": ["c1-e0"], "c9": ["silent"]}


def settings(root: Path) -> LiveJobSettings:
    return LiveJobSettings(root, FLEET, lag_seconds=2.0, files_per_batch=2)


def run_once(spark: SparkSession, root: Path) -> None:
    """Read the existing files."""
    run_query(spark, settings(root), available_now=True)


def batches(root: Path) -> list[TelemetrySnapshot]:
    found = [decode_snapshot(path.read_bytes()) for path in (root / snapshot_files.LIVE).iterdir()]
    return sorted(found, key=lambda snapshot: snapshot.batch)


def assert_equals_oracle(spark: SparkSession, root: Path, snapshot: TelemetrySnapshot) -> None:
    files = checkpoints.files_until(settings(root).checkpoint, snapshot.batch)
    found = oracle.compute_snapshot(spark, root, FLEET, snapshot.window_end_us, files)
    assert list(oracle.snapshot_differences(found.clusters, snapshot.clusters)) == []
    assert (found.seen, found.expected) == (snapshot.seen, snapshot.expected)


@pytest.mark.sweep
@pytest.mark.timeout(1200)
def test_live_equals_the_oracle_in_every_batch_and_counts_every_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # Rows from before the longest window until well after now, so that windows are full however long a batch takes.
    rows = disturbed(1, trace(1, now_us() + 150_000_000, seconds=480))
    files = write_files(tmp_path, rows, 4)
    expect(tmp_path, EXPECTED)
    run_once(spark, tmp_path)
    first, second = batches(tmp_path)
    assert_equals_oracle(spark, tmp_path, first)
    assert_equals_oracle(spark, tmp_path, second)
    assert (first.counts.unaccounted, second.counts.unaccounted) == (0, 0)
    assert second.counts.rows_in == len(rows)
    assert min(second.counts.counted, second.counts.duplicate, second.counts.late, second.counts.invalid) > 0
    assert second.clusters["c0"].missing == ["c0-gone"]
    assert second.clusters["c9"].missing == ["silent"]

    # Two files arrive again under other names: their rows are copies, or have become too old.
    for path in files[2:]:
        shutil.copy(path, path.with_name(f"again-{path.name}"))
    run_once(spark, tmp_path)
    (third,) = batches(tmp_path)[2:]
    assert third.counts.rows_in - second.counts.rows_in == len(rows) - 2 * -(-len(rows) // 4)
    assert third.counts.counted == second.counts.counted
    assert third.counts.unaccounted == 0

    # The driver dies between writing a batch and committing it: the next driver runs the batch again.
    published: list[int] = []

    def dies(root: Path, snapshot: TelemetrySnapshot) -> bool:
        snapshot_files.publish_snapshot(root, snapshot)
        published.append(snapshot.batch)
        raise OSError("the driver dies here")

    more = trace(2, now_us(), seconds=20)
    write_files(tmp_path, more, 1, "late")
    with monkeypatch.context() as context:
        context.setattr(live, "publish_snapshot", dies)
        with pytest.raises(Exception, match="the driver dies here"):
            run_once(spark, tmp_path)
    half_done = read_latest(tmp_path)
    run_once(spark, tmp_path)
    done = read_latest(tmp_path)
    assert half_done is not None
    assert done is not None
    assert (done.order, done.run_us) == (half_done.order, first.run_us)
    assert published == [done.batch]
    assert msgspec.structs.replace(done, written_us=0) == msgspec.structs.replace(half_done, written_us=0)
    assert done.counts.rows_in == third.counts.rows_in + len(more)
    assert done.counts.unaccounted == 0
    assert_equals_oracle(spark, tmp_path, done)


@pytest.mark.sweep
@pytest.mark.timeout(1200)
def test_files_that_cannot_be_read_are_set_aside_and_all_others_are_counted(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    rows = disturbed(3, trace(3, now_us() + 60_000_000, seconds=60))
    files = write_files(tmp_path, rows, 3)
    expect(tmp_path, EXPECTED)
    half = files[0].with_name("c0-0000-half.parquet")
    half.write_bytes(files[0].read_bytes()[:2000])
    files[2].with_name("c0-0009-empty.parquet").touch()
    run_once(spark, tmp_path)
    last = batches(tmp_path)[-1]
    assert (last.counts.rows_in, last.counts.unaccounted) == (len(rows), 0)
    assert [each.file for each in files_set_aside(tmp_path)] == ["c0-0000-half.parquet", "c0-0009-empty.parquet"]
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert str(half) in told[0]
    assert "not Parquet, or damaged" in told[0]
    # A later start reads on; the batches named the files that are gone.
    more = trace(4, now_us(), seconds=20)
    write_files(tmp_path, more, 1, "more")
    run_once(spark, tmp_path)
    assert batches(tmp_path)[-1].counts.rows_in == len(rows) + len(more)


@pytest.mark.sweep
@pytest.mark.timeout(1200)
def test_a_driver_that_has_lost_its_checkpoint_publishes_and_commits_nothing(spark: SparkSession, tmp_path: Path):
    write_files(tmp_path, trace(5, now_us(), seconds=20), 1)
    checkpoint = settings(tmp_path).checkpoint
    frozen = checkpoints.take_checkpoint(checkpoint, 1)
    owner = checkpoints.take_checkpoint(checkpoint, 2)
    with pytest.raises(checkpoints.CheckpointLostError, match="now belongs to another driver"):
        run_query(spark, settings(tmp_path), available_now=True, check_owner=frozen.check)
    assert read_latest(tmp_path) is None
    assert checkpoints.committed_files(checkpoint) == []
    run_query(spark, settings(tmp_path), available_now=True, check_owner=owner.check)
    assert len(checkpoints.committed_files(checkpoint)) == 1


def wait_for(condition: Callable[[], Any], seconds: float, what: str, process: subprocess.Popen[str]) -> Any:
    """Poll until the condition has a value."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        assert process.poll() is None, f"the driver ended with {process.returncode} while waiting for {what}"
        time.sleep(0.1)
    raise AssertionError(f"waited {seconds} s for {what}")


def count_of(root: Path) -> int:
    latest = read_latest(root)
    return latest.counts.rows_in if latest is not None else 0


@pytest.mark.sweep
@pytest.mark.timeout(1200)
def test_after_an_hour_without_spark_no_row_is_lost_and_stale_or_incomplete_snapshots_are_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def read(seconds: float) -> str:
        """Why a reader refuses the latest snapshot at that time; empty if it is used."""
        latest = read_latest(tmp_path)
        assert latest is not None
        try:
            decode_usable(
                encode_snapshot(latest),
                SnapshotRequirements(FLEET, after=before.order),
                int(latest.written_us + seconds * 1e6),
            )
        except SnapshotError as error:
            return error.fault
        return ""

    all_brokers = {f"c{cluster}": [f"c{cluster}-e{edge}" for edge in range(2)] for cluster in range(2)}
    expect(tmp_path, all_brokers)
    earlier = trace(7, now_us() - 3_600_000_000, edges=2, seconds=60)
    write_files(tmp_path, earlier, 1)
    run_once(spark, tmp_path)
    found = read_latest(tmp_path)
    assert found is not None
    # Make the snapshot an hour old.
    hour_us = 3_600_000_000
    before = msgspec.structs.replace(
        found, window_end_us=found.window_end_us - hour_us, written_us=found.written_us - hour_us
    )
    snapshot_files.write_snapshot(tmp_path / LATEST, before)
    assert read(3600.0) == "Stale"

    published: list[tuple[tuple[int, int], str]] = []

    def watched(root: Path, snapshot: TelemetrySnapshot) -> bool:
        is_moved = snapshot_files.publish_snapshot(root, snapshot)
        published.append((snapshot.order, read(0.0)))
        return is_moved

    monkeypatch.setattr(live, "publish_snapshot", watched)
    # Collectors have kept writing; the last file ends well after now, so that it is fresh however long reading takes.
    rows = disturbed(8, trace(8, now_us() + 150_000_000, edges=2, seconds=3750, every=15))
    write_files(tmp_path, rows, 24, "meanwhile")
    run_query(spark, dataclasses.replace(settings(tmp_path), files_per_batch=8), available_now=True)
    orders = [order for order, _ in published]
    assert orders == sorted(orders)
    assert orders[0] > before.order
    assert [fault for _, fault in published] == ["Incomplete"] * (len(published) - 1) + [""]
    assert len(published) == 3
    last = read_latest(tmp_path)
    assert last is not None
    assert (last.counts.rows_in, last.counts.unaccounted) == (len(earlier) + len(rows), 0)
    keys = {(row["broker"], row["epoch"], row["seq"]) for row in [*earlier, *rows] if usable(row)}
    assert last.counts.counted + last.counts.late >= len(keys)
    assert last.counts.late > len(keys) / 2
    assert_equals_oracle(spark, tmp_path, last)


@pytest.mark.sweep  # two more starts of Spark; the first test has a driver that dies in the middle of a batch
@pytest.mark.timeout(1200)
def test_a_killed_driver_continues_from_its_checkpoint_and_counts_each_row_once(tmp_path: Path):
    launch = SparkLaunch(fleet=FLEET, namespace="", image="", trigger_seconds=1, lag_seconds=2)
    command, outer = live_command(launch, tmp_path), job_environment(os.environ)

    def driver() -> subprocess.Popen[str]:
        # In a session of its own, so that its Java process is killed with it, as in a pod.
        return subprocess.Popen(
            command, env=outer, text=True, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def kill(process: subprocess.Popen[str]) -> None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    rows = disturbed(4, trace(4, now_us(), seconds=120))
    write_files(tmp_path, rows, 2)
    process = driver()
    try:
        wait_for(lambda: count_of(tmp_path) == len(rows), 110, "the first files", process)
        quiet = read_latest(tmp_path)
        assert quiet is not None
        wait_for(lambda: (read_latest(tmp_path) or quiet).batch > quiet.batch, 300.0, "silence", process)
        kill(process)
        before = read_latest(tmp_path)
        more = disturbed(5, trace(5, now_us(), seconds=60))
        write_files(tmp_path, more, 1, "meanwhile")
        process = driver()
        wait_for(
            lambda: count_of(tmp_path) >= len(rows) + len(more), 110, "the files written without a driver", process
        )
    finally:
        kill(process)
    after = read_latest(tmp_path)
    assert before is not None
    assert after is not None
    assert after.counts.rows_in == len(rows) + len(more)
    assert after.counts.unaccounted == 0
    assert after.run_us == before.run_us
    assert after.batch > before.batch


# -- the operator by itself, without Spark -----------------------------------------------------------------------------


def one_cluster(end_us: int, batches: int = 1) -> tuple[int, list[Any]]:
    """The number of rows of nearly 300 s, and the operator's input; each batch also has an invalid and a late row."""
    from pyspark.sql import Row

    rows = [pointed(row) for row in trace(6, end_us, clusters=1, edges=2) if row["at_us"] > end_us - 290_000_000]
    others = [rows[0] | {"valid": False}, rows[0] | {"late": True}]
    parts = [[*rows[start::batches], *others] for start in range(batches)]
    return len(rows), [Row(**one) for part in parts for one in packed_rows(part)]


def decoded(rows: list[Any]) -> tuple[Any, ClusterSummary]:
    (row,) = rows
    return row, msgspec.msgpack.decode(row["body"], type=ClusterSummary)


def test_a_timer_reports_silence_and_old_rows_leave_the_state():
    from pyspark.sql.streaming.tws_tester import TwsTester

    end_ms = 1_800_000_000_000
    tester = TwsTester(ClusterProcessor(lag_us=10_000_000), timeMode="ProcessingTime", outputMode="Update")
    tester.setProcessingTime(end_ms + 10_000)
    count, rows = one_cluster(end_ms * 1000)
    row, seen = decoded(tester.test("c0", rows))
    assert (row["end_us"], row["rows_in"], row["counted"]) == (end_ms * 1000, count + 2, count)
    assert (row["duplicate"], row["late"], row["invalid"]) == (0, 1, 1)
    assert seen.windows["300"].n > seen.windows["10"].n > 0
    slices = len(tester.peekMapState("slices", "c0"))
    assert slices >= 29

    row, seen = decoded(list(tester.setProcessingTime(end_ms + 75_000)))
    assert (row["rows_in"], row["counted"]) == (count + 2, count)
    assert (seen.windows["10"].n, seen.windows["60"].n, seen.seen) == (0, 0, [])
    assert seen.windows["300"].n > 0
    assert len(tester.peekMapState("slices", "c0")) < slices

    row, seen = decoded(list(tester.setProcessingTime(end_ms + 400_000)))
    assert not seen.is_present
    assert tester.peekMapState("slices", "c0") == {}
    (row,) = list(tester.setProcessingTime(end_ms + 500_000))  # and the cluster is still reported
    assert row["rows_in"] == count + 2


def test_rows_that_arrive_again_after_minutes_are_late_or_copies():
    from pyspark.sql.streaming.tws_tester import TwsTester

    end_ms = 1_800_000_000_000
    tester = TwsTester(ClusterProcessor(lag_us=0), timeMode="ProcessingTime", outputMode="Update")
    count, rows = one_cluster(end_ms * 1000)
    tester.setProcessingTime(end_ms)
    tester.test("c0", rows)
    tester.setProcessingTime(end_ms + 150_000)
    row, _ = decoded(tester.test("c0", rows))
    assert (row["rows_in"], row["counted"], row["invalid"]) == (2 * count + 4, count, 2)
    assert row["duplicate"] > 0
    assert row["late"] > 2
    assert row["duplicate"] + row["late"] == count + 2


def test_a_snapshot_is_of_one_moment_and_counts_a_cluster_once():
    from pyspark.sql.streaming.tws_tester import TwsTester

    end_ms = 1_800_000_000_000
    tester = TwsTester(ClusterProcessor(lag_us=0), timeMode="ProcessingTime", outputMode="Update")
    tester.setProcessingTime(end_ms)
    count, rows = one_cluster(end_ms * 1000, batches=2)
    one = tester.test("c0", rows[:1])
    two = tester.test("c0", rows[1:])
    snapshot = snapshot_of([*two, *one], {"c0": ["c0-e0"]}, FLEET, (1, 2), 3)
    assert (snapshot.counts.rows_in, snapshot.counts.counted) == (count + 4, count)
    assert (snapshot.seen, snapshot.expected, snapshot.order) == (1, 1, (1, 2))
    tester.setProcessingTime(end_ms + 1)
    with pytest.raises(ValueError, match="2 moments"):
        snapshot_of([*one, *tester.test("c0", [])], {}, FLEET, (1, 2), 3)


def test_the_command_refuses_a_checkpoint_that_is_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    root = LiveJobSettings(tmp_path, FLEET)
    program = (
        "import sys, pathlib; from plimsoll.sparkjobs.streaming.checkpoints import checkpoint_lock\n"
        "with checkpoint_lock(pathlib.Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(root.checkpoint)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert run_job(["live", str(tmp_path), "--fleet", FLEET]) == 2
    finally:
        holder.kill()
        holder.communicate()
    assert "another live job works on" in capsys.readouterr().err
