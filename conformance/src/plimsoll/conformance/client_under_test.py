"""What a scenario needs of the client that it tries: frames both ways, orders in, reports out, and time.

The real one is a child process on sockets (`child_client.py`). Tests use a client in memory, with virtual time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Report = Mapping[str, Any]
"""One line that the client has written: see docs/conformance.md."""

BROKERS = ("h", "e1", "e2", "e3")
"""The scripted brokers: a head and its edges."""


@dataclass(frozen=True, slots=True)
class ReceivedFrame:
    """A frame of the client, on the data socket of a broker. `peer`: the connection that it came on."""

    broker: str
    peer: bytes
    data: bytes


@dataclass(frozen=True, slots=True)
class ClientInput:
    """All that has come from the client. `exit_code` and `errors`: if its program has ended."""

    frames: list[ReceivedFrame] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    exit_code: int | None = None
    errors: str = ""


class ClientUnderTest(Protocol):
    """A client program, started, with nothing to do yet."""

    def now(self) -> float:
        """Seconds, by a clock that only goes forward."""

    def endpoint(self, broker: str) -> str:
        """The address of a scripted broker."""

    def poll(self, seconds: float) -> ClientInput:
        """What has come from the client; waits for the first of it, at most so long."""

    def send(self, broker: str, peer: bytes, frames: Sequence[bytes]) -> None:
        """Frames for the client, on this connection, in order."""

    def cut(self, broker: str) -> None:
        """Break all connections to this broker; the client may make new ones at once."""

    def order(self, order: Mapping[str, Any]) -> None:
        """One line on the client's standard input."""

    def close(self) -> None:
        """End the program at once."""
