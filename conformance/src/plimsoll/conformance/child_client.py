"""The client under test as a child process: orders on its standard input, reports on its standard output."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.conformance.client_under_test import BROKERS, ClientInput, Report
from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.conformance.sockets import ScriptedSockets

HEAD_VARIABLE = "PLIMSOLL_HEAD"
HEAD_PLACE = "{head}"
ERRORS_SHOWN = 2000
END_SECONDS = 30.0
LINES = Rule("", "docs/conformance.md: a report is one JSON object on a line of its own.")


class ChildClientError(RuntimeError):
    """The program cannot be started."""


class ChildClient:
    """One run of the program. `{head}` in its arguments is replaced with the address of the head."""

    def __init__(self, command: Sequence[str]) -> None:
        self._sockets = ScriptedSockets(BROKERS)
        head = self._sockets.endpoint("h")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the client
        try:
            self._process = subprocess.Popen(
                [part.replace(HEAD_PLACE, head) for part in command],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                env={**os.environ, HEAD_VARIABLE: head},
            )  # fmt: skip
        except OSError as error:
            self._sockets.close()
            self._errors.close()
            raise ChildClientError(f"{command[0]} cannot be started: {error.strerror or error}") from error
        self._out = self._stream(self._process.stdout).fileno()
        os.set_blocking(self._out, False)
        self._rest = b""
        self._sockets.watch(self._out)

    @staticmethod
    def _stream(stream: Any) -> Any:
        if stream is None:
            raise RuntimeError("a pipe was asked for")
        return stream

    def now(self) -> float:
        return time.monotonic()

    def endpoint(self, broker: str) -> str:
        return self._sockets.endpoint(broker)

    def poll(self, seconds: float) -> ClientInput:
        frames = self._sockets.receive(seconds)
        reports = self._reports()
        code = self._process.poll()
        return ClientInput(frames, reports, code, "" if code is None else self._errors_text())

    def _reports(self) -> list[Report]:
        with contextlib.suppress(BlockingIOError):  # all that has come is read
            while piece := os.read(self._out, 65536):
                self._rest += piece
            self._sockets.unwatch(self._out)  # the end of the pipe would be found again and again
        *lines, self._rest = self._rest.split(b"\n")
        return [self._report(line) for line in lines if line.strip()]

    def _report(self, line: bytes) -> Report:
        try:
            report = json.loads(line)
        except ValueError as error:
            raise RuleBrokenError(LINES, f"{line[:200]!r}: {error}") from error
        if not isinstance(report, dict) or "event" not in report:
            raise RuleBrokenError(LINES, f"{line[:200]!r} is no object with an `event`")
        return report

    def _errors_text(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-ERRORS_SHOWN:].decode("utf-8", "replace")

    def send(self, broker: str, peer: bytes, frames: Sequence[bytes]) -> None:
        self._sockets.send(broker, peer, frames)

    def cut(self, broker: str) -> None:
        self._sockets.cut(broker)

    def order(self, order: Mapping[str, Any]) -> None:
        # A program that has ended is found by `poll`, with its exit code.
        with contextlib.suppress(BrokenPipeError):  # the client has ended
            stream = self._stream(self._process.stdin)
            stream.write(json.dumps(order).encode() + b"\n")
            stream.flush()

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(END_SECONDS)
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(BrokenPipeError):  # the client has ended
                self._stream(stream).close()
        self._errors.close()
        self._sockets.close()
