"""A process beside the brokers: started with the fleet, started again when it ends, ended with the fleet.

So the mediator is kept, and so are collectors. Their end harms nothing: sessions stand in the store, and brokers go on
with what they have been told.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from plimsoll.local.home import FleetFolder
from plimsoll.local.keys import MEDIATOR
from plimsoll.local.processes import Process, how_it_ended
from plimsoll.local.restarts import Restarts

Record = Callable[[str, str, str], None]
"""Note an event: Normal or Warning, reason, message."""


def mediator_command(folder: FleetFolder) -> Sequence[str]:
    """The mediator of this installation."""
    return (sys.executable, "-m", "plimsoll.local.mediator", str(folder.path), str(os.getpid()))


class Keeper:
    """Keeps one process running: the mediator, unless told otherwise. `now` is seconds of one monotonic clock.

    `kind` begins the reasons of its events, and `name` names its log. `environment`: all that it has of one;
    None: ours.
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
        self._process: Process | None = None
        self._restarts = Restarts()
        self._start_at: float | None = 0.0
        self._last_end = ""

    def step(self, now: float, record: Record) -> None:
        """Notice its end; start it when that is due."""
        code = self._process.ended() if self._process is not None else None
        if self._process is not None and code is not None:
            self._last_end = how_it_ended(code)
            words = self._process.last_words()
            self._process = None
            self._restarts, self._start_at = self._restarts.ended(now)
            who = self._name.rpartition(".")[2]
            message = f"{who} {self._last_end}{f': {words}' if words else ''}"
            record("Warning", f"{self._kind}Exited", f"{message}; starts again after {self._start_at - now:.0f} s")
        elif self._process is None and self._start_at is not None and now >= self._start_at:
            self._process = Process(self._command(), self._folder.log(self._name), self._environment)
            self._start_at = None
            self._restarts = self._restarts.ready(now)
            record("Normal", f"{self._kind}Started", f"process {self._process.pid}")

    def restart(self) -> None:
        """Ask it to end, and let it be started again as after any end."""
        if self._process is not None:
            self._process.terminate()

    def terminate(self) -> None:
        """Ask it to end; nothing starts it again."""
        self._start_at = None
        if self._process is not None:
            self._process.terminate()

    def end(self, until: float = 0.0) -> None:
        """End it, and nothing starts it again; who was asked to end has until this time of the monotonic clock."""
        self._start_at = None
        if self._process is not None:
            while self._process.ended() is None and time.monotonic() < until:
                time.sleep(0.02)
            self._process.kill()
            self._process = None

    def status(self) -> dict[str, Any]:
        """What status says of it."""
        found: dict[str, Any] = {"restarts": self._restarts.count}
        if self._process is not None:
            found["pid"] = self._process.pid
        if self._last_end:
            found["lastEnd"] = self._last_end
        return found
