"""The client processes of a run: a publisher, and consumers of a group or plain subscribers of the same publications.

Both kinds take one item at a time, as an application does, each in a thread of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from plimsoll import client

WAIT_SECONDS = 0.05
KEYS = {"group": "g", "plain": "p"}
"""What shares out the publications of each kind: neither is matched against subscriptions to the other's."""


def publish(pipe: Connection, head: str) -> None:
    """A publisher as a process: `go kind count slices` publishes as fast as the head takes it, then answers."""
    with client.Connection(head, security="plain", name="bench-publisher") as connection:
        publisher = client.Publisher(connection, name="publisher")
        pipe.send(None)
        while True:
            _, kind, count, slices = pipe.recv()
            for n in range(count):
                publisher.publish({"class": kind, KEYS[kind]: n % slices, "n": n})
            publisher.flush(120.0)
            pipe.send(None)


class Takers:
    """Consumers of a group, or subscribers of shares of the same slices; each counts what it has been given."""

    def __init__(self, head: str, group: str, names: list[str], shares: list[list[int]]) -> None:
        self.head, self.names, self.shares = head, names, shares
        self.counts = [0] * len(names)
        self.members: list[client.GroupSubscriber] = []
        take = self._member if group else self._subscriber
        self.connections = [client.Connection(head, security="plain", name=f"bench-{name}") for name in names]
        self.threads = [threading.Thread(target=take, args=(i, group), daemon=True) for i in range(len(names))]
        for thread in self.threads:
            thread.start()

    def _member(self, i: int, group: str) -> None:
        member = self.connections[i].group(group).subscribe(name=self.names[i], timeout=120.0)
        self.members.append(member)
        self._take(i, member.receive)

    def _subscriber(self, i: int, _: str) -> None:
        subscriber = client.Subscriber(self.connections[i], name=self.names[i])
        for number in self.shares[i]:
            subscriber.subscribe(f"[class,=,'plain'],[{KEYS['plain']},=,{number}]", wait=False)
        self._take(i, subscriber.receive)

    def _take(self, i: int, receive: Callable[[float], Any]) -> None:
        while True:
            try:
                receive(WAIT_SECONDS)
            except client.errors.WaitTimeoutError:
                continue  # nothing has come
            except client.errors.ClosedError:
                return  # the end of the run
            self.counts[i] += 1

    def slices(self) -> list[int]:
        return [len(member.slices) for member in list(self.members)]


def take(pipe: Connection, head: str, group: str, names: list[str], shares: list[list[int]]) -> None:
    """Takers as a process. `count`: how many items and processor seconds so far; `slices`: of each member."""
    takers = Takers(head, group, names, shares)
    pipe.send(None)
    while True:
        (question,) = pipe.recv()
        pipe.send(takers.slices() if question == "slices" else (sum(takers.counts), time.process_time()))
