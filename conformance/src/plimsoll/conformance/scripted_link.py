"""The accepting side of one link, after docs/protocol.md, 3.1, which also holds the client to that section."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from plimsoll.conformance.rules import Rule, RuleBrokenError
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

CREDIT = 1024
NUMBERED = Rule("3.1", "Frames of kind **DATA** are numbered from 1 in each direction.")
WITHIN_CREDIT = Rule("3.1", "`credit` is the highest number that the *other* side may send")
UNCHANGED = Rule("3.1", "sides then send again, in order and unchanged, every DATA frame above the other's `received`.")
ACKNOWLEDGED = Rule("3.1", "`ack` is the highest number received in order.")
CREDIT_RISES = Rule("3.1", "it never goes down.")
RECORDS = Rule("2", "number that is not listed for its direction is refused, and counted, alone")


class Outgoing(NamedTuple):
    """A DATA frame to the client, kept until it is acknowledged."""

    seq: int
    data: bytes


class ScriptedLink:
    """One link of the client. `peer`: the connection that carries it; `credit`: how much is given above the last frame.

    Raises `RuleBrokenError` when the client breaks a rule of links.
    """

    def __init__(self, hello: wire.Hello, peer: bytes, credit: int = CREDIT) -> None:
        self.id, self.info, self.peer = hello.link, hello.info, peer
        self.expected, self.next_seq = 1, 1
        self.acked = self.client_credit = 0
        self.credit, self.granted = credit, 0
        self.unacked: list[Outgoing] = []
        self.is_open = True
        self._taken: dict[int, list[bytes]] = {}

    def grant(self) -> int:
        """The credit to tell the client: once told, it counts."""
        self.granted = max(self.granted, self.expected - 1 + self.credit)
        return self.granted

    def ack_frame(self) -> bytes:
        return wire.ack_frame(self.id, self.expected - 1, self.grant())

    def data_frame(self, *records: msgspec.Struct) -> bytes:
        """Number a frame of these records, and keep it."""
        chunks = [wire.encode(record) for record in records]
        return self.raw_frame(chunks)

    def raw_frame(self, chunks: list[bytes]) -> bytes:
        """The same for encoded records."""
        data = wire.data_frame(self.id, 0, self.next_seq, self.expected - 1, self.grant(), chunks, len(chunks))
        self.unacked.append(Outgoing(self.next_seq, data))
        self.next_seq += 1
        return data

    def on_answer(self, ack: int, credit: int) -> None:
        """An acknowledgement and credit, of any frame that has them."""
        if ack >= self.next_seq:
            raise RuleBrokenError(ACKNOWLEDGED, f"frame {ack} is acknowledged; {self.next_seq - 1} was the last one")
        if credit < self.client_credit:
            raise RuleBrokenError(CREDIT_RISES, f"credit {credit} after {self.client_credit}")
        self.client_credit = credit
        self.acked = max(self.acked, ack)
        self.unacked = [sent for sent in self.unacked if sent.seq > self.acked]

    def on_data(self, frame: wire.Data) -> list[msg.FromClient] | None:
        """The records of the next frame; none of a repeated one; None if its number is too high."""
        records = [bytes(raw) for raw in frame.records]
        if frame.seq < 1:
            raise RuleBrokenError(NUMBERED, f"a frame of number {frame.seq}")
        if frame.seq < self.expected:
            if self._taken[frame.seq] != records:
                raise RuleBrokenError(UNCHANGED, f"frame {frame.seq} has come again with other records")
            return []
        if frame.seq > self.granted:
            raise RuleBrokenError(WITHIN_CREDIT, f"frame {frame.seq} was sent; the credit was {self.granted}")
        if frame.seq > self.expected:
            return None
        self.expected += 1
        self._taken[frame.seq] = records
        return [_record(raw) for raw in records]


def _record(raw: bytes) -> msg.FromClient:
    try:
        record: msg.FromClient = msg.decode(msg.from_client, raw)
    except wire.WireError as error:
        raise RuleBrokenError(RECORDS, f"{error}: {raw[:64].hex()}") from error
    return record
