"""A timer finer than the whole milliseconds in which ZeroMQ polls, so that short waits neither spin nor oversleep.

Linux has it as a file descriptor. Elsewhere `FineTimer.open` gives None, and waits are rounded up to a millisecond.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from typing import Final

_CLOCK_MONOTONIC: Final = 1
_NONBLOCK_AND_CLOEXEC: Final = os.O_NONBLOCK | os.O_CLOEXEC


class _TimerSpec(ctypes.Structure):
    """`struct itimerspec`: interval, then first expiry, each in seconds and nanoseconds."""

    _fields_ = (
        ("interval_seconds", ctypes.c_long),
        ("interval_nanoseconds", ctypes.c_long),
        ("seconds", ctypes.c_long),
        ("nanoseconds", ctypes.c_long),
    )


class FineTimer:
    """A file descriptor that becomes readable once, `seconds` after it was armed."""

    def __init__(self, libc: ctypes.CDLL, fd: int) -> None:
        self._libc, self.fd = libc, fd
        self._spec = _TimerSpec()
        self._pointer = ctypes.byref(self._spec)

    @classmethod
    def open(cls) -> FineTimer | None:
        """A timer, or None where the system has none."""
        if sys.platform != "linux":
            return None
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCK_AND_CLOEXEC)
        return cls(libc, fd) if fd >= 0 else None

    def arm(self, seconds: float) -> None:
        """Expire after `seconds`, which must be positive; replaces an earlier call."""
        whole = int(seconds)
        self._spec.seconds = whole
        # zero would disarm it
        self._spec.nanoseconds = max(1, int((seconds - whole) * 1e9))
        if self._libc.timerfd_settime(self.fd, 0, self._pointer, None) != 0:
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def clear(self) -> None:
        """Make the descriptor unreadable again after an expiry."""
        with contextlib.suppress(BlockingIOError):  # armed again before it was read
            os.read(self.fd, 8)

    def close(self) -> None:
        os.close(self.fd)
