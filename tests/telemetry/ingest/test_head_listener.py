"""A collector receives reports of its heads over real sockets; it identifies itself and sends nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import zmq

from plimsoll.core.config import PeerBroker
from plimsoll.core.protocol import messages, wire
from plimsoll.telemetry.ingest.head_listener import CollectorCurveKeys, HeadListener, HeadReports, decode_load_reports


class Head:
    """A control socket that answers every peer that identifies itself."""

    def __init__(self, secret: bytes = b"") -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.router = self.context.socket(zmq.ROUTER)
        self.router.linger = 0
        if secret:
            self.router.curve_server = True
            self.router.curve_secretkey = secret
        self.port = self.router.bind_to_random_port("tcp://127.0.0.1")
        self.heard: list[Any] = []

    def answer(self, *frames: bytes) -> None:
        """Send these to each collector that identifies itself."""
        while self.router.poll(0):
            peer, data = self.router.recv_multipart()
            frame = wire.decode_frame(data)
            assert isinstance(frame, wire.Control)
            self.heard += [messages.decode(messages.control, raw) for raw in frame.records]
            for each in frames:
                self.router.send_multipart([peer, each])

    def close(self) -> None:
        self.router.close()
        self.context.term()


@pytest.fixture
def heads() -> Iterator[list[Head]]:
    made: list[Head] = []
    yield made
    for head in made:
        head.close()


def peer(head: Head, name: str = "h", public_key: str = "") -> PeerBroker:
    return PeerBroker(name=name, control=f"tcp://127.0.0.1:{head.port}", public_key=public_key)


def hear(listening: HeadListener, heads: dict[Head, tuple[bytes, ...]], enough: int) -> list[HeadReports]:
    found: list[HeadReports] = []
    deadline = time.monotonic() + 300
    while sum(len(each.reports) + each.refused for each in found) < enough and time.monotonic() < deadline:
        found += listening.receive(0.02, time.monotonic())
        for head, frames in heads.items():
            head.answer(*frames)
    return found


def load(**report: Any) -> bytes:
    return wire.control_frame(messages.LoadUpdate(report))


def test_reports_come_with_the_cluster_of_the_head_that_said_them(heads: list[Head]):
    heads += [Head(), Head()]
    listening = HeadListener("c0", None)
    try:
        listening.set_heads({"a": peer(heads[0]), "b": peer(heads[1])})
        found = hear(listening, {heads[0]: (load(broker="x"),), heads[1]: (load(broker="y"), b"rubbish")}, 3)
    finally:
        listening.close()
    said = {(each.cluster, report["broker"]) for each in found for report in each.reports}
    assert said == {("a", "x"), ("b", "y")}
    assert sum(each.refused for each in found if each.cluster == "b") >= 1
    assert {type(record) for head in heads for record in head.heard} == {messages.Identify}
    assert {(each.name, each.role) for each in heads[0].heard} == {("c0", "collector")}


def test_a_head_that_cannot_be_dialled_keeps_no_other_from_being_heard(
    heads: list[Head], caplog: pytest.LogCaptureFixture
):
    heads.append(Head())
    listener = HeadListener("c0", None)
    bad = PeerBroker(name="bad", control="tcp://nowhere:x")
    listener.set_heads({"a": bad, "b": PeerBroker(name="h", control=f"tcp://127.0.0.1:{heads[0].port}")})
    assert "cannot listen to the head of cluster a" in caplog.text
    assert list(listener._connections) == ["b"]
    listener.close()


def test_a_head_that_is_not_of_the_share_any_more_is_hung_up(heads: list[Head]):
    heads += [Head(), Head()]
    listening = HeadListener("c0", None)
    try:
        listening.set_heads({"a": peer(heads[0])})
        hear(listening, {heads[0]: (load(broker="x"),)}, 1)
        listening.set_heads({"a": peer(heads[1])})
        found = hear(listening, {heads[1]: (load(broker="y"),)}, 1)
    finally:
        listening.close()
    assert [report["broker"] for each in found for report in each.reports] == ["y"]


def test_a_silent_head_is_dialled_again_and_a_sending_one_is_not(heads: list[Head]):
    heads += [Head(), Head()]
    listening = HeadListener("c0", None, silent_seconds=0.5)
    dialled: dict[str, set[bytes]] = {"silent": set(), "speaking": set()}
    try:
        listening.set_heads({"silent": peer(heads[0]), "speaking": peer(heads[1])})
        deadline = time.monotonic() + 300
        while len(dialled["silent"]) < 3 and time.monotonic() < deadline:
            for _ in listening.receive(0.02, time.monotonic()):
                pass
            for name, head in zip(dialled, heads, strict=True):
                while head.router.poll(0):
                    dialled[name].add(head.router.recv_multipart()[0])
            for who in dialled["speaking"]:
                heads[1].router.send_multipart([who, load(broker="x")])
    finally:
        listening.close()
    assert len(dialled["silent"]) >= 3
    assert len(dialled["speaking"]) == 1


def test_links_are_encrypted_with_a_key(heads: list[Head]):
    public, secret = zmq.curve_keypair()
    _, own = zmq.curve_keypair()
    heads.append(Head(secret))
    listening = HeadListener("c0", CollectorCurveKeys.of(own.decode()))
    try:
        listening.set_heads({"a": peer(heads[0], public_key=public.decode())})
        found = hear(listening, {heads[0]: (load(broker="x"),)}, 1)
    finally:
        listening.close()
    assert found[0].reports == [{"broker": "x"}]


def test_a_key_must_be_one():
    with pytest.raises(ValueError, match=r"(?i)z85"):
        CollectorCurveKeys.of("short")
    assert "secret" not in repr(CollectorCurveKeys("public", "hidden"))


def test_only_reports_are_taken_out_of_a_frame():
    both = wire.control_frame(
        messages.LoadUpdate({"broker": "x"}), messages.StatusReply(1, {}), messages.LoadUpdate({"broker": "y"})
    )
    assert decode_load_reports(both) == [{"broker": "x"}, {"broker": "y"}]
    assert decode_load_reports(wire.control_frame(messages.StatusReply(1, {}))) == []
    assert decode_load_reports(wire.who_frame()) is None
    assert decode_load_reports(b"") is None
