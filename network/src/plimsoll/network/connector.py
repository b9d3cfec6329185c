"""Connects sockets to endpoints whose hosts are named, without letting libzmq look the names up.

libzmq asks the system for an address on the thread that serves all sockets of a context, at each attempt to connect.
A server of names that does not answer holds that thread for 20 s and more, and with it every other connection: their
peers hear nothing, and take this process for dead. So names are looked up in threads of their own (`HostLookup`), and
libzmq is given addresses.

It retries an address for good. Whenever a socket has had no connection for `LOOK_AGAIN_SECONDS`, its host is looked up
again: the socket goes on with another address if the host has one.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

import zmq

from plimsoll.network.host_lookup import HostAnswer, HostLookup

log = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS: Final = 2.0
CHECK_SECONDS: Final = 0.5
_NAME: Final = re.compile(r"tcp://([^\[\];]+):(\d+)")

_Socket = zmq.Socket[bytes]


@dataclass(slots=True)
class _NamedConnection:
    """`endpoint`: what the socket is connected to; empty before the first answer."""

    host: str
    port: str
    endpoint: str = ""
    next_look_at: float = 0.0


class Connector:
    """The named connections of one context. One thread uses it at a time.

    `fd` becomes readable when `tick` has something to do; beside that, `tick` is called at least every second.
    `faults`: for each host that has no address, why. `clock`: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lookup = clock, HostLookup()
        self._of: dict[_Socket, _NamedConnection] = {}
        self._check_at = 0.0
        self.faults: dict[str, str] = {}

    @property
    def fd(self) -> int:
        return self._lookup.fd

    def connect(self, socket: _Socket, endpoint: str) -> None:
        """Connect at once to an address, and to a name as soon as its address is known.

        Raises:
            zmq.ZMQError: the endpoint is none.

        """
        host, port = _host_of(endpoint)
        if not host:
            socket.ipv6 = "[" in endpoint
            socket.connect(endpoint)
            return
        self._of[socket] = _NamedConnection(host, port, next_look_at=self._clock() + LOOK_AGAIN_SECONDS)
        self._lookup.ask(host)

    def forget(self, socket: _Socket) -> None:
        """The socket is being closed."""
        named = self._of.pop(socket, None)
        if named is not None and not any(each.host == named.host for each in self._of.values()):
            self.faults.pop(named.host, None)

    def tick(self) -> None:
        """Connect what has been found, and look up again what has no connection."""
        if not self._of:
            return
        now = self._clock()
        for answer in self._lookup.answers():
            self._take(answer, now)
        if now >= self._check_at:
            self._check_at = now + CHECK_SECONDS
            for socket, named in self._of.items():
                self._check(socket, named, now)

    def close(self) -> None:
        self._of.clear()
        self._lookup.close()

    def _check(self, socket: _Socket, named: _NamedConnection, now: float) -> None:
        if int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLOUT:
            named.next_look_at = now + LOOK_AGAIN_SECONDS
        elif now >= named.next_look_at:
            named.next_look_at = now + LOOK_AGAIN_SECONDS
            self._lookup.ask(named.host)

    def _take(self, answer: HostAnswer, now: float) -> None:
        self._note_fault(answer)
        for socket, named in self._of.items():
            if named.host == answer.host and answer.addresses:
                named.next_look_at = now + LOOK_AGAIN_SECONDS
                self._go_on(socket, named, answer.addresses)

    def _note_fault(self, answer: HostAnswer) -> None:
        if not answer.error:
            self.faults.pop(answer.host, None)
        elif any(named.host == answer.host for named in self._of.values()):
            if answer.host not in self.faults:
                log.warning("host %s has no address: %s; it is looked up again", answer.host, answer.error)
            self.faults[answer.host] = answer.error

    @staticmethod
    def _go_on(socket: _Socket, named: _NamedConnection, addresses: tuple[str, ...]) -> None:
        """Connect to the address that follows the present one, unless it is the only one."""
        endpoints = [_endpoint_of(address, named.port) for address in addresses]
        at = endpoints.index(named.endpoint) + 1 if named.endpoint in endpoints else 0
        following = endpoints[at % len(endpoints)]
        if following == named.endpoint or int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLOUT:
            return
        if named.endpoint:
            socket.disconnect(named.endpoint)
        socket.ipv6 = "[" in following
        socket.connect(following)
        named.endpoint = following


def _host_of(endpoint: str) -> tuple[str, str]:
    """Host and port, if the endpoint names a host; else two empty strings."""
    if (named := _NAME.fullmatch(endpoint)) is None:
        return "", ""  # an IPv6 address, another transport, or nothing that libzmq takes
    try:
        ip_address(named[1])
    except ValueError:
        return named[1], named[2]
    return "", ""


def _endpoint_of(address: str, port: str) -> str:
    return f"tcp://[{address}]:{port}" if ":" in address else f"tcp://{address}:{port}"
