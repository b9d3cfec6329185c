"""Stand-in heads: control sockets that send the load reports of simulated brokers to every collector that connects.

    python -m bench.telemetry.heads PLAN

PLAN is a JSON file {clusters: {name: {port, brokers}}, interval_seconds, seconds}. Reports are spread evenly over each
interval, as those of brokers that were started one after another. Prints `bound`, `connected`, and `sent N` at the end.
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import zmq

from plimsoll.core.protocol import messages, wire

EPOCH = 1


class ReportingBroker:
    """One simulated broker; `peers` are the collectors connected to its head."""

    def __init__(self, name: str, cluster: str, router: zmq.Socket[bytes], peers: set[bytes]) -> None:
        self.name, self.cluster, self.router, self.peers = name, cluster, router, peers
        self.seq = 0
        self.random = random.Random(name)

    def report(self) -> int:
        """Send one report to each collector; returns the number sent."""
        if not self.peers:
            return 0
        self.seq += 1
        frame = wire.control_frame(messages.LoadUpdate(self._report()))
        for peer in self.peers:
            self.router.send_multipart([peer, frame])
        return len(self.peers)

    def _report(self) -> dict[str, Any]:
        draw = self.random.random
        is_head = self.name.endswith("-head")
        head = {
            "publishers": 4, "publisher_rates": {f"quotes-{i}": 10 * draw() for i in range(4)},
            "publisher_bytes_per_second": {f"quotes-{i}": 2000 * draw() for i in range(4)},
            "covers": {f"{self.cluster}-e{i}": 50 for i in range(9)}, "log_bytes": 10**6,
            "log_limit_bytes": 10**7, "log_bytes_per_second": 5e4 * draw(),
        }  # fmt: skip
        edge = {"cover_subscriptions": 50, "output_queue_bytes": 0, "match_base_seconds": 1e-5 * draw(),
                "match_seconds_per_match": 1e-6 * draw()}  # fmt: skip
        return {
            "schema": 1, "broker": self.name, "cluster": self.cluster, "role": "head" if is_head else "edge",
            "epoch": EPOCH, "seq": self.seq, "time_us": time.monotonic_ns() // 1000,
            "clock_us": time.time_ns() // 1000, "interval_seconds": 5.0, "state": "OK",
            "input_utilization": draw(), "output_utilization": draw(), "match_delay_seconds": 1e-4 * draw(),
            "index_delay_seconds": 1e-5 * draw(), "input_rate": 40 * draw(), "output_rate": 900 * draw(),
            "output_bytes_per_second": 1e5 * draw(), "input_queue_delay_seconds": 1e-3 * draw(),
            "output_queue_delay_seconds": 1e-3 * draw(), "cpu_ratio": draw(), "memory_ratio": draw(),
            "balanced_set": [], "subscribers": 200, "subscriptions": 400, "input_queue_messages": 0,
            "output_queue_messages": 3, **(head if is_head else edge),
            "counters": {"arrivals": 100 * self.seq, "deliveries": 900 * self.seq, "bytes_out": 10**5 * self.seq,
                         "said_Ack": 7 * self.seq, "said_Deliveries": 90 * self.seq, "heard_Pub": 100 * self.seq},
        }  # fmt: skip


def main(plan: dict[str, Any]) -> int:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    context.set(zmq.MAX_SOCKETS, 4096)
    poller, peers_of, brokers = zmq.Poller(), {}, []
    for name, cluster in plan["clusters"].items():
        router = context.socket(zmq.ROUTER)
        router.linger = 0
        router.bind(f"tcp://127.0.0.1:{cluster['port']}")
        poller.register(router, zmq.POLLIN)
        peers_of[router] = set[bytes]()
        brokers += [ReportingBroker(each, name, router, peers_of[router]) for each in cluster["brokers"]]
    random.Random(1).shuffle(brokers)
    print("bound", flush=True)

    def listen(seconds: float) -> None:
        for router, _ in poller.poll(max(0, int(seconds * 1000))):
            while router.poll(0):
                peer, _ = router.recv_multipart()
                peers_of[router].add(peer)

    while not all(peers_of.values()):
        listen(0.1)
    print("connected", flush=True)
    sent, started, at = 0, time.monotonic(), 0
    while time.monotonic() - started < plan["seconds"]:
        due = (time.monotonic() - started) / plan["interval_seconds"] * len(brokers)
        while at < due:
            sent += brokers[at % len(brokers)].report()
            at += 1
        listen(0.02)
    print(f"sent {sent}", flush=True)
    sys.stdin.read()  # keep the connections until the receiver has read everything
    context.destroy()
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text())))
