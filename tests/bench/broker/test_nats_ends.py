"""What the ends of a NATS server take apart and send, without a server."""

from __future__ import annotations

import pytest
from bench.broker.nats_ends import (
    INBOX,
    SENT_AT,
    SUBJECT,
    NatsError,
    NatsMessage,
    NatsReader,
    WindowedPublisher,
    publications,
)

STREAM = (
    b'INFO {"server_id":"n0"}\r\n'
    b"MSG deliver.0 2 5\r\nab\r\nc\r\n"
    b"PING\r\n"
    b"MSG deliver.0 2 $JS.ACK.1 0\r\n\r\n"
    b"HMSG deliver.0 2 _FC.9 33 33\r\nNATS/1.0 100 FlowControl Request\r\r\n"
)


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_messages_are_the_same_however_the_bytes_are_cut(size: int):
    reader, found = NatsReader(), []
    for at in range(0, len(STREAM), size):
        found += reader.feed(STREAM[at : at + size])
    assert [each.payload for each in found[:2]] == [b"ab\r\nc", b""]
    assert [each.reply for each in found] == [b"", b"$JS.ACK.1", b"_FC.9"]
    assert reader.pings == 1
    assert len(found) == 3


def test_a_refusal_of_the_server_is_an_error():
    with pytest.raises(NatsError, match="Authorization Violation"):
        NatsReader().feed(b"-ERR 'Authorization Violation'\r\n")


@pytest.mark.parametrize(
    ("status", "reply", "answer"),
    [
        (b"NATS/1.0 100 FlowControl Request\r\n\r\n", b"_FC.9 ", b"_FC.9"),
        (b"NATS/1.0 100 Idle Heartbeat\r\nNats-Consumer-Stalled: _FC.8\r\n\r\n", b"", b"_FC.8"),
        (b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 7\r\n\r\n", b"", b""),
    ],
)
def test_a_consumer_answers_where_the_server_waits_for_it(status: bytes, reply: bytes, answer: bytes):
    line = b"HMSG deliver.0 2 %s%d %d" % (reply, len(status), len(status))
    assert NatsMessage(line, status).flow_answer() == answer


def test_publications_carry_when_they_were_due():
    sent = publications([b"even", b"odd"], 4, [100, 200])
    first, second = sent.split(b"PUB ")[1:]
    assert first.startswith(f"{SUBJECT} {INBOX} 12\r\n".encode())
    assert first.endswith(SENT_AT.pack(100) + b"even\r\n")
    assert second.endswith(SENT_AT.pack(200) + b"odd\r\n")


class Server:
    """Stands in for a link to a server that answers each publication once it is read, at most three at a time."""

    def __init__(self, refuses: int = 0) -> None:
        self.waiting = self.most = self.count = 0
        self.refuses = refuses

    def send(self, data: bytes) -> None:
        self.waiting += data.count(b"PUB ")
        self.most = max(self.most, self.waiting)

    def receive(self, wait_seconds: float = 0.0) -> list[NatsMessage]:
        some = min(3, self.waiting) if wait_seconds else 0
        self.waiting -= some
        found = []
        for _ in range(some):
            self.count += 1
            body = b'{"error":{"code":503}}' if self.count == self.refuses else b'{"stream":"BENCH","seq":1}'
            found.append(NatsMessage(b"MSG a 1 %d" % len(body), body))
        return found


def test_no_more_publications_than_the_window_are_without_an_answer():
    server = Server()
    publisher = WindowedPublisher(server, [b"x"], 10)  # type: ignore[arg-type]  # it has what is used
    publisher.run(100, 1e9)
    assert (publisher.sent, publisher.answered, server.most) == (100, 100, 10)


def test_a_refused_publication_is_an_error():
    publisher = WindowedPublisher(Server(refuses=50), [b"x"], 10)  # type: ignore[arg-type]  # it has what is used
    with pytest.raises(NatsError, match="503"):
        publisher.run(100, 1e9)
