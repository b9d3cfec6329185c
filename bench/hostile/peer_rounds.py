"""`python -m bench.hostile.peer_rounds`: the longest round of an edge and of a head under each attack of a peer.

Machines without sockets, in virtual time. A round takes what the broker's loop would: at most 256 frames or 32 KiB of
them, and one frame of any size. The figures are milliseconds of processor time of the longest round, the shortest of
some runs; bytes that the attacker was sent for each that it sent; and the peak of memory that Python allocated beside
what it had before, in MiB (`--memory`, in a run of its own, since counting slows it down).
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

from bench.broker.actors import EDGE, HEAD
from bench.hostile.__main__ import AttackedEdge
from bench.hostile.peer_attacks import ATTACKS, HostilePeer, PeerAttack
from bench.hostile.steps import CoveredHead

from plimsoll.core.edge.machine import Edge
from plimsoll.core.head.machine import Head
from plimsoll.core.matching import warm_up
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

ROUND_FRAMES, ROUND_BYTES = 256, 32 * 1024


class PeerRig:
    """A broker that serves others, and an attacker with some links. `rounds`: milliseconds of each."""

    def __init__(self, attack: PeerAttack) -> None:
        self.attack = attack
        self.rig: Any
        self.rig = AttackedEdge() if attack.at == "edge" else CoveredHead()
        self.broker: Edge | Head = getattr(self.rig, attack.at)
        if isinstance(self.broker, Head):
            self.rig.tell(EDGE, msg.EdgeReport("tcp://e:1", "", msg.Cover(1, [], []), []))
        self.peers = {b"h%d" % i: HostilePeer("hostile", 9_000 + i) for i in range(attack.links)}
        self.rounds: list[float] = []
        self.bytes_in = self.bytes_out = 0
        for key, peer in self.peers.items():
            self.round(key, [peer.hello()])

    def run(self, bursts: int) -> float:
        """The longest round of this number of bursts of each link, and of the rounds after them."""
        waiting = {key: self.attack.bursts(peer) for key, peer in self.peers.items()}
        self.rounds.clear()
        for _ in range(bursts):
            for key, source in waiting.items():
                self._burst(key, next(source))
        for _ in range(50):
            self.round(b"", [])
        return max(self.rounds)

    def _burst(self, key: bytes, frames: list[bytes]) -> None:
        part: list[bytes] = []
        for frame in frames:
            part.append(frame)
            if len(part) == ROUND_FRAMES or sum(map(len, part)) >= ROUND_BYTES:
                self.round(key, part)
                part = []
        self.round(key, part)

    def round(self, key: bytes, frames: list[bytes]) -> None:
        """One round of the broker, and what its peers answer to that."""
        rig, broker = self.rig, self.broker
        rig.now += 0.001
        self.bytes_in += sum(map(len, frames))
        if isinstance(broker, Edge):
            rig.feeder.poll(rig.now)
            frames_of_head = [data for _, data in rig.feeder.data_to_send()]
        started = time.thread_time()
        if isinstance(broker, Edge) and frames_of_head:
            broker.receive(HEAD, frames_of_head, rig.now)
        if frames:
            broker.receive(key, frames, rig.now)
        broker.poll(rig.now)
        out = broker.data_to_send()
        self.rounds.append((time.thread_time() - started) * 1e3)
        broker.control_to_send(), broker.dials_to_make()
        for to, data in out:
            self._answer(to, data)

    def _answer(self, to: Any, data: bytes) -> None:
        rig, broker = self.rig, self.broker
        if to in self.peers:
            self.bytes_out += len(data)
            frame = wire.decode_frame(data)
            if self.attack.reads and isinstance(frame, wire.Data) and frame.link == self.peers[to].link:
                self.peers[to].received = frame.seq
                broker.receive(to, [wire.ack_frame(frame.link, frame.seq, 1 << 40)], rig.now)
        elif isinstance(broker, Head):
            frame = wire.decode_frame(data)
            if isinstance(frame, wire.Data):
                client = rig.by_peer[to]
                client.received = frame.seq
                broker.receive(to, [wire.ack_frame(client.link, frame.seq, 1 << 40)], rig.now)
        elif to == HEAD:
            rig.feeder.receive(b"edge", [data], rig.now)
        elif to in rig.clients and (answers := rig.clients[to].receive(data)):
            broker.receive(to, answers, rig.now)


def measured(attack: PeerAttack, options: argparse.Namespace) -> dict[str, float]:
    row = {"longest_round_ms": float("inf")}
    for _ in range(options.runs):
        rig = PeerRig(attack)
        row["longest_round_ms"] = min(row["longest_round_ms"], rig.run(options.bursts))
        row["answer_ratio"] = rig.bytes_out / rig.bytes_in
        del rig
        gc.collect()
    if options.memory:
        rig = PeerRig(attack)
        tracemalloc.start()
        rig.run(options.bursts)
        row["peak_mib"] = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="attacks whose name has this in it")
    parser.add_argument("--bursts", type=int, default=40, help="of each link")
    parser.add_argument("--runs", type=int, default=2, help="the shortest counts, so that one disturbance does not")
    parser.add_argument("--memory", action="store_true", help="measure memory, too")
    parser.add_argument("--json", type=Path, default=Path("bench-report/hostile-peer-rounds.json"))
    options = parser.parse_args()
    warm_up()
    gc.disable()
    rows: dict[str, dict[str, float]] = {}
    for attack in ATTACKS:
        if options.only in attack.name:
            row = rows[attack.name] = measured(attack, options)
            shown = "  ".join(f"{name} {value:8.2f}" for name, value in row.items())
            print(f"{attack.name:42} {shown}", flush=True)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
