"""Killing all processes of a session, and those with a mark in their environment."""

import os
import signal
import subprocess
import sys

from tests.local.conftest import alive, wait_for

from plimsoll.local.supervision.process_session import kill_marked, kill_session, marked_processes, session_members

SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
FAMILY = (
    "import os, subprocess, sys, time\n"
    f"other = subprocess.Popen([sys.executable, '-c', {SLEEPER!r}], process_group=0, stdout=subprocess.PIPE)\n"
    "other.stdout.readline()\nprint(other.pid, flush=True)\ntime.sleep(600)"
)


def start(code, **environment):
    process = subprocess.Popen(
        [sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def end(process):
    process.kill()
    process.communicate()


def test_a_session_is_killed_with_its_stopped_processes_and_those_of_other_groups():
    process, line = start(FAMILY)
    try:
        other = int(line)
        assert session_members(process.pid) == sorted([process.pid, other])
        os.kill(other, signal.SIGSTOP)
        os.kill(process.pid, signal.SIGSTOP)
        assert kill_session(process.pid) == 1
        assert session_members(process.pid) == []
        wait_for(lambda: not alive(other))
        assert process.wait() == -signal.SIGKILL
    finally:
        end(process)


def test_only_processes_with_the_mark_and_the_value_are_killed():
    marked, _ = start(SLEEPER, PLIMSOLL_TEST_MARK="/a")
    other, _ = start(SLEEPER, PLIMSOLL_TEST_MARK="/a/b")
    try:
        assert marked_processes("PLIMSOLL_TEST_MARK", "/a") == [marked.pid]
        assert kill_marked("PLIMSOLL_TEST_MARK", "/a") == 1
        assert marked.wait() == -signal.SIGKILL
        assert other.poll() is None
        assert kill_marked("PLIMSOLL_TEST_MARK", "/a") == 0
    finally:
        end(marked)
        end(other)
