"""`python -m bench.hostile`: searches for input that is allowed and costs an edge its longest round.

Fitness is cost: a genome of subscriptions (`inputs`) is sent to an edge that serves others, as one change. What
counts is the longest round of the edge, in milliseconds of processor time, until all of it is done and withdrawn again.
Genomes are drawn, and the dearest of them mutated, for a bounded time. Beside the worst round stands the longest round
without an attacker, in the same process.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
from collections.abc import Hashable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.broker.actors import bodies_of
from bench.broker.machines import EdgeRig
from bench.hostile.inputs import Gene, drawn, mutated, texts
from bench.matching.workloads import workload

from plimsoll.core.matching import warm_up
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info

ATTACKER = b"attacker"
ROUNDS_AT_MOST = 20_000


class AttackedEdge(EdgeRig):
    """An edge with 20 links of others, 100 subscriptions each, and one attacker. `rounds`: milliseconds of each."""

    def __init__(self) -> None:
        load = workload("paper", 2_000)
        super().__init__([str(each) for each in load.subscriptions()], bodies_of(load.publications), 20)
        self.rounds: list[float] = []
        self.sent = 0
        self.acked = 0
        self.edge.receive(ATTACKER, [wire.hello_frame(4242, 0, False, Info("attacker", "client", 1))], self.now)
        self.attack_records = [wire.encode(msg.Resume(1, "attacker", (1, 1), 1, [], msg.Policy(), None, []))]
        self.version = 1
        self.send_attack()
        self.run_out()

    def attack(self, subscriptions: list[str]) -> None:
        """Send a list as one change, and wait until the edge is at rest; then withdraw it."""
        self.rounds.clear()
        items = [msg.SubscriptionItem(i, text) for i, text in enumerate(subscriptions, 1)]
        self.version += 1
        self.attack_records = [wire.encode(msg.Subs(1, self.version, items, []))]
        self.send_attack()
        self.run_out()
        self.version += 1
        self.attack_records = [wire.encode(msg.Subs(1, self.version, [], [item.id for item in items]))]
        self.send_attack()
        self.run_out()

    def run_out(self) -> None:
        """Rounds until no work waits, and one with a publication for the others in between."""
        for at in range(ROUNDS_AT_MOST):
            before = self.edge_seconds
            self.exchange()
            self.rounds.append((self.edge_seconds - before) * 1e3)
            if not self.edge.client_intake.waiting and self.edge.subscription_table.is_tidy and at > 3:
                return
        raise RuntimeError("the edge does not come to rest")

    def to_client(self, peer: Hashable, data: bytes) -> None:
        if peer == ATTACKER:
            self._answer_attacker(data)
        else:
            super().to_client(peer, data)

    def _answer_attacker(self, data: bytes) -> None:
        frame = wire.decode_frame(data)
        if isinstance(frame, wire.Data):
            self.acked = frame.seq
            self.edge.receive(ATTACKER, [wire.ack_frame(4242, frame.seq, 1 << 30)], self.now)

    def send_attack(self) -> None:
        self.sent += 1
        frame = wire.data_frame(4242, 0, self.sent, self.acked, 1 << 30, self.attack_records, len(self.attack_records))
        started = time.thread_time()
        self.edge.receive(ATTACKER, [frame], self.now)
        self.rounds.append((time.thread_time() - started) * 1e3)


def cost_of(rig: AttackedEdge, genome: list[Gene]) -> float:
    """The longest round of an attack, in milliseconds; the shorter of two runs, so that one disturbance counts less."""
    subscriptions = texts(genome)
    costs = []
    for _ in range(2):
        rig.attack(subscriptions)
        costs.append(max(rig.rounds))
    return min(costs)


def search(rig: AttackedEdge, seconds: float, draw: random.Random) -> list[dict[str, Any]]:
    """The dearest genomes that a bounded search finds, dearest first."""
    best: list[tuple[float, list[Gene]]] = []
    until = time.monotonic() + seconds
    tried = 0
    while time.monotonic() < until:
        fresh = len(best) < 10 or draw.random() < 0.3
        genome = [drawn(draw) for _ in range(draw.randint(1, 3))] if fresh else mutated(draw.choice(best)[1], draw)
        best.append((cost_of(rig, genome), genome))
        best.sort(key=lambda pair: -pair[0])
        del best[10:]
        tried += 1
    return [
        {"longest_round_ms": cost, "tried": tried, "genome": [asdict(gene) for gene in genome]} for cost, genome in best
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the search")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=Path("bench-report/hostile.json"))
    options = parser.parse_args()
    warm_up()
    gc.disable()
    rig = AttackedEdge()
    rig.rounds.clear()
    for _ in range(200):
        rig.run_out()
    quiet = max(rig.rounds)
    found = search(rig, options.seconds, random.Random(options.seed))
    print(f"longest round without an attacker: {quiet:.2f} ms; {found[0]['tried']} attacks tried")
    for row in found:
        print(f"{row['longest_round_ms']:8.2f} ms  {row['genome']}")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"quiet_ms": quiet, "found": found}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
