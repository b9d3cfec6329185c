"""The first process of a container: what is started again, how often, and what ends the container."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from tests.broker.test_main import HEAD, ask_status

from plimsoll.broker import crash_restarts
from plimsoll.broker.crash_restarts import RESTARTS, WINDOW_SECONDS, RestartLimit, read_count, write_count
from plimsoll.broker.main import EXIT_CONFIG, EXIT_DISK, EXIT_ENDPOINT, EXIT_STALE
from plimsoll.core.config import encode

Start = Callable[..., subprocess.Popen[str]]
DEADLINE_SECONDS = 300


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, program: str = "") -> subprocess.Popen[str]:
        """`program`: runs in the broker's place."""
        run = f"crash_restarts.main(sys.argv[1:], (sys.executable, '-c', {program!r}))"
        script = f"import sys; from plimsoll.broker import crash_restarts; sys.exit({run})"
        command = ["-c", script] if program else ["-m", crash_restarts.__name__]
        started.append(
            subprocess.Popen(
                [sys.executable, *command, *arguments],
                stderr=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "TMPDIR": str(tmp_path)},
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()  # what it keeps has it for its parent, and leaves with it
        process.wait(DEADLINE_SECONDS)
        assert process.stderr is not None
        process.stderr.close()


def test_a_crash_is_restarted_some_times_within_a_minute():
    limit = RestartLimit()
    assert [limit.takes(-9, at) for at in (0.0, 1.0, 2.0, 3.0)] == [True] * RESTARTS + [False]
    assert limit.takes(1, WINDOW_SECONDS), "the first one is long ago"
    assert not limit.takes(1, WINDOW_SECONDS + 0.5)


@pytest.mark.parametrize("code", [0, EXIT_CONFIG, EXIT_ENDPOINT, EXIT_DISK, EXIT_STALE])
def test_what_a_restart_would_not_change_is_not_restarted(code: int):
    assert not RestartLimit().takes(code, 0.0)


def test_the_count_outlasts_a_container(tmp_path: Path):
    file = tmp_path / "count"
    assert read_count(file) == 0
    write_count(file, 3)
    assert read_count(file) == 3
    file.write_text("-1x")
    assert read_count(file) == 0


def test_a_count_that_cannot_be_written_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    write_count(tmp_path / "missing" / "count", 3)
    assert "cannot be written" in caplog.text


@pytest.mark.parametrize(
    ("text", "times"),
    [("low 0\nhigh 2\noom 4\noom_kill 3\noom_group_kill 0\n", 3), ("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", 2)],
)
def test_kills_for_memory_are_read_from_both_kinds_of_control_groups(
    text: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "events"
    file.write_text(text)
    monkeypatch.setattr(crash_restarts, "_OOM_FILES", (tmp_path / "none", file))
    assert crash_restarts.times_out_of_memory() == times
    monkeypatch.setattr(crash_restarts, "_OOM_FILES", (tmp_path / "none",))
    assert crash_restarts.times_out_of_memory() == 0


@pytest.mark.sweep
def test_a_broker_that_is_killed_comes_back_and_says_so_until_it_was_too_often(start, tmp_path: Path):
    config = tmp_path / "head.json"
    config.write_bytes(encode(HEAD))
    kept = start("--config", str(config))
    for number in range(RESTARTS + 1):
        control = _next_control(kept)
        while not (process := ask_status(control)["process"]):
            pass
        told = {name: process[name] for name in ("restarts", "last_end") if name in process}
        assert told == ({"restarts": number, "last_end": "was killed by signal 9"} if number else {})
        os.kill(process["pid"], signal.SIGKILL)
    assert kept.wait(DEADLINE_SECONDS) == 128 + signal.SIGKILL
    assert "was killed by signal 9, and is not started again here" in kept.stderr.read()
    again = start("--config", str(config))
    control = _next_control(again)
    while not (process := ask_status(control)["process"]):
        pass
    assert process["restarts"] == RESTARTS + 1, "of the same pod, in its next container"
    again.send_signal(signal.SIGTERM)
    assert again.wait(DEADLINE_SECONDS) == 0


def test_a_refused_configuration_goes_through(start, tmp_path: Path):
    config = tmp_path / "head.json"
    config.write_bytes(encode(msgspec.structs.replace(HEAD, data="nowhere")))
    kept = start("--config", str(config))
    assert kept.wait(DEADLINE_SECONDS) == EXIT_CONFIG
    assert "started again" not in kept.stderr.read()


def test_a_fault_of_the_program_is_tried_again_and_then_goes_through(start):
    kept = start(program="raise SystemExit(1)")
    assert kept.wait(DEADLINE_SECONDS) == 1
    assert kept.stderr.read().count("exited with 1, and is started again") == RESTARTS


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on_and_its_end_is_no_crash(start, number: signal.Signals):
    program = "import signal, sys; print('up', file=sys.stderr, flush=True); signal.pause()"
    kept = start(program=f"import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); {program}")
    assert kept.stderr.readline() == "up\n"
    kept.send_signal(number)
    assert kept.wait(DEADLINE_SECONDS) == 128 + number
    assert kept.stderr.read() == ""


def test_processes_that_lost_their_parent_do_not_end_the_broker(start):
    """Only process 1 has them; what it reaps beside the broker is not the broker."""
    program = "import os, sys, signal\nprint('up', file=sys.stderr, flush=True)\nsignal.pause()"
    kept = start(program=program)
    assert kept.stderr.readline() == "up\n"
    os.kill(kept.pid, signal.SIGCHLD)
    kept.send_signal(signal.SIGTERM)
    assert kept.wait(DEADLINE_SECONDS) == 128 + signal.SIGTERM


def _next_control(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if "listening:" in line:
            return line.strip().partition(", control ")[2]
    raise AssertionError(f"it ended with {process.wait(DEADLINE_SECONDS)}")
