"""How long publishing stops when the head is killed and its standby leads: of a fleet of processes, again and again.

    python -m bench.broker.promotions [--count 100] [--kind killed|silent|planned ...] [--json FILE]

Each time the process that leads gets SIGKILL, SIGSTOP, which pauses it, or SIGTERM as for a planned change: the kinds
that were asked for in turn; the next one comes once the other process is in sync. A pause is the longest time
without an answer to any publisher around that. After some promotions there is a new fleet: a process that ends again
and again is started later each time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from plimsoll import client
from plimsoll.core.head.standby.leadership import stored_leadership
from plimsoll.core.spec import parse
from plimsoll.local import manifests, runtime
from plimsoll.local.head_access import head_access
from plimsoll.local.storage.fleet_folder import FleetFolder
from plimsoll.local.storage.object_store import ObjectStore

FLEET = """
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerFleet
metadata: {name: promotions}
---
apiVersion: plimsoll.dev/v1alpha1
kind: HardwareProfile
metadata: {name: small}
spec: {memory: 128Mi}
---
apiVersion: plimsoll.dev/v1alpha1
kind: BrokerCluster
metadata: {name: east}
spec:
  head: {profile: small, standby: 1}
  edges: [{name: edge, profile: small, replicas: 1}]
"""
PUBLISHERS, INTERVAL_SECONDS = 5, 0.01
KINDS = {"killed": signal.SIGKILL, "silent": signal.SIGSTOP, "planned": signal.SIGTERM}
DEFAULT_KINDS = ("killed", "planned")
PATIENCE_SECONDS = 60.0
OF_ONE_FLEET = 4
T = TypeVar("T")


def wait_until(what: str, holds: Callable[[], T]) -> T:
    """What `holds` returns once that is true."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := holds()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE_SECONDS:g} s until {what}")
        time.sleep(0.02)
    return found


class Publishing:
    """Publishers that never stop; `times`: when each answer came."""

    def __init__(self, folder: FleetFolder) -> None:
        way = head_access(folder, "east")
        security: Any = client.Curve(secret=str(way.secret_key_file), server=way.server)
        self._connection = client.Connection(way.endpoint, security=security)
        self.times: list[float] = []
        self._publishers = [
            client.Publisher(self._connection, name=f"p{n}", on_answer=lambda answers: self._note())
            for n in range(PUBLISHERS)
        ]
        self.receipts: list[client.Receipt] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _note(self) -> None:
        self.times.append(time.monotonic())

    def _run(self) -> None:
        for number in itertools.count():
            if self._stopped.wait(INTERVAL_SECONDS):
                return
            self.receipts += [each.publish({"n": number}) for each in self._publishers]

    def pause_since(self, then: float) -> float:
        """The longest time without an answer from just before `then` on, in seconds."""
        times = [at for at in self.times if at > then - 1.0]
        return max((b - a for a, b in itertools.pairwise(times)), default=0.0)

    def end(self) -> dict[str, int]:
        """Stop, and count what became of all publications."""
        self._stopped.set()
        self._thread.join(PATIENCE_SECONDS)
        for each in self._publishers:
            each.flush(PATIENCE_SECONDS)
        answers = [None if each.answer is None else each.answer.answer for each in self.receipts]
        self._connection.close()
        return {str(name): answers.count(name) for name in dict.fromkeys(answers)}


def status(folder: FleetFolder) -> dict[str, Any]:
    with ObjectStore(folder.store) as store:
        found: dict[str, Any] = store.get("BrokerCluster", "east").get("status", {})
    return found


def leader_pid(folder: FleetFolder) -> int:
    return int(status(folder).get("head", {}).get("pid", 0))


def in_sync(folder: FleetFolder) -> bool:
    return stored_leadership(status(folder)).standby > 0


def promote(folder: FleetFolder, traffic: Publishing, sign: signal.Signals) -> float:
    """End the process that leads; the pause of publishing in seconds."""
    wait_until("the standby is in sync", lambda: in_sync(folder))
    before = stored_leadership(status(folder))
    pid = wait_until("the head has a process", lambda: leader_pid(folder))
    then = time.monotonic()
    os.kill(pid, sign)
    wait_until("the standby leads", lambda: stored_leadership(status(folder)).term > before.term)
    answered = len(traffic.times)
    wait_until("publications are answered again", lambda: len(traffic.times) > answered + 20)
    wait_until("the status has the process that leads", lambda: leader_pid(folder) not in (0, pid))
    return traffic.pause_since(then)


def measure(folder: FleetFolder, count: int, kinds: Sequence[str]) -> tuple[dict[str, list[float]], dict[str, int]]:
    """`count` promotions, of these kinds in turn: the pauses of each kind, and what became of publications."""
    traffic = Publishing(folder)
    pauses: dict[str, list[float]] = {kind: [] for kind in kinds}
    try:
        wait_until("publications are answered", lambda: len(traffic.times) > 20)
        for number in range(count):
            kind = kinds[number % len(kinds)]
            pauses[kind].append(promote(folder, traffic, KINDS[kind]))
    finally:
        answers = traffic.end()
    return pauses, answers


def run_fleet(count: int, kinds: Sequence[str]) -> tuple[dict[str, list[float]], dict[str, int]]:
    """As `measure`, of a fleet of its own."""
    with tempfile.TemporaryDirectory() as place:
        os.environ["PLIMSOLL_HOME"] = place
        file = Path(place, "fleet.yaml")
        file.write_text(FLEET)
        runtime.up_detached(parse(manifests.load([str(file)])), lambda line: None)
        folder = FleetFolder.of("promotions")
        try:
            return measure(folder, count, kinds)
        finally:
            runtime.down(folder)


def quantiles(pauses: Sequence[float]) -> dict[str, float]:
    """Of some pauses, in seconds."""
    if not pauses:
        return {}
    ordered = sorted(pauses)
    at = {"p50": 0.5, "p99": 0.99}
    return {
        **{name: ordered[min(len(ordered) - 1, int(part * len(ordered)))] for name, part in at.items()},
        "longest": ordered[-1], "count": len(ordered),
    }  # fmt: skip


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.broker.promotions", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="promotions (default %(default)s)")
    parser.add_argument(
        "--kind", action="append", choices=sorted(KINDS), help="how a process ends; may be repeated "
        f"(default {' and '.join(DEFAULT_KINDS)}, in turn)"
    )  # fmt: skip
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file")
    options = parser.parse_args(arguments)
    kinds: Sequence[str] = options.kind or DEFAULT_KINDS
    found: dict[str, Any] = {"pauses": {kind: [] for kind in kinds}, "answers": Counter()}
    for begun in range(0, options.count, OF_ONE_FLEET):
        pauses, answers = run_fleet(min(OF_ONE_FLEET, options.count - begun), kinds)
        found["answers"].update(answers)
        for kind, some in pauses.items():
            found["pauses"][kind] += some
        print(f"{begun + sum(map(len, pauses.values()))} of {options.count}", flush=True)
    found |= {kind: quantiles(some) for kind, some in found["pauses"].items()}
    for kind in kinds:
        print(kind, {name: round(value, 3) for name, value in found[kind].items()})
    print("answers:", dict(found["answers"]))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))
    return 0 if set(found["answers"]) == {"accepted"} else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
