"""A connection to the recorder of a feed: requests out, answers in, any number under way. Decides nothing.

What is sent and received may be lost, as when the recorder starts again: the caller repeats requests without an answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from plimsoll.client.security import Keyring, Security
from plimsoll.client.transport import DealerTransport
from plimsoll.core.client import Address
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import WireError
from plimsoll.core.transport.overlay_node import Dial

ANSWER_BYTES: Final = 128 * 1024
_PEER: Final = "recorder"


class FeedConnection:
    """Not thread-safe. `security`: the keys of this process; the recorder's is beside its address.

    Raises:
        SecurityError: a key cannot be used.

    """

    def __init__(self, address: Address, security: Security) -> None:
        self.address = address
        self._transport = DealerTransport(Keyring(security, {address.endpoint: address.public_key}), ANSWER_BYTES)
        self._transport.apply([Dial(_PEER, address.endpoint, address.public_key)])
        self.malformed = 0

    @property
    def is_connected(self) -> bool:
        return not self._transport.unconnected()

    @property
    def fault(self) -> str:
        """Why its host has no address; empty if it has one."""
        return "; ".join(f"host {host} has no address: {why}" for host, why in self._transport.faults.items())

    def ask(self, requests: Iterable[msg.FeedRequest]) -> None:
        """Send requests; without a connection they are lost."""
        if self.is_connected:
            self._transport.send((_PEER, wire.control_frame(each)) for each in requests)

    def answers(self, seconds: float) -> list[msg.FeedAnswer]:
        """Wait for answers, `seconds` at most."""
        self._transport.wait(seconds)
        self._transport.retry()
        self._transport.redial(self._transport.unconnected(), time.monotonic())
        frames, _ = self._transport.drain()
        return [answer for _, some in frames for data in some for answer in self._decoded(data)]

    def _decoded(self, data: bytes) -> list[msg.FeedAnswer]:
        try:
            frame = wire.decode_frame(data)
            if not isinstance(frame, wire.Control):
                raise WireError("misplaced", "a recorder answers in CONTROL frames")
            return [msg.decode(msg.feed_answer, raw) for raw in frame.records]
        except WireError:
            self.malformed += 1
            return []

    def close(self) -> None:
        self._transport.close()
