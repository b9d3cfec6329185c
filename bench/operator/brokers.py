"""Stand-ins for brokers: one process that answers on all their control sockets, under their keys.

    python -m bench.operator.brokers ADDRESS

Each line of its input is a broker that has started: {name, port, secret, edges}; without `edges` it is an edge. Heads
say every second what each of their brokers carries, which changes all the time, list whom their edges serve, and
hand subscribers over at once when they are told to. What is not simulated: publications, links, and faults.
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
"""Of each edge, in the beginning."""


class Broker:
    """One simulated broker. A head has the subscribers of all edges of its cluster."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], told: dict[str, Any], address: str) -> None:
        self.name: str = told["name"]
        self.is_head = "edges" in told
        self.served: dict[str, list[str]] = {
            edge: [f"{edge}-s{number:02}" for number in range(SUBSCRIBERS)] for edge in told.get("edges", [])
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
        self.socket.curve_secretkey = told["secret"].encode()
        self.socket.bind(f"tcp://{address}:{told['port']}")

    def listen(self) -> None:
        """Answer whatever has come."""
        while self.socket.poll(0):
            peer, data = self.socket.recv_multipart()
            frame = wire.decode_frame(data)
            assert isinstance(frame, wire.Control)
            said = [msg.decode(msg.control, raw) for raw in frame.records]
            answers = [answer for record in said for answer in self._answers(peer, record)]
            if answers:
                self.socket.send_multipart([peer, wire.control_frame(*answers)])

    def report(self) -> None:
        """Say what each broker of the cluster carries, to whoever mediates."""
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
                self.mediators = {peer}  # the last one that has come; those before it have gone
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
        """Prepared at once, and cut at once."""
        known = self._moves.get(command.session)
        if command.step == "prepare" and command.plan is not None and known is None:
            self._plans[command.session] = command.plan
            known = self._said(command, "ready", "attached")
        elif command.step == "cut" and known is not None and known.state == "ready":
            plan = self._plans[command.session]
            self.served[plan.source] = [name for name in self.served[plan.source] if name not in plan.members]
            self.served[plan.target] = [*self.served[plan.target], *plan.members]
            known = self._said(command, "done", "moved")
        elif command.step == "abort" and known is not None and known.state == "ready":
            known = self._said(command, "aborted", "stayed")
        if known is None:
            return msg.Outcome(command.session, command.mediator, EPOCH, "unknown", [])
        self._moves[command.session] = known
        return known

    def _said(self, command: msg.Command, state: Any, member: str) -> msg.Outcome:
        members = [(name, member) for name in self._plans[command.session].members]
        return msg.Outcome(command.session, command.mediator, EPOCH, state, members)

    def _status(self) -> dict[str, Any]:
        return {
            "name": self.name, "role": "head" if self.is_head else "edge", "epoch": EPOCH, "ready": True,
            "waiting_for": [], "links": 1 + len(self.served), "edges": sorted(self.served),
            "counters": {f"counted_{number}": number * self._seq for number in range(20)},
        }  # fmt: skip

    def _load(self, name: str) -> dict[str, Any]:
        """As much as a broker says; edges are alike, so that none wants to be balanced."""

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
    """What the parent writes, a line at a time; None at its end."""

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
    brokers: dict[Any, Broker] = {}
    while True:
        due = min((each.report_at for each in brokers.values() if each.is_head), default=time.monotonic() + 1.0)
        for found, _ in poller.poll(max(0, int((due - time.monotonic()) * 1000))):
            if found in brokers:
                brokers[found].listen()
                continue
            told = lines.read()
            if told is None:
                context.destroy()
                return 0
            for line in told:
                broker = Broker(context, json.loads(line), address)
                brokers[broker.socket] = broker
                poller.register(broker.socket, zmq.POLLIN)
        for each in brokers.values():
            if each.is_head and time.monotonic() >= each.report_at:
                each.report()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
