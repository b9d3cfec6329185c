"""The worker's side of its pipes: lines of orders on standard input, lines of JSON on standard output.

The end of standard input means that the demo is gone; the worker then has nothing more to do.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from plimsoll import client
from plimsoll.core.printable import printable_lines
from plimsoll.demo.workers.worker_process import ClientTask, WorkerTask

STATE_SECONDS: Final = 0.25
CONNECT_SECONDS: Final = 10.0
FINISH: Final = b"finish"
Task = TypeVar("Task", bound=WorkerTask)


class ParentEndedError(RuntimeError):
    """The demo has ended without notice."""


class WorkerPipe:
    """Reads orders from one file descriptor and writes to another."""

    def __init__(self, source: int = 0, sink: int = 1) -> None:
        self._source, self._sink = source, sink
        self._rest = b""
        self._lines: list[bytes] = []
        self._say_at = 0.0

    def wait(self, seconds: float) -> bytes | None:
        """The next order, or None if none arrives within `seconds`; raises `ParentEndedError`."""
        if not self._lines and select.select([self._source], [], [], max(seconds, 0.0))[0]:
            data = os.read(self._source, 65536)
            if not data:
                raise ParentEndedError("the demo has ended")
            *self._lines, self._rest = (self._rest + data).split(b"\n")
        return self._lines.pop(0) if self._lines else None

    def next(self) -> bytes:
        """Wait for the next order, however long."""
        while (order := self.wait(1.0)) is None:
            pass
        return order

    def await_open(self, connection: client.Connection) -> None:
        """Wait for an answer from a head, and notice meanwhile if the demo has gone.

        Raises:
            WaitTimeoutError: saying what was tried.

        """
        deadline = time.monotonic() + CONNECT_SECONDS
        while True:
            try:
                return connection.wait_open(0.1)
            except client.errors.WaitTimeoutError:
                if time.monotonic() > deadline:
                    raise
                self.wait(0.0)

    def task(self) -> ClientTask:
        """The first order of a client with a plan."""
        return self.task_of(ClientTask)

    def task_of(self, kind: type[Task]) -> Task:
        """The first order, of this kind."""
        return msgspec.json.decode(self.next(), type=kind)

    def report(self, state: Mapping[str, Any]) -> None:
        """Send one line to the demo."""
        line = msgspec.json.encode(state) + b"\n"
        while line:
            line = line[os.write(self._sink, line) :]

    @property
    def is_report_due(self) -> bool:
        """True once per interval."""
        now = time.monotonic()
        if now < self._say_at:
            return False
        self._say_at = now + STATE_SECONDS
        return True


def run_worker(run: Callable[[WorkerPipe], None]) -> int:
    """Run a worker with its orders; returns its exit code."""
    try:
        run(WorkerPipe())
    except (ParentEndedError, BrokenPipeError) as error:
        sys.stderr.write(printable_lines(f"{error}\n"))
        return 1
    return 0
