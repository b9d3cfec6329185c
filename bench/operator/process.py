"""The operator as a process, with its metrics, memory and processor time."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
READS = ("get", "list")


@dataclass
class Reading:
    """The operator's counters at one time. `looks` (reconciles) and `rounds` (of status) are histograms: how many took
    at most each bound, in seconds."""

    cpu_seconds: float = 0.0
    memory_mb: float = 0.0
    lag_seconds: float = 0.0
    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    refused: int = 0
    looks: dict[float, float] = field(default_factory=dict)
    rounds: dict[float, float] = field(default_factory=dict)

    def since(self, before: Reading) -> Reading:
        """The increase since an earlier reading."""
        return Reading(
            self.cpu_seconds - before.cpu_seconds, self.memory_mb, self.lag_seconds, self.requests - before.requests,
            self.refused - before.refused,
            *({bound: count - old.get(bound, 0.0) for bound, count in new.items()}
              for new, old in ((self.looks, before.looks), (self.rounds, before.rounds))),
        )  # fmt: skip

    @property
    def writes(self) -> int:
        return sum(count for (verb, _), count in self.requests.items() if verb not in READS)

    @property
    def reads(self) -> int:
        return sum(count for (verb, _), count in self.requests.items() if verb in READS)


def quantile(buckets: dict[float, float], part: float) -> float:
    """Like Prometheus' `histogram_quantile`: values are assumed to be spread evenly within a bucket."""
    total = max(buckets.values(), default=0.0)
    below, from_ = 0.0, 0.0
    for bound, count in sorted(buckets.items()):
        if total and count >= part * total:
            return (
                from_ if bound == float("inf") else from_ + (bound - from_) * (part * total - below) / (count - below)
            )
        below, from_ = count, bound
    return 0.0


class OperatorProcess:
    """`python -m plimsoll.operator` for one namespace."""

    def __init__(self, namespace: str, log: Path) -> None:
        self._namespace, self._log = namespace, log
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    def start(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = probe.getsockname()[1]
        environment = {
            **os.environ, "PLIMSOLL_NAMESPACES": self._namespace, "PLIMSOLL_HTTP_PORT": str(self._port),
            "PLIMSOLL_CANARY": f"{self._namespace}/canary", "PLIMSOLL_LOG_LEVEL": "WARNING",
        }  # fmt: skip
        with self._log.open("ab") as output:
            command = [sys.executable, "-m", "plimsoll.operator"]
            self._process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)

    def stop(self, *, kill: bool = False) -> None:
        if self._process is not None:
            self._process.kill() if kill else self._process.terminate()
            self._process.wait(30)
            self._process = None

    @property
    def highest_mb(self) -> float:
        """The peak memory of this process."""
        return self._memory("VmHWM")

    def _memory(self, name: str) -> float:
        assert self._process is not None
        assert self._process.poll() is None, f"the operator has ended: {self._log.read_text()[-2000:]}"
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(text.split(f"{name}:")[1].split()[0]) * 1024 / 1e6

    async def read(self) -> Reading:
        """Read the counters as they are now."""
        text = await asyncio.to_thread(self._scrape)
        found = Reading(memory_mb=self._memory("VmRSS"), cpu_seconds=self._cpu())
        for line in text.splitlines():
            if match := _SAMPLE.match(line):
                name, labels, value = match[1], dict(_LABEL.findall(match[2] or "")), float(match[3])
                _take(found, name, labels, value)
        return found

    def _scrape(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=30) as answer:
            return str(answer.read().decode())

    def _cpu(self) -> float:
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _take(found: Reading, name: str, labels: dict[str, str], value: float) -> None:
    if name == "plimsoll_api_requests_total":
        found.requests[labels["verb"], labels["resource"]] += int(value)
        found.refused += int(value) if not 200 <= int(labels["code"]) < 300 else 0
    elif name == "plimsoll_event_loop_lag_seconds":
        found.lag_seconds = value
    elif name == "plimsoll_reconcile_duration_seconds_bucket":
        buckets = found.looks if labels["controller"] == "fleet" else found.rounds
        buckets[float(labels["le"])] = value
