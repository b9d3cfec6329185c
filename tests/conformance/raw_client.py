"""A client under test that sends what a test says, frame by frame, in virtual time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.conformance.client_under_test import ClientInput, ReceivedFrame, Report
from plimsoll.core.protocol import wire

INFO = wire.Info("raw", "client", 7)
LINK = 99
PEER = b"peer"


def hello(link: int = LINK, received: int = 0, known: bool = False, info: wire.Info = INFO) -> bytes:
    return wire.hello_frame(link, received, known, info)


def data(number: int, *records: Any, link: int = LINK, ack: int = 0, credit: int = 1024) -> bytes:
    chunks = [wire.encode(record) for record in records]
    return wire.data_frame(link, 0, number, ack, credit, chunks, len(chunks))


class RawClient:
    """`coming` is taken by the next `poll`; `sent` has what the brokers have sent, decoded."""

    def __init__(self) -> None:
        self.time = 0.0
        self.coming = ClientInput()
        self.sent: list[tuple[str, wire.Frame]] = []
        self.orders: list[Mapping[str, Any]] = []
        self.cuts: list[str] = []
        self.is_closed = False

    def frames(self, broker: str, *frames: bytes, peer: bytes = PEER) -> None:
        self.coming.frames.extend(ReceivedFrame(broker, peer, each) for each in frames)

    def report(self, report: Report) -> None:
        self.coming.reports.append(report)

    def now(self) -> float:
        return self.time

    def endpoint(self, broker: str) -> str:
        return f"mem://{broker}"

    def poll(self, seconds: float) -> ClientInput:
        found, self.coming = self.coming, ClientInput(exit_code=self.coming.exit_code, errors=self.coming.errors)
        if not found.frames and not found.reports:
            self.time += max(seconds, 0.001)
        return found

    def send(self, broker: str, peer: bytes, frames: Sequence[bytes]) -> None:
        self.sent += [(broker, wire.decode_frame(each)) for each in frames]

    def cut(self, broker: str) -> None:
        self.cuts.append(broker)

    def order(self, order: Mapping[str, Any]) -> None:
        self.orders.append(order)

    def close(self) -> None:
        self.is_closed = True
