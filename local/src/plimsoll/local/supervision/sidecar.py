"""A process beside the brokers: started with the fleet, started again when it ends, ended with the fleet.

The mediator and the collectors run this way. Their exit does no harm: sessions are in the store, and brokers carry on
with their last commands.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plimsoll.local.keys import MEDIATOR
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.supervision.child_process import ChildProcess, describe_exit, log_note
from plimsoll.local.supervision.restart_backoff import RestartBackoff

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
        self._folder, self._name, self._kind = folder, name, kind
        self._command = command if command is not None else lambda: mediator_command(folder)
        self._process: ChildProcess | None = None
        self._restarts = RestartBackoff()
        self._start_at: float | None = 0.0
        self._last_end = ""

    def poll(self, now: float, record: RecordFleetEvent) -> None:
        """Notice its exit; start it when that is due."""
        code = self._process.exit_code() if self._process is not None else None
        if self._process is not None and code is not None:
            self._last_end = describe_exit(code)
            words = self._process.last_output_line()
            self._process = None
            self._restarts, self._start_at = self._restarts.on_exit(now)
            who = self._name.rpartition(".")[2]
            message = f"{who} {self._last_end}{f': {words}' if words else ''}"
            record("Warning", f"{self._kind}Exited", f"{message}; starts again after {self._start_at - now:.0f} s")
        elif self._process is None and self._start_at is not None and now >= self._start_at:
            self._process = ChildProcess(self._command(), self._folder.log(self._name), self._environment)
            self._start_at = None
            self._restarts = self._restarts.on_ready(now)
            record("Normal", f"{self._kind}Started", f"process {self._process.pid}{log_note(self._process)}")

    def restart(self) -> None:
        """Ask it to end; it is restarted as after any exit."""
        if self._process is not None:
            self._process.terminate()

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
        if self._last_end:
            found["lastEnd"] = self._last_end
        return found
