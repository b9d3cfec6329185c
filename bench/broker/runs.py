"""Runs: the processes of `bench.broker.processes` put together, with what is measured between their ends."""

from __future__ import annotations

import time
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from bench.broker.actors import spread
from bench.broker.processes import (
    PATIENCE_SECONDS,
    PLAIN_KEYS,
    SCRAPE_SECONDS,
    Child,
    RunKeys,
    cpu_seconds,
    feed,
    publish,
    serve,
    sink,
    stand_by,
)

from plimsoll.core.config import DiskLog


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"a broker was not ready after {PATIENCE_SECONDS:g} s")
        time.sleep(0.01)


class Run:
    """Processes that end together, even if one of them fails to start."""

    def __init__(self) -> None:
        self.children: list[Child] = []

    def child(self, work: Callable[..., None], *arguments: Any) -> tuple[Child, Any]:
        """Start a process and wait for its first answer; without one, all processes are ended."""
        self.children.append(Child(work, *arguments))
        try:
            return self.children[-1], self.children[-1].ask()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        for child in reversed(self.children):
            child.end()


class EdgeRun(Run):
    """An edge process between a feeder and sinks."""

    def __init__(
        self,
        texts: list[str],
        bodies: list[bytes],
        links: int,
        keys: RunKeys = PLAIN_KEYS,
        *,
        options: dict[str, Any] | None = None,
        decode: bool = False,
    ) -> None:
        super().__init__()
        self.feeder, at_head = self.child(feed, keys, bodies)
        self.edge, at_edge = self.child(serve, "edge", at_head, keys, options or {})
        self.url, self.scrapes = at_edge[2].replace("tcp:", "http:"), 0
        wait_until(lambda: self.edge.ask("status")["ready"])
        self.sink, _ = self.child(sink, at_edge[0], keys, spread(texts, links), 0, decode, False)

    def run(self, count: int, per_frame: int = 1, rate: float = 0.0, *, deliveries: int) -> dict[str, float]:
        """Feed `count` publications; returns when the sink has all deliveries."""
        got = self.sink.ask("count")
        before, rounds = self.edge.ask("cpu")
        self.feeder.ask("go", count, per_frame, rate)
        started = time.monotonic()
        target = got[0] + deliveries
        now, most = got, started + PATIENCE_SECONDS
        while now[0] < target:
            if time.monotonic() > most:
                raise TimeoutError(f"{now[0] - got[0]} of {deliveries} deliveries arrived; {self.edge.ask('status')}")
            time.sleep(0.02)
            now = self.sink.ask("count")
            if self.url and time.monotonic() > started + self.scrapes * SCRAPE_SECONDS:
                self.scrape()
        seconds = time.monotonic() - started
        after, rounds_after = self.edge.ask("cpu")
        used = after.since(before)
        return {
            "seconds": seconds,
            "deliveries": now[0] - got[0],
            "frames": now[1] - got[1],
            "rounds": rounds_after - rounds,
            "loop_cpu": used.loop,
            "process_cpu": used.process,
            "publications": count,
        }

    def scrape(self) -> None:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=PATIENCE_SECONDS) as answer:  # noqa: S310  # loopback
            answer.read()
        self.scrapes += 1


class DeliveryRun(Run, ABC):
    """A `publisher` and a `sink` with a system under test between them."""

    publisher: Child
    sink: Child

    @abstractmethod
    def servers(self) -> list[int]:
        """The processes of the system under test."""

    @abstractmethod
    def state(self) -> str:
        """What is said of the system when deliveries are missing."""

    def held(self) -> dict[str, float]:
        """How long output waited for a log since the last call, as `HeldTimes.figures`; nothing if none did."""
        return {}

    def deliver(self, count: int, rate: float, deliveries: int) -> dict[str, Any]:
        """Publish at a rate, in publications/s; returns when all deliveries have arrived."""
        got = self.sink.ask("count")
        began = self.cpu()
        started = time.monotonic()
        self.publisher.pipe.send(("go", count, rate))
        now = got
        while now[0] < got[0] + deliveries:
            if time.monotonic() > started + PATIENCE_SECONDS + count / rate:
                raise TimeoutError(f"{now[0] - got[0]} of {deliveries} deliveries arrived; {self.state()}")
            time.sleep(0.05)
            latest = self.sink.ask("count")
            now = (*latest[:3], now[3] + latest[3] if now is not got else latest[3], latest[4])
        seconds = time.monotonic() - started
        _, late = self.publisher.ask()
        servers, ends = (after - before for after, before in zip(self.cpu(), began, strict=True))
        return {
            "seconds": seconds,
            "publications": count,
            "deliveries": deliveries,
            "server_cpu": servers,
            "end_cpu": ends,
            "publisher_late_seconds": late,
            "latencies_us": sorted(now[3]),
        }

    def cpu(self) -> tuple[float, float]:
        """CPU seconds of the servers, and of publisher and sink, with all their threads."""
        ends = (self.publisher.pid, self.sink.pid)
        return sum(map(cpu_seconds, self.servers())), sum(map(cpu_seconds, ends))


class ChainRun(DeliveryRun):
    """A publisher, a head, an edge and sinks: both hops. `window`: publications without an answer; None: no limit."""

    def __init__(
        self,
        texts: list[str],
        bodies: list[bytes],
        links: int,
        keys: RunKeys = PLAIN_KEYS,
        disk_log: DiskLog | None = None,
        *,
        has_standby: bool = False,
        window: int | None = None,
    ) -> None:
        super().__init__()
        options = {"disk_log": disk_log, "standby": has_standby, "window": window}
        self.head, at_head = self.child(serve, "head", ("", ""), keys, options)
        if has_standby:
            self.standby, _ = self.child(stand_by, at_head[0])
            wait_until(lambda: self.head.ask("disk")["standby_in_sync"])
        self.edge, at_edge = self.child(serve, "edge", at_head, keys, {})
        wait_until(lambda: self.edge.ask("status")["ready"] and self.head.ask("status")["ready"])
        self.sink, _ = self.child(sink, at_edge[0], keys, spread(texts, links), 0, False, True)
        self.publisher, _ = self.child(publish, at_head[0], keys, bodies)

    def servers(self) -> list[int]:
        return [each.pid for each in self.children if each not in (self.publisher, self.sink)]

    def state(self) -> str:
        return str(self.edge.ask("status"))

    def held(self) -> dict[str, float]:
        found: dict[str, float] = self.head.ask("held")
        return found

    def run(self, count: int, rate: float, *, deliveries: int) -> dict[str, Any]:
        """As `deliver`, with the CPU seconds of the two loops."""
        brokers = {"head": self.head, "edge": self.edge}
        before = {name: child.ask("cpu")[0] for name, child in brokers.items()}
        found = self.deliver(count, rate, deliveries)
        used = {name: child.ask("cpu")[0].since(before[name]) for name, child in brokers.items()}
        return {**found, "head_cpu": used["head"].loop, "edge_cpu": used["edge"].loop}
