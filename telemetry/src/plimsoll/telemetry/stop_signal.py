"""When a program beside the brokers has to stop: collectors, recorders of feeds, the driver of channels."""

from __future__ import annotations

import os
import signal


class StopSignal:
    """Whether to stop: after SIGTERM or SIGINT, or when the parent process has ended."""

    def __init__(self, parent_pid: int | None) -> None:
        self._parent_pid = parent_pid
        self._requested = False

    def listen(self) -> None:
        """Take the signals of this process."""
        signal.signal(signal.SIGTERM, self.on_signal)
        signal.signal(signal.SIGINT, self.on_signal)

    def on_signal(self, number: int, frame: object) -> None:
        self._requested = True

    def __call__(self) -> bool:
        return self._requested or (self._parent_pid is not None and os.getppid() != self._parent_pid)
