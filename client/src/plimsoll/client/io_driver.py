"""One round of a client: received frames and time into the machine, and its effects onto the sockets.

The synchronous library's thread and the asyncio loop share it; they differ in how they wait and how they wake callers.
"""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol, TypeVar

from plimsoll.client.security import Keyring, Security
from plimsoll.client.system_limits import raise_open_files
from plimsoll.client.transport import DealerTransport
from plimsoll.core.client import Address, Client, ClientLimits, TakenEvents
from plimsoll.core.permissions import GENERATED

LONGEST_WAIT_SECONDS: Final = 0.5
CONNECTION_CHECK_SECONDS: Final = 0.5
"""Interval at which the machine receives the list of peers without a connection."""

Heads = str | Address | Sequence[str | Address]

E = TypeVar("E")


class EventSource(Protocol[E]):
    """A publisher or subscriber of the machine."""

    events: list[E]


class ClientIODriver:
    """A client machine on its sockets."""

    def __init__(self, heads: Heads, name: str, security: Security, limits: ClientLimits | None) -> None:
        raise_open_files()
        given = list(head_addresses(heads))
        keyring = Keyring(security, {each.endpoint: each.public_key for each in given})
        addresses = [Address(each.endpoint, keyring.first(each.endpoint)) for each in given]
        limits = limits or ClientLimits()
        self.machine = Client(name or unique_name(), new_incarnation(), new_id, addresses, limits)
        self.transport = DealerTransport(keyring, limits.max_frame_bytes)
        self.addresses = addresses
        self.is_plain = keyring.own() is None
        self.more = False
        self._look_at = 0.0
        self._numbers = itertools.count(1)

    def round(self) -> TakenEvents:
        """Serve received frames; returns the events as (publisher or subscriber of the machine, events)."""
        machine, transport = self.machine, self.transport
        transport.retry()
        found, self.more = transport.drain()
        now = time.monotonic()
        for peer, frames in found:
            machine.receive(peer, frames, now)
        if now >= self._look_at:
            self._look_at = now + CONNECTION_CHECK_SECONDS
            unconnected = transport.unconnected()
            transport.redial(unconnected, now, [str(peer) for peer, link in machine.dialled.items() if not link.open])
            machine.unconnected(unconnected, now)
        machine.poll(now)
        self.send()
        return machine.take_events()

    def send(self) -> None:
        """Send the machine's frames, and make its connections."""
        closing = self.transport.apply(self.machine.dials_to_make())
        self.transport.send(self.machine.data_to_send())
        for peer in closing:
            self.transport.hang_up(peer)

    def seconds_to_next(self) -> float:
        """Seconds until the next round if nothing arrives."""
        if self.more:
            return 0.0
        return min(max(0.0, self.machine.next_poll_at() - time.monotonic()), LONGEST_WAIT_SECONDS)

    def leave(self) -> None:
        """Say goodbye and close the sockets."""
        self.machine.leave(time.monotonic())
        self.machine.poll(time.monotonic())
        self.send()
        self.transport.close()

    def own_name(self, kind: str) -> str:
        """A name for a publisher or subscriber that was given none."""
        return f"{self.machine.info.name}/{kind}{next(self._numbers)}"

    def where(self) -> str:
        """The state of this client, for the text of an error."""
        machine = self.machine
        head = machine.status()["head"]
        if head:
            said = f", which says: {machine.refusal}" if machine.refusal else ""
            return f"connected to head {head}{said}" + (f"; {self.transport.trouble}" if self.transport.trouble else "")
        endpoints = ", ".join(address.endpoint for address in self.addresses)
        if self.transport.trouble:
            return f"no connection to {endpoints}: {self.transport.trouble}"
        said = f"; last refusal: {machine.refusal}" if machine.refusal else ""
        for host, why in self.transport.faults.items():
            return f"no head answers at {endpoints}: host {host} has no address: {why}{said}"
        hint = (
            ""
            if self.is_plain
            else "; with CURVE, a wrong key looks like silence: check the server key and that this key is authorised"
        )
        return f"no head answers at {endpoints}{said}{hint}"

    def status(self) -> dict[str, Any]:
        found = self.machine.status()
        trouble = self.transport.trouble or found["last_error"]
        return {
            **found,
            "last_error": trouble or ("" if found["connected"] else self.where()),
            "plain": self.is_plain,
            "transport": dict(self.transport.counters),
            "trouble": self.transport.trouble,
            "hosts_without_address": dict(self.transport.faults),
        }


def head_addresses(heads: Heads) -> Iterable[Address]:
    several = [heads] if isinstance(heads, str | Address) else list(heads)
    if not several:
        raise ValueError("name at least one head, such as tcp://127.0.0.1:7000")
    for each in several:
        address = Address(each) if isinstance(each, str) else each
        if not address.endpoint.startswith(("tcp://", "ipc://")):
            raise ValueError(f"{address.endpoint!r} is not an endpoint; write tcp://HOST:PORT")
        yield address


def unique_name() -> str:
    return f"{GENERATED}{socket.gethostname()[:200]}-{os.getpid()}-{os.urandom(4).hex()}"


def new_incarnation() -> int:
    """Microseconds of the clock: greater in every later life."""
    return time.time_ns() // 1000


def new_id() -> int:
    return int.from_bytes(os.urandom(4), "big")
