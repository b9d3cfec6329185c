"""Threads and processes that outlive their test: they fail that test, not a later one that they disturb."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

LEFT_SECONDS = 60.0
"""How long threads and processes may take to end after their test."""
OF_THE_SESSION = ("py4j", "pyspark", "execnet", "multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Words of modules whose threads, and of commands whose processes, serve all later tests of a worker."""


def running_children() -> dict[int, str]:
    """The child processes of this one that run, with their commands; one that only waits to be reaped does not."""
    found = {}
    for task in Path("/proc/self/task").glob("*/children"):
        try:
            for pid in map(int, task.read_text().split()):
                folder = Path(f"/proc/{pid}")
                if (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                    found[pid] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            continue
    return found


def left_behind(threads: set[threading.Thread], children: set[int]) -> list[str]:
    """The threads and child processes that run now and did not before."""
    new = [f"thread {each.name} ({_module(each)})" for each in threading.enumerate() if each not in threads] + [
        f"process {pid}: {command}" for pid, command in running_children().items() if pid not in children
    ]
    return [each for each in new if not any(word in each for word in OF_THE_SESSION)]


def _module(thread: threading.Thread) -> str:
    """Where what a thread does is written: its target, or else its class."""
    return str(getattr(getattr(thread, "_target", None), "__module__", None) or type(thread).__module__)


@contextmanager
def nothing_left_behind() -> Iterator[None]:
    """Fail the test if a thread or child process of what is done within outlives it."""
    threads, children = set(threading.enumerate()), set(running_children())
    yield
    deadline = time.monotonic() + LEFT_SECONDS
    while left := left_behind(threads, children):
        if time.monotonic() > deadline:
            pytest.fail(f"these outlive their test: {'; '.join(left)}")
        time.sleep(0.01)
