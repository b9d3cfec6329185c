"""All processes that a child has started: found by their session, or by a mark in their environment, and killed.

A driver of Spark has a Java virtual machine below it, and Python workers that leave its process group. They stay in
its session. SIGKILL ends a stopped process as well. Needs /proc; elsewhere only the process group is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
ROUNDS: Final = 20
"""A process may start another one while its session is read, so it is read again until it is empty."""
ROUND_SECONDS: Final = 0.05
_SESSION_FIELD: Final = 3
"""The place of the session in /proc/PID/stat, counted after the name in brackets; the state has place 0."""


def session_members(leader: int) -> list[int]:
    """The processes of a session that have not ended."""
    return _living(lambda place: int(_stat_fields(place)[_SESSION_FIELD]) == leader)


def marked_processes(name: str, value: str) -> list[int]:
    """The processes of this user, except this one, that were started with this environment variable."""
    mark = f"{name}={value}".encode()
    own = os.getuid()
    found = _living(lambda place: place.stat().st_uid == own and mark in (place / "environ").read_bytes().split(b"\0"))
    return [pid for pid in found if pid != os.getpid()]


def kill_session(leader: int) -> int:
    """Kill a session that this process has made for a child, and its leader; returns the number of other processes.

    The child must not have been waited for: until then no other process can get its number.
    """
    killed = _kill_all(lambda: session_members(leader))
    with contextlib.suppress(ProcessLookupError):  # the group has ended, as it has where there is /proc
        os.killpg(leader, signal.SIGKILL)
    return len(killed - {leader})


def kill_marked(name: str, value: str) -> int:
    """Kill every process that `marked_processes` finds; returns how many there were."""
    return len(_kill_all(lambda: marked_processes(name, value)))


def _kill_all(find: Callable[[], list[int]]) -> set[int]:
    killed: set[int] = set()
    for _ in range(ROUNDS):
        found = find()
        if not found:
            break
        for pid in found:
            with contextlib.suppress(ProcessLookupError):  # it has ended since it was found
                os.kill(pid, signal.SIGKILL)
        killed.update(found)
        time.sleep(ROUND_SECONDS)
    return killed


def _living(wanted: Callable[[Path], bool]) -> list[int]:
    found = []
    for place in PROC.glob("[0-9]*"):
        # It has ended since the folder was listed, or belongs to another user.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if wanted(place) and _stat_fields(place)[0] not in ("Z", "X"):
                found.append(int(place.name))
    return sorted(found)


def _stat_fields(place: Path) -> list[str]:
    return (place / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
