"""Stand-ins for brokers: one process that answers on all their control sockets, under their keys.

    python -m bench.operator.brokers ADDRESS

Each line of its input is a broker that has started: {name, port, secret, edges}; without `edges` it is an edge. Heads
send the load of each of their brokers every second, with changing figures, list the subscribers of their edges, and
complete a commanded hand-over at once. Publications, links and faults are not simulated.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

import zmq

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

EPOCH = 1
INTERVAL_SECONDS = 1.0
SUBSCRIBERS = 50
"""Subscribers of each edge at the start."""


class SimulatedBroker:
    """One simulated broker. A head keeps the subscribers of all edges of its cluster."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], started: dict[str, Any], address: str) -> None:
        self.name: str = started["name"]
        self.is_head = "edges" in started
        self.served: dict[str, list[str]] = {
            edge: [f"{edge}-s{number:02}" for number in range(SUBSCRIBERS)] for edge in started.get("edges", [])
        }
        self.mediators: set[bytes] = set()
        self._moves: dict[str, msg.Outcome] = {}
        self._plans: dict[str, msg.HandoverPlan] = {}
        self._seq = 0
        self._random = random.Random(self.name)
        self.report_at = time.monotonic() + self._random.random() * INTERVAL_SECONDS
        self.socket = context.socket(zmq.ROUTER)
        self.socket.linger = 0
        self.socket.curve_server = True
        self.socket.curve_secretkey = started["secret"].encode()
        self.socket.bind(f"tcp://{address}:{started['port']}")

    def listen(self) -> None:
        """Answer all frames that have arrived."""
        while self.socket.poll(0):
            peer, data = self.socket.recv_multipart()
            frame = wire.decode_frame(data)
            assert isinstance(frame, wire.Control)
            records = [msg.decode(msg.control, raw) for raw in frame.records]
            answers = [answer for record in records for answer in self._answers(peer, record)]
            if answers:
                self.socket.send_multipart([peer, wire.control_frame(*answers)])

    def report(self) -> None:
        """Send the load of each broker of the cluster to the mediator."""
        self.report_at += INTERVAL_SECONDS
        self._seq += 1
        for name in (self.name, *self.served):
            frame = wire.control_frame(msg.LoadUpdate(self._load(name)))
            for peer in self.mediators:
                self.socket.send_multipart([peer, frame])

    # -- answers

    def _answers(self, peer: bytes, record: Any) -> Iterator[Any]:
        match record:
            case msg.Identify():
                self.mediators = {peer}  # a new mediator replaces the one before it
            case msg.StatusQuery(id=number):
                yield msg.StatusReply(number, self._status())
            case msg.ListSubscribers(id=number, edge=edge):
                yield msg.SubscriberPage(number, edge, EPOCH, sorted(self.served.get(edge, [])), more=False)
            case msg.Reservation(mediator=mediator, number=number, edge=edge, session=session, state=state):
                word: Any = "BUSY" if state == "ASK" else state
                yield msg.ReservationReply(mediator, number, edge, EPOCH, session, word, self._load(edge))
            case msg.Command():
                yield self._outcome(record)

    def _outcome(self, command: msg.Command) -> msg.Outcome:
        """Complete a step of a hand-over without delay."""
        known = self._moves.get(command.session)
        if command.step == "prepare" and command.plan is not None and known is None:
            self._plans[command.session] = command.plan
            known = self._new_outcome(command, "ready", "attached")
        elif command.step == "cut" and known is not None and known.state == "ready":
            plan = self._plans[command.session]
            self.served[plan.source] = [name for name in self.served[plan.source] if name not in plan.members]
            self.served[plan.target] = [*self.served[plan.target], *plan.members]
            known = self._new_outcome(command, "done", "moved")
        elif command.step == "abort" and known is not None and known.state == "ready":
            known = self._new_outcome(command, "aborted", "stayed")
        if known is None:
            return msg.Outcome(command.session, command.mediator, EPOCH, "unknown", [])
        self._moves[command.session] = known
        return known

    def _new_outcome(self, command: msg.Command, state: Any, member: str) -> msg.Outcome:
        members = [(name, member) for name in self._plans[command.session].members]
        return msg.Outcome(command.session, command.mediator, EPOCH, state, members)

    def _status(self) -> dict[str, Any]:
        return {
            "name": self.name, "role": "head" if self.is_head else "edge", "epoch": EPOCH, "ready": True,
            "waiting_for": [], "links": 1 + len(self.served), "edges": sorted(self.served),
            "counters": {f"counted_{number}": number * self._seq for number in range(20)},
        }  # fmt: skip

    def _load(self, name: str) -> dict[str, Any]:
        """A load report with all its fields. Edges have nearly equal loads, so that none sends a trigger."""

        def about(value: float) -> float:
            return value * self._random.uniform(0.97, 1.03)

        at_us = time.monotonic_ns() // 1000
        subscribers = len(self.served.get(name, []))
        role = "edge" if name in self.served else "head"
        return {
            "schema": 1, "broker": name, "cluster": name.partition("-")[0], "role": role,
            "epoch": EPOCH, "seq": self._seq, "time_us": at_us, "clock_us": time.time_ns() // 1000,
            "interval_seconds": INTERVAL_SECONDS, "state": "OK", "input_utilization": about(0.4),
            "output_utilization": about(0.3), "match_delay_seconds": about(1e-4), "index_delay_seconds": about(1e-5),
            "input_rate": about(40.0), "output_rate": about(900.0), "output_bytes_per_second": about(1e5),
            "input_queue_delay_seconds": about(1e-3), "output_queue_delay_seconds": about(1e-3),
            "cpu_ratio": about(0.3), "memory_ratio": about(0.4), "balanced_set": [], "subscribers": subscribers,
            "subscriptions": 2 * subscribers, "input_queue_messages": self._random.randrange(5),
            "output_queue_messages": self._random.randrange(9), "output_queue_bytes": 0,
            "counters": {"arrivals": 40 * self._seq, "deliveries": 900 * self._seq, "bytes_out": 10**5 * self._seq},
        }  # fmt: skip


class Lines:
    """The lines that the parent process writes; None when it has closed the pipe."""

    def __init__(self) -> None:
        self._rest = b""

    def read(self) -> list[bytes] | None:
        data = os.read(0, 1 << 16)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return lines


def main(address: str) -> int:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    context.set(zmq.MAX_SOCKETS, 4096)
    poller, lines = zmq.Poller(), Lines()
    poller.register(0, zmq.POLLIN)
    brokers: dict[Any, SimulatedBroker] = {}
    while True:
        due = min((each.report_at for each in brokers.values() if each.is_head), default=time.monotonic() + 1.0)
        for found, _ in poller.poll(max(0, int((due - time.monotonic()) * 1000))):
            if found in brokers:
                brokers[found].listen()
                continue
            started = lines.read()
            if started is None:
                context.destroy()
                return 0
            for line in started:
                broker = SimulatedBroker(context, json.loads(line), address)
                brokers[broker.socket] = broker
                poller.register(broker.socket, zmq.POLLIN)
        for each in brokers.values():
            if each.is_head and time.monotonic() >= each.report_at:
                each.report()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
