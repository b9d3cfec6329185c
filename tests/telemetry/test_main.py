"""The process: it collects, writes and serves; it follows its file; it ends in good order and reports bad input."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import msgspec
import pytest
from tests.telemetry.ingest.test_head_listener import Head, load
from tests.telemetry.rows import report
from tests.telemetry.test_collector import config

from plimsoll.core.config import LinkSecurity, PeerBroker
from plimsoll.telemetry.collector import TelemetryCollector
from plimsoll.telemetry.config import CollectorConfig, MonitoredCluster, encode_config
from plimsoll.telemetry.ingest.head_listener import HeadListener, HeadReports
from plimsoll.telemetry.main import EXIT_CONFIG, EXIT_UNUSABLE_PATH, AddressFile, ConfigFileWatch, main, run
from plimsoll.telemetry.schema import INCOMING, LOADS
from plimsoll.telemetry.snapshot import decode_snapshot
from plimsoll.telemetry.storage import parquet


class Process:
    def __init__(self, path: Path) -> None:
        self.log = path.with_suffix(".log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "plimsoll.telemetry", "--config", str(path)], stderr=log
            )

    def port(self) -> int:
        wait_for(lambda: b"serving on port" in self.log.read_bytes())
        return int(self.log.read_text().split("serving on port ")[1].split()[0])

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(300)


def wait_for(true: Callable[[], Any], seconds: float = 300.0) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not come")


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    made: list[Process] = []
    yield made
    for each in made:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()


@pytest.fixture
def heads() -> Iterator[list[Head]]:
    made: list[Head] = []
    yield made
    for head in made:
        head.close()


def hearing(root: Path, *heads: Head) -> CollectorConfig:
    clusters = {
        f"c{number}": MonitoredCluster(
            head=PeerBroker(name=f"h{number}", control=f"tcp://127.0.0.1:{head.port}"), brokers=(f"e{number}",)
        )
        for number, head in enumerate(heads)
    }
    return msgspec.structs.replace(config(root / "data", clusters=clusters), interval_seconds=0.2)


def now_us() -> int:
    return time.time_ns() // 1000


def test_it_collects_writes_serves_and_follows_its_file(tmp_path: Path, processes: list[Process], heads: list[Head]):
    heads += [Head(), Head()]
    path = tmp_path / "collector.json"
    path.write_bytes(encode_config(hearing(tmp_path, heads[0])))
    processes.append(Process(path))
    port, folder = processes[0].port(), tmp_path / "data" / INCOMING
    seq = 0

    def said(head: int) -> int:
        nonlocal seq
        seq += 1
        heads[head].answer(load(**report(f"e{head}", seq, now_us(), cluster=f"c{head}")))
        return sum(path.suffix == ".parquet" for path in folder.iterdir())

    wait_for(lambda: said(0))
    path.write_bytes(encode_config(hearing(tmp_path, *heads)))

    def seen() -> bool:
        said(0)
        said(1)
        with urlopen(f"http://127.0.0.1:{port}/v1/fold", timeout=60) as answer:
            found = decode_snapshot(answer.read())
        return (found.seen, found.expected) == (2, 2)

    wait_for(seen)
    assert processes[0].end() == 0
    rows = [row for file in folder.iterdir() for row in parquet.read_rows(file, LOADS)]
    assert {row["broker"] for row in rows} == {"e0", "e1"}
    assert len({(row["broker"], row["seq"]) for row in rows}) == len(rows)


def test_what_waits_is_written_at_the_end(tmp_path: Path, processes: list[Process], heads: list[Head]):
    heads.append(Head())
    path = tmp_path / "collector.json"
    path.write_bytes(encode_config(msgspec.structs.replace(hearing(tmp_path, heads[0]), interval_seconds=3600.0)))
    processes.append(Process(path))
    port = processes[0].port()

    def counted() -> bool:
        heads[0].answer(load(**report("e0", 1, now_us(), cluster="c0")))
        with urlopen(f"http://127.0.0.1:{port}/v1/fold", timeout=60) as answer:
            return decode_snapshot(answer.read()).counts.counted == 1

    wait_for(counted)
    folder = tmp_path / "data" / INCOMING
    assert list(folder.iterdir()) == []
    assert processes[0].end() == 0
    (file,) = folder.iterdir()
    assert [row["broker"] for row in parquet.read_rows(file, LOADS)] == ["e0"]


def test_what_cannot_be_used_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "collector.json"
    assert main(["--config", str(path)]) == EXIT_CONFIG
    assert "cannot read" in capsys.readouterr().err
    (tmp_path / "key").write_text("no key")
    secured = LinkSecurity(secret_key_file=str(tmp_path / "key"))
    path.write_bytes(encode_config(config(tmp_path, security=secured, clusters={})))
    assert main(["--config", str(path)]) == EXIT_CONFIG
    assert "security.secret_key_file" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    path.write_bytes(encode_config(config(tmp_path / "file")))
    assert main(["--config", str(path)]) == EXIT_UNUSABLE_PATH
    assert "file" in capsys.readouterr().err


def test_a_bad_file_leaves_the_last_configuration_in_force(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path = tmp_path / "collector.json"
    path.write_bytes(encode_config(config(tmp_path)))
    told = ConfigFileWatch(path)
    assert told.read_if_changed(0.0) == config(tmp_path)
    assert told.read_if_changed(5.0) is None
    path.write_text("{")
    assert told.read_if_changed(6.5) is None
    assert "keeping the previous one" in caplog.text
    path.write_bytes(encode_config(config(tmp_path, fleet="g")))
    assert told.read_if_changed(7.0) is None, "it looks once a second"
    assert told.read_if_changed(8.0) == config(tmp_path, fleet="g")


def test_an_address_that_cannot_be_written_is_tried_again_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    file = tmp_path / "away" / "c.address"
    address = AddressFile(msgspec.structs.replace(config(tmp_path), http="127.0.0.1:0", address_file=str(file)), 4711)
    for now in (0.0, 0.5, 1.0, 2.0):
        address.write_when_due(now)
    assert len(caplog.records) == 1
    file.parent.mkdir()
    address.write_when_due(2.5)
    assert not file.exists()
    address.write_when_due(3.0)
    assert msgspec.json.decode(file.read_bytes()) == {"http": "127.0.0.1:4711", "pid": os.getpid()}
    file.unlink()
    address.write_when_due(4.0)
    assert not file.exists()


def test_a_fault_of_the_program_in_one_part_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "collector.json"
    path.write_bytes(encode_config(config(tmp_path / "data")))
    rounds = iter([False] * 10)

    def fail(*given: object) -> None:
        raise OverflowError("int too big to convert")

    monkeypatch.setattr(HeadListener, "receive", lambda *given: iter([HeadReports("c", [], 0)]))
    monkeypatch.setattr(TelemetryCollector, "take_reports", fail)
    assert run(path, lambda: next(rounds, True)) == 0
    told = [record.getMessage() for record in caplog.records if "failed" in record.getMessage()]
    assert told == [
        f"the reports of cluster c failed ({times} times so far), and the rest goes on: "
        "OverflowError: int too big to convert"
        for times in (1, 10)
    ]
