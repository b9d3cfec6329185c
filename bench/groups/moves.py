"""What joins and moves of slices cost: until all have their share, and what an item waits for whose slice moves.

The latency of an item is from its publication until a consumer takes it. Of a slice that has just come to a consumer
the first item may have waited for the move; all other items are the baseline of the same run.
"""

from __future__ import annotations

import statistics
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

from bench.broker.processes import Child
from bench.groups.clients import WAIT_SECONDS
from bench.groups.fleet import PATIENCE_SECONDS, BenchFleet, takers

from plimsoll import client

SLICES = 20
ITEMS_PER_SECOND = 1_000.0
PAUSE_SECONDS = 1.0
"""How long a consumer stays before it leaves, and the other way round."""


def joined(slices: int, consumers: int) -> dict[str, float]:
    """Seconds until all consumers that join at once have an even share, and then until one more has its own."""
    fleet = BenchFleet()
    children: list[Child] = []
    try:
        fleet.make_group(slices)
        began = time.monotonic()
        children = takers(fleet, "group", consumers, slices)
        await_shares(children, consumers, slices)
        at_once = time.monotonic() - began
        began = time.monotonic()
        children += takers(fleet, "group", 1, slices)
        await_shares(children, consumers + 1, slices)
        return {"all_at_once_seconds": round(at_once, 2), "one_more_seconds": round(time.monotonic() - began, 2)}
    finally:
        for child in children:
            child.end()
        fleet.end()


def await_shares(children: list[Child], consumers: int, slices: int) -> None:
    """Until each consumer has its even share, one slice less at most, and together they have all."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        having = [found for child in children for found in child.ask("slices")]
        if len(having) == consumers and sum(having) == slices and min(having) >= slices // consumers - 1:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"{len(having)} consumers have {sum(having)} slices, the fewest {min(having, default=0)}"
            )
        time.sleep(0.01)


def pace(pipe: Connection, head: str) -> None:
    """A publisher as a process: evenly, and each item has the time of its publication. Any question ends it."""
    with client.Connection(head, security="plain", name="bench-pace") as connection:
        publisher, n, due = client.Publisher(connection, name="pace"), 0, time.monotonic()
        pipe.send(None)
        while not pipe.poll():
            publisher.publish({"class": "group", "g": n % SLICES, "n": n, "at": time.monotonic()})
            n, due = n + 1, due + 1.0 / ITEMS_PER_SECOND
            time.sleep(max(0.0, due - time.monotonic()))
        publisher.flush(60.0)
        pipe.send(n)


class Timed:
    """A consumer that notes how long each item was on its way. `first`: of those that were a slice's first here."""

    def __init__(self, head: str, name: str) -> None:
        self.first: list[float] = []
        self.other: list[float] = []
        self._new: set[int] = set()
        self.connection = client.Connection(head, security="plain", name=f"bench-{name}")
        self.member = self.connection.group("group").subscribe(name=name, timeout=60.0, on_change=self._changed)
        self.thread = threading.Thread(target=self._take, daemon=True)
        self.thread.start()

    def _changed(self, change: client.SlicesChanged) -> None:
        self._new.update(change.came)

    def _take(self) -> None:
        while True:
            try:
                item = self.member.receive(WAIT_SECONDS)
            except client.errors.WaitTimeoutError:
                continue  # nothing has come
            except client.errors.ClosedError:
                return  # it has left
            seconds = time.monotonic() - float(item.attributes["at"])
            if item.slice in self._new:
                self._new.discard(item.slice)
                self.first.append(seconds)
            else:
                self.other.append(seconds)

    def leave(self) -> None:
        self.member.stop()
        self.thread.join()
        self.member.close()
        self.connection.close()


def take_timed(pipe: Connection, head: str, name: str) -> None:
    """A timed consumer as a process. `begin`: forget what was noted; `end`: leave, and say what was."""
    timed = Timed(head, name)
    pipe.send(None)
    while pipe.recv() == ("begin",):
        timed.first, timed.other = [], []
        pipe.send(None)
    timed.leave()
    pipe.send((timed.first, timed.other))


def moved(rounds: int) -> dict[str, Any]:
    """Two consumers stay while a third joins and leaves: milliseconds of first items of slices, and of all others."""
    fleet = BenchFleet()
    staying: list[Child] = []
    first, other = list[float](), list[float]()
    try:
        fleet.make_group(SLICES)
        staying = [Child(take_timed, fleet.endpoint, f"stays-{i}") for i in range(2)]
        for child in staying:
            child.ask()
        publisher = Child(pace, fleet.endpoint)
        publisher.ask()
        time.sleep(PAUSE_SECONDS)  # the two have shared out the slices
        for child in staying:
            child.ask("begin")
        for n in range(rounds):
            comes = Timed(fleet.endpoint, f"comes-{n}")
            time.sleep(PAUSE_SECONDS)  # it works
            comes.leave()
            first, other = first + comes.first, other + comes.other
            time.sleep(PAUSE_SECONDS)  # the others work
        publisher.ask("end")
        publisher.end()
        for child in staying:
            its_first, its_other = child.ask("end")
            first, other = first + its_first, other + its_other
    finally:
        for child in staying:
            child.end()
        fleet.end()
    return {"moved": len(first), "first_items": _milliseconds(first), "other_items": _milliseconds(other)}


def _milliseconds(seconds: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(seconds, n=100)
    return {"p50": round(1e3 * cuts[49], 2), "p99": round(1e3 * cuts[98], 2), "max": round(1e3 * max(seconds), 2)}
