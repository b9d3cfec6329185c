"""The demo as a user runs it: a small one to its end, one that is interrupted, one whose broker is killed.

Each is a process with real brokers, on ports of this machine; none may leave a process behind.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

RUN = "import sys; from plimsoll.demo import main; sys.exit(main())"
SMALL = ["--subscribers", "50", "--publishers", "20", "--clients", "1"]


def processes(folder: Path) -> list[str]:
    """Command lines, and workers' tasks on standard input, that name the folder: all processes of a run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            environment = (entry / "environ").read_bytes().decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError, PermissionError):  # it has ended, or is another user's
            continue
        if line and f"DEMO_UNDER_TEST={folder}" in environment:
            found.append(line)
    return found


class Started:
    """A demo in a process of its own; its processes carry a mark in their environment."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self.text = folder, ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, "--place", *SMALL, "--report", str(folder / "report"), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "DEMO_UNDER_TEST": str(folder)},
        )

    def until(self, pattern: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.text += line
            if re.search(pattern, line):
                return
        raise AssertionError(f"it ended before it said {pattern!r}: {self.text}")

    def end(self) -> int:
        self.text += self.process.communicate(timeout=100)[0]
        return self.process.returncode

    def broker(self, name: str) -> int:
        with ObjectStore(FleetFolder(self.folder / "report" / "fleet" / "demo").store) as store:
            return int(store.get("EdgeBroker", name)["status"]["pid"])

    def clean(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture
def start(tmp_path: Path) -> Iterator:
    started: list[Started] = []

    def start(*options: str) -> Started:
        started.append(Started(tmp_path, *options))
        return started[-1]

    yield start
    for one in started:
        one.clean()
    assert processes(tmp_path) == []


@pytest.mark.slow
def test_a_small_demo_passes_and_reports(start, tmp_path):
    demo = start("--seconds", "3")
    assert demo.end() == 0, demo.text
    assert "passed: 0 lost, 0 duplicated, 0 reordered" in demo.text
    assert "\x1b" not in demo.text
    found = json.loads((tmp_path / "report" / "report.json").read_text())
    assert found["verdict"] == "passed"
    assert found["published"] == found["accepted"] > 20
    assert found["delivered"] >= found["expected"] > 20
    assert [found[key] for key in ("lost", "duplicated", "reordered", "gaps")] == [0, 0, 0, 0]
    assert list(found["brokers"]) == ["quotes-head", "b1", "b2", "b3", "b4"]
    assert sum(max(b["series"]["subscribers"]) for b in found["brokers"].values() if b["role"] == "edge") == 50
    assert all(len(broker["series"]["seconds"]) >= 3 for broker in found["brokers"].values())
    assert found["client_counters"]["subscribers_duplicates_suppressed"] == 0
    page = (tmp_path / "report" / "report.html").read_text()
    assert f"<dd>{found['delivered']:,}</dd>" in page
    assert sorted(p.name for p in (tmp_path / "report").iterdir()) == ["logs", "report.html", "report.json"]


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.sweep)])
def test_interrupted_it_ends_everything(start, tmp_path, number):
    demo = start("--seconds", "12")
    demo.until("s left")
    assert len(processes(tmp_path)) >= 9
    demo.process.send_signal(number)
    assert demo.end() == 130, demo.text
    assert "interrupted" in demo.text
    assert "Traceback" not in demo.text
    assert processes(tmp_path) == []
    assert sorted(p.name for p in (tmp_path / "report").iterdir()) == ["logs"]


@pytest.mark.slow
def test_killed_it_leaves_no_process_and_a_second_one_stays_out_of_its_way(start, tmp_path):
    demo = start("--seconds", "60")
    demo.until("brokers are ready")
    second = start("--seconds", "60")
    assert second.end() == 4
    assert "runs a demo that reports to" in second.text
    demo.process.kill()
    demo.end()
    deadline = time.monotonic() + 300.0
    while processes(tmp_path) and time.monotonic() < deadline:
        subprocess.run([sys.executable, "-S", "-c", "pass"], check=True)  # time passes without this test sleeping
    assert processes(tmp_path) == []


@pytest.mark.sweep
def test_the_death_of_a_broker_fails_the_run_and_loses_nothing(start, tmp_path):
    demo = start("--seconds", "6")
    demo.until("s left")
    os.kill(demo.broker("b4"), signal.SIGKILL)
    assert demo.end() == 1, demo.text
    found = json.loads((tmp_path / "report" / "report.json").read_text())
    assert "b4: was ended by SIGKILL" in demo.text
    assert [found[key] for key in ("verdict", "lost", "duplicated", "reordered")] == ["failed", 0, 0, 0]


def test_a_fleet_that_is_wrong_is_refused_before_anything_starts(start, tmp_path):
    (tmp_path / "wrong.yaml").write_text("kind: BrokerFleet\n")
    demo = start("-f", str(tmp_path / "wrong.yaml"))
    assert demo.end() == 2
    assert "wrong.yaml" in demo.text
    assert "Traceback" not in demo.text
    assert not (tmp_path / "report").exists()
