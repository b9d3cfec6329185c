"""The processes that publish and subscribe, as the demo sees them: it starts them, hears lines of JSON, and ends them.

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
from typing import Any, Literal

import msgspec

from plimsoll import client
from plimsoll.local.demo.fleet import Entry
from plimsoll.local.demo.workload import Scenario
from plimsoll.local.processes import how_it_ended

Role = Literal["publishing", "subscribing", "mediating"]


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is told, as one line on its standard input: a key must not stand in the list of processes.

    `journal`: the file that it writes.
    """

    journal: str


class Task(Given, frozen=True, kw_only=True):
    """The task of a client: it takes every `of`-th party of the plan, from `part` on."""

    scenario: Scenario
    endpoint: str
    head_key: str
    own_secret_key: str
    part: int = 0
    of: int = 1


@contextlib.contextmanager
def connect(given: Task, name: str) -> Iterator[client.Connection]:
    """A worker's connection to the fleet, plain where the fleet has no keys; after a fault it waits for no answer."""
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
    """A worker ended before it was told to."""


def task(scenario: Scenario, entry: Entry, journal: Path, part: int = 0, of: int = 1) -> Task:
    """A task for one of `of` workers of a role."""
    return Task(
        scenario=scenario,
        endpoint=entry.endpoint,
        head_key=entry.head_key,
        own_secret_key=entry.own_secret_key,
        journal=str(journal),
        part=part,
        of=of,
    )


class Worker:
    """One process, of a module of `package`. `latest` is what it said last; counts in it only rise."""

    def __init__(self, role: Role, given: Given, log: Path, package: str = "plimsoll.local.demo") -> None:
        self.role, self.journal, self._log = role, Path(given.journal), log
        self.latest: Mapping[str, Any] = {}
        self._rest = b""
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"{package}.{role}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        assert self._process.stdin is not None  # noqa: S101
        assert self._process.stdout is not None  # noqa: S101
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdout.fileno(), False)
        self._say(msgspec.json.encode(given))

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def hear(self) -> Mapping[str, Any]:
        """Take what it has said since; raises `WorkerError` if it has ended."""
        code = self._process.poll()
        self._take()
        if code is not None:
            raise WorkerError(f"the {self.role} process {how_it_ended(code)}: {self._last_words()}")
        return self.latest

    def begin(self, start: float) -> None:
        """Tell it when the traffic starts, by `time.monotonic()`."""
        self._say(repr(start).encode())

    def order(self, line: bytes) -> None:
        """Tell it something that its role knows."""
        self._say(line)

    def finish(self) -> None:
        """Tell it that this is all: it closes its publishers or subscribers, says its last line, and ends."""
        self._say(b"finish")

    def await_end(self, seconds: float) -> None:
        """Wait for its end; raises `WorkerError` if it does not end, or not well."""
        deadline = time.monotonic() + seconds
        while (code := self._process.poll()) is None:
            self._take()
            if time.monotonic() > deadline:
                raise WorkerError(f"the {self.role} process did not end within {seconds:g} s")
            time.sleep(0.01)
        self._take()
        if code != 0:
            raise WorkerError(f"the {self.role} process {how_it_ended(code)}: {self._last_words()}")

    def kill(self) -> None:
        """End it now; nothing happens if it has ended."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError):
            self._stdin.close()
        self._stdout.close()

    def _say(self, line: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has ended; `hear` and `await_end` say why
            self._stdin.write(line + b"\n")
            self._stdin.flush()

    def _take(self) -> None:
        data = self._stdout.read()
        if not data:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.latest = msgspec.json.decode(line, type=dict[str, Any])

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._log.read_text("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1] if lines else "it said nothing"
