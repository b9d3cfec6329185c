"""A fleet under moves of publishers, again and again, while mediators and drained heads are killed.

The oracle is this file alone: it knows what was published, how each publication was answered and what each subscriber
was given, and nothing of sessions, logs or audits. What the audits of the sessions say in the end is held against it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import threading
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.local.conftest import wait_for
from tests.local.test_publisher_moves import FLEET, audit, connection, head_pid, security_of

from plimsoll import client
from plimsoll.cli.main import main
from plimsoll.client import aio
from plimsoll.core.spec import parse
from plimsoll.local import manifests, runtime
from plimsoll.local.head_access import HeadAccess, head_access
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

CLUSTERS = ("east", "west", "north")
PUBLISHERS = 9
EDGES = ("east-edge", "west-edge")


class Oracle:
    """What applications have seen. Numbers rise by one in each publisher's own life."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.receipts: dict[str, list[client.Receipt | aio.AsyncReceipt]] = defaultdict(list)
        self.given: dict[str, dict[str, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
        self.gaps: dict[str, list[str]] = defaultdict(list)

    def take(self, subscriber: str, items: Any) -> None:
        with self.lock:
            for item in items:
                if isinstance(item, client.Delivery):
                    number = int(item.attributes["n"])
                    self.given[subscriber][str(item.attributes["by"])].append((item.incarnation, number))
                else:
                    self.gaps[subscriber].append(item.reason)

    def faults(self) -> list[str]:
        """What was lost, repeated, reordered, left open or delivered although it was refused."""
        with self.lock:
            return [fault for name in sorted(self.receipts) for fault in self._faults_of(name)]

    def _faults_of(self, publisher: str) -> list[str]:
        answers = [one.answer.answer if one.answer is not None else "open" for one in self.receipts[publisher]]
        found = [f"{publisher}: number {n} is {a}" for n, a in enumerate(answers, 1) if a not in ("accepted",)]
        for subscriber, by in sorted(self.given.items()):
            got = by[publisher]
            numbers = [number for _, number in got]
            if len(set(numbers)) < len(numbers):
                found.append(f"{subscriber} was given a publication of {publisher} twice")
            if any(later <= earlier for (a, earlier), (b, later) in pairwise(got) if a == b):
                found.append(f"{subscriber} was given publications of {publisher} out of order")
            missing = set(range(1, len(answers) + 1)) - set(numbers)
            if missing and not self.gaps[subscriber]:
                found.append(f"{subscriber} misses {len(missing)} of {publisher}, first {min(missing)}, without a gap")
        return found


class AsyncPublishing(threading.Thread):
    """A publisher at each head, in an event loop of its own."""

    def __init__(self, ways: list[HeadAccess], oracle: Oracle, stopped: threading.Event) -> None:
        super().__init__()
        self.ways, self.oracle, self.stopped = ways, oracle, stopped

    def run(self) -> None:
        asyncio.run(self._publish())

    async def _publish(self) -> None:
        connections = [aio.AsyncConnection(way.endpoint, security=security_of(way)) for way in self.ways]
        publishers = [aio.AsyncPublisher(at, name=f"q{number}") for number, at in enumerate(connections)]
        number = 0
        while not self.stopped.is_set():
            await asyncio.sleep(0.01)
            number += 1
            for each in publishers:
                self.oracle.receipts[each.name].append(await each.publish({"n": number, "by": each.name}))
        for each in publishers:
            await each.flush(300)
        for at in connections:
            await at.close()


def mediator_pid(folder: FleetFolder) -> int:
    with ObjectStore(folder.store) as store:
        status = store.get("BrokerFleet", "pair").get("status", {})
    return int(status.get("mediator", {}).get("pid", 0))


class Attack:
    """Random rounds, by a seed."""

    def __init__(self, folder: FleetFolder, seed: int) -> None:
        self.folder, self.draw = folder, random.Random(seed)
        self.done: list[str] = []

    def round(self) -> None:
        what = self.draw.choice(["share", "even", "share", "replace", "mediator"])
        source, target = self.draw.sample(CLUSTERS, 2)
        self.done.append(f"{what} {source} {target}")
        if what == "mediator":
            killer = threading.Timer(self.draw.uniform(0.0, 0.3), self._kill_mediator)
            killer.start()
            self._rebalance(source, "--to", target, "--share", "100%")
            killer.join()
        elif what == "share":
            self._rebalance(source, "--to", target, "--share", f"{self.draw.choice([30, 60, 100])}%")
        elif what == "even":
            self._rebalance(source)
        elif main(["drain", f"{source}-head", "--wait"]) == 0:
            before = head_pid(self.folder, source)
            assert before
            os.kill(before, signal.SIGKILL)
            wait_for(lambda: head_pid(self.folder, source) not in (0, before), what="the head is back")
        else:
            main(["uncordon", f"{source}-head"])

    def _rebalance(self, source: str, *more: str) -> None:
        main(["rebalance", "--publishers", "--from", source, *more])

    def _kill_mediator(self) -> None:
        if pid := mediator_pid(self.folder):
            with contextlib.suppress(ProcessLookupError):  # killed before, and its successor is not known yet
                os.kill(pid, signal.SIGKILL)


@pytest.mark.sweep
@pytest.mark.timeout(1200)  # sessions wait for mediators that come back
@pytest.mark.parametrize("seed", [1])
def test_no_publication_is_lost_repeated_reordered_or_unknown(home: Path, seed: int):
    file = home / "fleet.yaml"
    file.write_text(FLEET)
    runtime.up_detached(parse(manifests.load([str(file)])), lambda line: None)
    folder, oracle = FleetFolder.of("pair"), Oracle()
    try:
        run(folder, oracle, Attack(folder, seed), seconds=float(os.environ.get("PLIMSOLL_ATTACK_SECONDS", "40")))
    finally:
        runtime.down(folder)


def run(folder: FleetFolder, oracle: Oracle, attack: Attack, seconds: float) -> None:
    reading = connection(head_access(folder, "west"))
    for edge in EDGES:
        subscriber = client.Subscriber(
            reading, name=edge, prefer=edge, on_batch=lambda items, edge=edge: oracle.take(edge, items)
        )
        subscriber.subscribe("[n,>,0]")
        subscriber.wait_acknowledged()
    connections = {cluster: connection(head_access(folder, cluster)) for cluster in CLUSTERS}
    publishers = [
        client.Publisher(connections[CLUSTERS[number % 3]], name=f"p{number}") for number in range(PUBLISHERS)
    ]
    stopped = threading.Event()

    def publish() -> None:
        number = 0
        while not stopped.wait(0.01):
            number += 1
            for each in publishers:
                oracle.receipts[each.name].append(each.publish({"n": number, "by": each.name}))

    together = AsyncPublishing([head_access(folder, cluster) for cluster in CLUSTERS], oracle, stopped)
    thread = threading.Thread(target=publish)
    thread.start()
    together.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        attack.round()
    stopped.set()
    thread.join(300)
    together.join(300)
    for each in publishers:
        each.flush(300)
    sent = {name: len(some) for name, some in oracle.receipts.items()}

    def all_given() -> bool:
        with oracle.lock:
            return all(
                len(oracle.given[edge][name]) >= sent[name] or oracle.gaps[edge] for edge in EDGES for name in sent
            )

    wait_for(all_given, what="all is delivered, or a gap was reported")
    faults = oracle.faults()
    print(f"{sum(sent.values())} publications, {len(attack.done)} rounds: {attack.done}; gaps {dict(oracle.gaps)}")
    assert not faults, "\n".join([*faults[:10], *attack.done])
    counted = audit(folder)
    print(f"audits: {dict(counted)}")
    assert 0 < counted["subscribers"] <= counted["asked"]
    assert (counted["duplicated"], counted["reordered"]) == (0, 0)
    assert not counted["lost"] or any(oracle.gaps.values())
    for opened in (*connections.values(), reading):
        opened.close()
