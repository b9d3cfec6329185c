"""A dataset that is served with keys, an honest reader of it, and a peer that sends what it likes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import zmq
from tests.feeds.publications import HOUR_US, START_US, stock

from plimsoll.client.feed_connection import FeedConnection
from plimsoll.client.security import Curve
from plimsoll.core.client import Address
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.feeds.config import ServingConfig
from plimsoll.feeds.dataset import FeedDataset
from plimsoll.feeds.reading.dataset_copy import DatasetCopy
from plimsoll.feeds.reading.fetch_run import FetchRun
from plimsoll.feeds.serving.feed_server import FeedServer

DEADLINE_SECONDS = 300.0
SUBSCRIPTION = "[class,=,'STOCK']"


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_SECONDS:.0f} s: {what}"
        time.sleep(0.01)


@dataclass
class Served:
    """`pairs`: the public and the secret key of each client."""

    folder: Path
    dataset: FeedDataset
    server: FeedServer
    public: str
    pairs: dict[str, tuple[str, str]]
    lines: dict[str, str]
    numbers: int = 0
    peers: list[zmq.Socket[bytes]] = field(default_factory=list)
    context: zmq.Context[zmq.Socket[bytes]] = field(default_factory=zmq.Context)

    def record(self, count: int, hour: int = 0) -> None:
        """Commit and show a number of publications."""
        for _ in range(count):
            self.numbers += 1
            self.dataset.add(stock(self.numbers), START_US + hour * HOUR_US)
        self.dataset.commit(("head", 1, self.numbers), [], START_US + hour * HOUR_US)
        self.server.show(self.dataset.state)

    def grant(self, **lines: str) -> None:
        """Change what stands behind the names of clients; an empty text removes a client."""
        self.lines |= lines
        text = "".join(f"{self.pairs[name][0]} client {name} {line}\n" for name, line in self.lines.items() if line)
        (self.folder / "readers").write_text(text)

    def connect(self, name: str) -> FeedConnection:
        return FeedConnection(Address(self.server.endpoint, self.public), Curve(secret=self.pairs[name][1]))

    def ask(self, name: str, request: msg.FeedRequest) -> msg.FeedAnswer:
        """The answer to one request on a connection of its own."""
        connection, found = self.connect(name), list[msg.FeedAnswer]()
        try:
            wait_until(lambda: connection.answers(0.01) == [] and connection.is_connected, "a connection")

            def has_answer() -> bool:
                connection.ask([request])
                found.extend(connection.answers(0.2))
                return bool(found)

            wait_until(has_answer, f"an answer to {request}")
            return found[0]
        finally:
            connection.close()

    def fetch(self, name: str, to: Path, *, stopped: Callable[[], bool] = lambda: False) -> tuple[int, list[str]]:
        """Rows of the copy behind one run, and what was told."""
        copy, told = DatasetCopy(to, "stocks"), list[str]()
        try:
            run = FetchRun(
                copy, copy.readers(), lambda: self.connect(name), told.append, time.monotonic, lambda: START_US
            )
            try:
                run.run(stopped)
            finally:
                run.close()
            return copy.counts.rows, told
        finally:
            copy.close()

    def peer(self, name: str) -> zmq.Socket[bytes]:
        """A bare socket with the key of a client, or with an unknown key."""
        public, secret = self.pairs.get(name) or tuple(each.decode() for each in zmq.curve_keypair())
        socket = self.context.socket(zmq.DEALER)
        socket.linger = 0
        socket.curve_serverkey, socket.curve_publickey = self.public.encode(), public.encode()
        socket.curve_secretkey = secret.encode()
        socket.connect(self.server.endpoint)
        self.peers.append(socket)
        return socket


@contextmanager
def served(folder: Path, eve: str = "read") -> Iterator[Served]:
    """A server with two clients: ann may read all feeds. `eve`: what stands behind the name of the other one."""
    public, secret = (each.decode() for each in zmq.curve_keypair())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recorder.key").write_text(secret + "\n")
    pairs = {name: tuple(each.decode() for each in zmq.curve_keypair()) for name in ("ann", "eve")}
    dataset = FeedDataset(folder / "dataset", SUBSCRIPTION)
    (folder / "readers").write_text("")
    config = ServingConfig("tcp://127.0.0.1:*", key=str(folder / "recorder.key"), readers=str(folder / "readers"))
    found = Served(folder, dataset, None, public, pairs, {"ann": "read", "eve": eve})  # type: ignore[arg-type]  # it reads the file that comes first
    found.grant()
    found.server = FeedServer("stocks", dataset.root, config)
    try:
        yield found
    finally:
        for socket in found.peers:
            socket.close()
        found.context.term()
        found.server.close()
        dataset.close()


def listing(from_row: int = 1, *, feed: str = "stocks", number: int = 1) -> msg.ListFeedFiles:
    return msg.ListFeedFiles(number, feed, "rows", from_row)


def framed(request: msg.FeedRequest) -> bytes:
    return wire.control_frame(request)
