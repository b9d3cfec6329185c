"""The links of a client to heads other than its home: one for each that a publisher has moved to, or is to.

A head ends the older of two links of one client, so there is none to the head that is the client's home.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Protocol

from plimsoll.core.client.limits import ClientLimits
from plimsoll.core.transport.link import NEVER, Link


class HeadPort:
    """`users`: the publishers that are at this head, or on standby there. `away_since`: since when it has no link."""

    __slots__ = ("away_since", "endpoint", "head", "idle_since", "link", "peer", "public_key", "users")

    def __init__(self, head: str, endpoint: str, public_key: str, peer: str, link: Link, now: float) -> None:
        self.head, self.endpoint, self.public_key, self.peer, self.link = head, endpoint, public_key, peer, link
        self.users: dict[Any, None] = {}
        self.idle_since, self.away_since = NEVER, now


class HeadPortsHost(Protocol):
    """The ports' interface to the client."""

    now: float
    limits: ClientLimits

    def dial(self, peer: str, endpoint: str, public_key: str = "") -> Link: ...
    def hang_up(self, peer: str, reason: str) -> None: ...


class HeadPorts:
    """`by_head`: the ports that are open, or being opened."""

    def __init__(self, host: HeadPortsHost, numbers: count[int]) -> None:
        self._host, self._numbers = host, numbers
        self.by_head: dict[str, HeadPort] = {}

    def open(self, head: str, endpoint: str, public_key: str, user: Any) -> HeadPort:
        """The port to this head for one more publisher; dialled if there is none, or if it has another address now."""
        port = self.by_head.get(head)
        if port is not None and (port.endpoint, port.public_key) != (endpoint, public_key) and not port.users:
            self.close(port, "the head has another address now")
            port = None
        if port is None:
            peer = f"{head}#{next(self._numbers)}"
            link = self._host.dial(peer, endpoint, public_key)
            port = link.owner = self.by_head[head] = HeadPort(head, endpoint, public_key, peer, link, self._host.now)
        port.users[user] = None
        port.idle_since = NEVER
        return port

    def release(self, port: HeadPort, user: Any) -> None:
        """A publisher does not need it any more."""
        port.users.pop(user, None)
        if not port.users:
            port.idle_since = self._host.now

    def close(self, port: HeadPort, reason: str) -> None:
        self.by_head.pop(port.head, None)
        self._host.hang_up(port.peer, reason)

    def forget_all(self) -> None:
        self.by_head.clear()

    # -- time

    def close_idle(self) -> None:
        """Close ports that no publisher needs, once the last CLOSE has arrived."""
        for port in [port for port in self.by_head.values() if self._is_idle(port)]:
            if not port.link.open or not (port.link.unacked or port.link.buffer):
                self.close(port, "no publisher here needs it")

    def _is_idle(self, port: HeadPort) -> bool:
        return not port.users and self._host.now - port.idle_since >= self._host.limits.idle_seconds

    def away(self) -> Iterator[HeadPort]:
        """Ports that have been without a link for so long that their publishers are to go home."""
        now = self._host.now
        for port in list(self.by_head.values()):
            if port.link.open:
                port.away_since = now
            elif now - port.away_since > self._host.limits.failover_seconds:
                yield port

    def wake_at(self) -> float:
        at, limits = NEVER, self._host.limits
        for port in self.by_head.values():
            if not port.users:
                at = min(at, max(port.idle_since + limits.idle_seconds, self._host.now + limits.link.ack_seconds))
            elif not port.link.open:
                at = min(at, port.away_since + limits.failover_seconds)
        return at

    def status(self) -> dict[str, Any]:
        return {
            port.head: {"publishers": len(port.users), "open": port.link.open, "rtt_seconds": port.link.rtt_seconds}
            for port in self.by_head.values()
        }
