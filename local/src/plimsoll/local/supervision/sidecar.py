"""A process beside the brokers: started with the fleet, started again when it ends, ended with the fleet.

The mediator and the collectors run this way. Their exit does no harm: sessions are in the store, and brokers carry on
with their last commands.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from plimsoll.local.keys import MEDIATOR
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.supervision.child_process import ChildProcess, describe_exit, log_note
from plimsoll.local.supervision.restart_backoff import RestartBackoff

RESTART_SECONDS: Final = 5.0
"""How long a process that is restarted may take to end; then it is killed, with all that it has started."""

RecordFleetEvent = Callable[[str, str, str], None]
"""Note an event: Normal or Warning, reason, message."""


def mediator_command(folder: FleetFolder) -> Sequence[str]:
    """The command that starts this installation's mediator."""
    return (sys.executable, "-m", "plimsoll.local.mediator", str(folder.path), str(os.getpid()))


class Sidecar:
    """Keeps one process running, by default the mediator. `now` is seconds of one monotonic clock.

    `kind` prefixes its events' reasons, and `name` names its log. `environment`: its whole environment; None: ours.
    """

    def __init__(
        self,
        folder: FleetFolder,
        name: str = MEDIATOR,
        kind: str = "Mediator",
        command: Callable[[], Sequence[str]] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._environment = environment
        self._folder, self.name, self._kind = folder, name, kind
        self._command = command if command is not None else lambda: mediator_command(folder)
        self._process: ChildProcess | None = None
        self._restarts = RestartBackoff()
        self._start_at: float | None = 0.0
        self._last_end = ""
        self._kill_at: float | None = None
        self._killed = 0

    @property
    def is_up(self) -> bool:
        """Whether its process has been started and is not known to have ended."""
        return self._process is not None

    def poll(self, now: float, record: RecordFleetEvent) -> None:
        """Notice its exit, and kill it if it does not end when asked to; start it when that is due."""
        if self._process is not None and self._kill_at is not None and now >= self._kill_at:
            self._kill(self._process, record)
        code = self._process.exit_code() if self._process is not None else None
        if self._process is not None and code is not None:
            self._last_end = describe_exit(code)
            words, left = self._process.last_output_line(), self._process.left_behind
            self._process = self._kill_at = None
            self._restarts, self._start_at = self._restarts.on_exit(now)
            who = self.name.rpartition(".")[2]
            message = f"{who} {self._last_end}{f': {words}' if words else ''}"
            if left:
                message = f"{message}; processes that it had left and that were killed: {left}"
            record("Warning", f"{self._kind}Exited", f"{message}; starts again after {self._start_at - now:.0f} s")
        elif self._process is None and self._start_at is not None and now >= self._start_at:
            self._process = ChildProcess(self._command(), self._folder.log(self.name), self._environment)
            self._start_at = None
            self._restarts = self._restarts.on_ready(now)
            record("Normal", f"{self._kind}Started", f"process {self._process.pid}{log_note(self._process)}")

    def restart(self, now: float) -> None:
        """Ask it to end; it is restarted as after any exit. A process that does not end, as a frozen one, is killed."""
        if self._process is not None:
            self._process.terminate()
            self._kill_at = now + RESTART_SECONDS

    def _kill(self, process: ChildProcess, record: RecordFleetEvent) -> None:
        self._kill_at = None
        if process.exit_code() is not None:
            return  # it has ended in time
        process.kill()
        self._killed += 1
        who, others = self.name.rpartition(".")[2], process.left_behind
        text = f"{who} did not end within {RESTART_SECONDS:.0f} s when asked to: process {process.pid} was killed"
        if others:
            text = f"{text}, and processes that it had started: {others}"
        record("Warning", f"{self._kind}Killed", text)

    def terminate(self) -> None:
        """Ask it to end; nothing starts it again."""
        self._start_at = None
        if self._process is not None:
            self._process.terminate()

    def stop(self, until: float = 0.0) -> None:
        """End it for good; a process that was asked to end has until this time of the monotonic clock."""
        self._start_at = None
        if self._process is not None:
            while self._process.exit_code() is None and time.monotonic() < until:
                time.sleep(0.02)
            self._process.kill()
            self._process = None

    def status(self) -> dict[str, Any]:
        """Its part of the fleet's status."""
        found: dict[str, Any] = {"restarts": self._restarts.count}
        if self._process is not None:
            found["pid"] = self._process.pid
        if self._killed:
            found["killed"] = self._killed
        if self._last_end:
            found["lastEnd"] = self._last_end
        return found
