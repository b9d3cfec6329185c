"""The publishing and subscribing processes, as the demo sees them: it starts them, reads their JSON, and ends them.

A worker ends by itself when its standard input does, so none outlives the demo, however that ends. Ctrl-C in a terminal
reaches the demo alone.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from plimsoll import client
from plimsoll.demo.fleet import DemoAccess
from plimsoll.demo.workload import DemoScenario
from plimsoll.local.supervision.child_process import describe_exit

PUBLISHER_MODULE: Final = "plimsoll.demo.workers.publisher_worker"
SUBSCRIBER_MODULE: Final = "plimsoll.demo.workers.subscriber_worker"


class WorkerTask(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's task, one line on its standard input: a key must not appear in the process list.

    `journal`: the file that it writes.
    """

    journal: str


class ConnectingTask(WorkerTask, frozen=True, kw_only=True):
    """The task of a client of the fleet: how it connects."""

    endpoint: str
    head_key: str
    own_secret_key: str


class ClientTask(ConnectingTask, frozen=True, kw_only=True):
    """The task of a client with a plan: it takes every `of`-th party of it, from `part` on."""

    scenario: DemoScenario
    part: int = 0
    of: int = 1


@contextlib.contextmanager
def connect(given: ConnectingTask, name: str) -> Iterator[client.Connection]:
    """A worker's connection to the fleet, plain where the fleet has no keys; a fault ends every wait for an answer."""
    security: Literal["plain"] | client.Curve = client.Curve(given.own_secret_key) if given.own_secret_key else "plain"
    connection = client.Connection(
        client.Address(given.endpoint, given.head_key), security=security, name=f"demo-{name}"
    )
    try:
        yield connection
    except BaseException:
        connection.close(0.0)
        raise
    connection.close()


class WorkerError(RuntimeError):
    """A worker ended before it was asked to."""


def client_task(scenario: DemoScenario, entry: DemoAccess, journal: Path, part: int = 0, of: int = 1) -> ClientTask:
    """A task for one of `of` workers of a role."""
    return ClientTask(
        scenario=scenario,
        endpoint=entry.endpoint,
        head_key=entry.head_key,
        own_secret_key=entry.own_secret_key,
        journal=str(journal),
        part=part,
        of=of,
    )


class WorkerProcess:
    """One process, of `module`. `latest` is its last line, whose counts only rise. Errors name its log file."""

    def __init__(self, module: str, given: WorkerTask, log: Path) -> None:
        self.name, self.journal, self._log = log.stem, Path(given.journal), log
        self.latest: Mapping[str, Any] = {}
        self._rest = b""
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        assert self._process.stdin is not None  # noqa: S101  # a pipe, as asked for above
        assert self._process.stdout is not None  # noqa: S101  # a pipe, as asked for above
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdout.fileno(), False)
        self._write_line(msgspec.json.encode(given))

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def read_report(self) -> Mapping[str, Any]:
        """Read its output so far; raises `WorkerError` if it has ended."""
        code = self._process.poll()
        self._take()
        if code is not None:
            self._close()
            raise WorkerError(f"the {self.name} process {describe_exit(code)}: {self._last_words()}")
        return self.latest

    def begin(self, start: float) -> None:
        """Send it the start of the traffic, by `time.monotonic()`."""
        self._write_line(repr(start).encode())

    def order(self, line: bytes) -> None:
        """Send it an order of its role."""
        self._write_line(line)

    def finish(self) -> None:
        """Send it the last order: it closes its publishers or subscribers, reports once more, and ends."""
        self._write_line(b"finish")

    def await_end(self, seconds: float) -> None:
        """Wait for its end; raises `WorkerError` if it does not end, or ends with an error."""
        deadline = time.monotonic() + seconds
        while (code := self._process.poll()) is None:
            self._take()
            if time.monotonic() > deadline:
                raise WorkerError(f"the {self.name} process did not end within {seconds:g} s")
            time.sleep(0.01)
        self._take()
        self._close()
        if code != 0:
            raise WorkerError(f"the {self.name} process {describe_exit(code)}: {self._last_words()}")

    def kill(self) -> None:
        """End it now; no effect if it has ended."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._close()

    def _close(self) -> None:
        """It has ended: nothing more is said to it, or by it."""
        with contextlib.suppress(BrokenPipeError):  # it ended without reading the last line
            self._stdin.close()
        self._stdout.close()

    def _write_line(self, line: bytes) -> None:
        if self._stdin.closed:
            return  # as below
        with contextlib.suppress(BrokenPipeError):  # it has ended; `hear` and `await_end` say why
            self._stdin.write(line + b"\n")
            self._stdin.flush()

    def _take(self) -> None:
        data = None if self._stdout.closed else self._stdout.read()
        if not data:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.latest = msgspec.json.decode(line, type=dict[str, Any])

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._log.read_text("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1] if lines else "it said nothing"
