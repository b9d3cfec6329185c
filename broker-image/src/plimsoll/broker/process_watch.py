"""What a process arranges with its system: limits, signals, and a watch of its parent process."""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import sys
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def raise_open_files() -> str:
    """Raise the soft limit of open files to the hard one; returns why that failed, or an empty string.

    Each connection is an open file, and the usual soft limit is 1024.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return ""
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:
        return (
            f"RLIMIT_NOFILE stays at {soft} (hard limit {hard}: {error}); each connection needs one file: raise it "
            f"with `ulimit -n` or LimitNOFILE if more than about {max(0, soft - 64)} connections are expected"
        )
    return ""


class ProcessWatch:
    """Whether this process has been asked to end, and whether the one that started it is still there.

    Its descriptors become readable on such an event, so that a loop that sleeps in a poll wakes up.
    """

    def __init__(self, parent_pid: int | None) -> None:
        self.signals = 0
        self._parent_pid = parent_pid
        self._parent_fd = _pidfd(parent_pid)
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._before = [(number, signal.signal(number, self._count)) for number in _SIGNALS]
        self._wakeup_before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)

    def _count(self, number: int, frame: FrameType | None) -> None:
        self.signals += 1

    @property
    def descriptors(self) -> list[int]:
        return [self._reader.fileno(), *([] if self._parent_fd is None else [self._parent_fd])]

    def clear(self) -> None:
        """Make the descriptor of signals unreadable again; they stay counted."""
        try:
            while self._reader.recv(256):
                pass
        except BlockingIOError:
            pass  # all of it is read

    def parent_is_gone(self) -> bool:
        """Whether the process that this one must not outlive has ended."""
        if self._parent_pid is None:
            return False
        if self._parent_fd is not None:
            return _is_readable(self._parent_fd)
        return not _is_alive(self._parent_pid)

    def close(self) -> None:
        signal.set_wakeup_fd(self._wakeup_before)
        for number, handler in self._before:
            signal.signal(number, handler)
        self._reader.close()
        self._writer.close()
        if self._parent_fd is not None:
            os.close(self._parent_fd)


def _pidfd(pid: int | None) -> int | None:
    """A descriptor that is readable once the process has ended; Linux only."""
    if pid is None or sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None  # it has gone, or this system refuses the call: `_is_alive` asks at each round instead


def _is_readable(fd: int) -> bool:
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(0))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is there, and another user's
        return True
    return True
