"""Starting and ending one broker process: its own session, its log file, and its end when this process ends.

Each broker leads a session of its own, so a terminal's Ctrl-C reaches only the supervisor, which decides the order in
which brokers leave.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from plimsoll.local.storage.state_files import StateWriteError, file_faults
from plimsoll.local.supervision.process_session import kill_session, session_members

BrokerCommand = Callable[[Path], Sequence[str]]
"""What runs a broker that is configured by a file; the first word is a path."""

LEAVE_SECONDS = "10"
"""Seconds that a broker may take to let its subscribers go elsewhere."""
LEFTOVER_SECONDS = 2.0
"""How long processes that a child has started may take to end after it, before they are killed."""
LOG_BYTES = 4 * 1024 * 1024
_DEATH_SIGNAL_SCRIPT = str(Path(__file__).with_name("parent_death_signal.py"))


def broker_command(config: Path) -> Sequence[str]:
    """The command that starts this installation's broker."""
    own = str(os.getpid())
    return (
        sys.executable,
        "-m",
        "plimsoll.broker",
        "--config",
        str(config),
        "--parent-pid",
        own,
        "--leave-seconds",
        LEAVE_SECONDS,
    )


class ChildProcess:
    """One run of a program. `environment`: its whole environment; None: ours.

    `log_fault`: why its output is not kept, as its log could not be opened; it runs all the same. Empty: it is kept.
    `left_behind`: processes that it had started and that were killed because it had ended.
    """

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
        self._log, self.log_fault = log, ""
        self.left_behind = 0
        self._over_since: float | None = None
        with self._opened_log() as output:
            self._start = output.tell()
            self._popen = subprocess.Popen(
                [sys.executable, "-I", "-S", _DEATH_SIGNAL_SCRIPT, str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=environment,
            )

    def _opened_log(self) -> BinaryIO:
        try:
            with file_faults(self._log):
                _rotate(self._log)
                return self._log.open("ab")
        except StateWriteError as error:
            self.log_fault = str(error)
            return Path(os.devnull).open("ab")

    @property
    def pid(self) -> int:
        return self._popen.pid

    def exit_code(self) -> int | None:
        """Its exit code if it has ended: negative for the signal that ended it.

        What it has started ends with it: until then, or for `LEFTOVER_SECONDS`, it has not ended.
        """
        if self._popen.returncode is None and self._is_over():
            self._over_since = self._over_since or time.monotonic()
            if session_members(self.pid):
                if time.monotonic() < self._over_since + LEFTOVER_SECONDS:
                    return None
                self.left_behind = kill_session(self.pid)
        return self._popen.poll()

    def terminate(self) -> None:
        """Ask it to leave."""
        if self.exit_code() is None:
            self._popen.terminate()

    def kill(self) -> None:
        """End it and all that it has started now, and wait until it has ended."""
        if self.exit_code() is None:
            self.left_behind = kill_session(self.pid)
        self._popen.wait()

    def _is_over(self) -> bool:
        """Whether it has ended. It is not waited for, so its number still belongs to it and to its session."""
        if not hasattr(os, "waitid"):  # macOS with Python before 3.13, where sessions cannot be read either
            return self._popen.poll() is not None
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def last_output_line(self, limit: int = 400) -> str:
        """The end of this run's output, in one line: usually the reason for its exit. Empty if it is not kept."""
        if self.log_fault:
            return ""
        with self._log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self._start, size - 4096))
            lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1][:limit] if lines else ""


def log_note(process: ChildProcess) -> str:
    """What an event about its start says of its log; empty if the log is written."""
    return f"; its output is not kept: {process.log_fault}" if process.log_fault else ""


def describe_exit(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _rotate(log: Path) -> None:
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.replace(log.with_suffix(".log.1"))
