"""A real Prometheus that scrapes what a test names, with the alerts of the chart loaded.

PLIMSOLL_PROMETHEUS names the program; scripts/build_prometheus.sh builds one. promtool lies beside it, or on PATH.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

VARIABLE = "PLIMSOLL_PROMETHEUS"


@dataclass(frozen=True)
class Target:
    """An address to scrape, HOST:PORT, and the labels that a monitor of the chart would give to it."""

    address: str
    labels: Mapping[str, str]


def prometheus_program() -> str:
    """The program; the test is skipped by name without one."""
    found = os.environ.get(VARIABLE, "")
    if not found:
        pytest.skip(f"needs a Prometheus: {VARIABLE} is not set; scripts/build_prometheus.sh builds one")
    return found


def promtool_program() -> str:
    """The tool that comes with it."""
    beside = Path(os.environ.get(VARIABLE, "")).parent / "promtool"
    found = str(beside) if os.environ.get(VARIABLE) and beside.exists() else shutil.which("promtool")
    if not found:
        pytest.skip(f"needs promtool, on PATH or beside the program that {VARIABLE} names")
    return found


class Prometheus:
    """A running server on a port of this machine."""

    def __init__(self, port: int) -> None:
        self._port = port

    def _get(self, path: str) -> tuple[int, str]:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=120)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer; a refused query fails with Prometheus' reason."""
        code, text = self._get(f"/api/v1/{path}?{urlencode(parameters)}")
        assert code == HTTPStatus.OK, f"{parameters}: {text}"
        return json.loads(text)["data"]

    def values(self, expression: str) -> list[float]:
        """The present value of each series that is a number."""
        found = self.ask("query", query=expression)["result"]
        return [value for item in found if not math.isnan(value := float(item["value"][1]))]

    def until(self, what: str, holds: Callable[[], Any], seconds: float = 300.0) -> None:
        """Wait for a condition; raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {seconds:g} s: {what}")
            time.sleep(0.25)

    def is_ready(self) -> bool:
        """Whether it answers queries."""
        with contextlib.suppress(OSError):  # it starts
            return self._get("/-/ready")[0] == HTTPStatus.OK
        return False


def configuration(targets: Sequence[Target], rules: Path) -> dict[str, Any]:
    """Scrape each target once a second."""
    static = [{"targets": [each.address], "labels": dict(each.labels)} for each in targets]
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": "plimsoll", "static_configs": static}],
    }


@contextlib.contextmanager
def running_prometheus(folder: Path, targets: Sequence[Target], rules: Path) -> Iterator[Prometheus]:
    """A server on a port of its own; it ends with the block."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    file = folder / "prometheus.yaml"
    file.write_text(yaml.safe_dump(configuration(targets, rules)))
    command = [
        prometheus_program(), f"--config.file={file}", f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
    ]  # fmt: skip
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            server = Prometheus(port)
            server.until("Prometheus answers", lambda: process.poll() is not None or server.is_ready())
            assert process.poll() is None, (folder / "prometheus.log").read_text()
            yield server
        finally:
            process.terminate()
            process.wait(300)
