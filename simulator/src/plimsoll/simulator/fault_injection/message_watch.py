"""Waits for one message among all that are sent: a fault that is exact to the message strikes then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.simulator.engine.network import ConnectionQuality, NetworkParty, SimulatedConnection, SimulatedNetwork

ROUTE: int = msg.Route.__struct_config__.tag  # type: ignore[assignment]  # tags of this protocol are numbers
STEADY: Final = ConnectionQuality(delay_seconds=0.001, jitter_seconds=0.0)
BEHIND_SECONDS: Final = 0.0017
"""On such a connection a frame arrives after a millisecond and is dealt with in the next 0.2; an answer takes 2.2."""
_BYTE_FOLLOWS: Final = 0xCC


def routed_message(route: bytes) -> bytes:
    """The message that a ROUTE carries."""
    return msgspec.msgpack.encode(msgspec.msgpack.decode(route)[4])


class MessageWatch:
    """Calls `do` when the `nth` message of a kind is sent, counted from 0. A ROUTE counts as what it carries."""

    def __init__(self, network: SimulatedNetwork, kind: type[Any], nth: int, do: Callable[[], None]) -> None:
        self._tag, self._left, self._do = kind.__struct_config__.tag, nth, do
        network.taps.append(self._on_frame)

    def _on_frame(self, _: SimulatedConnection, __: NetworkParty, ___: NetworkParty, frame: bytes) -> None:
        if frame[2] not in (wire.DATA, wire.CONTROL) or self._left < 0:
            return
        decoded = wire.decode_frame(frame)
        for raw in decoded.records if isinstance(decoded, wire.Data | wire.Control) else []:
            record = bytes(raw)
            if _tag_of(routed_message(record) if _tag_of(record) == ROUTE else record) == self._tag:
                self._left -= 1
                if self._left == -1:
                    self._do()


def _tag_of(record: bytes) -> int:
    """The first element of an array: a number below 128 is one byte, and below 256 one behind its marker."""
    return record[2] if record[1] == _BYTE_FOLLOWS else record[1]
