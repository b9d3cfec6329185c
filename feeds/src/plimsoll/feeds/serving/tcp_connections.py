"""TCP connections that libzmq has accepted, by their file descriptors: who is at the other end, what came, and the end.

libzmq owns the descriptors, and ends no single connection when asked. So one is reset here, which libzmq takes for an
end by the peer; the descriptor stays its own. It may have been closed and used again meanwhile, for anything in this
process: each function works on a duplicate, and only if that is a connection with the same peer.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

Peer = tuple[str, int]
"""Address and port."""
_ADDRESS_BYTES: Final = 16
"""Of a `struct sockaddr`; all zeros are of the family AF_UNSPEC."""
_RECEIVED: Final = struct.Struct("@Q")
_RECEIVED_OFFSET: Final = 128
"""Of `tcpi_bytes_received` in Linux' `struct tcp_info` (include/uapi/linux/tcp.h)."""


def peer_of(number: int) -> Peer | None:
    """Who is at the other end; None if the connection is gone."""
    with _duplicate(number) as found:
        return None if found is None else _peer(found)


def reset(number: int, peer: Peer) -> bool:
    """End a connection with this peer; false if it is gone."""
    with _duplicate(number) as found:
        if found is None or _peer(found) != peer:
            return False
        if sys.platform != "linux":
            with suppress(OSError):  # its peer has just ended it
                found.shutdown(socket.SHUT_RDWR)
            return True
        # A shutdown would not do here: what the peer sends on is still received, and the end is behind all of it.
        # Connected to nothing (connect(2): AF_UNSPEC) it is aborted, and what has come is dropped.
        ctypes.CDLL(None).connect(found.fileno(), bytes(_ADDRESS_BYTES), _ADDRESS_BYTES)
        return True


def received_bytes(number: int, peer: Peer) -> int | None:
    """How many bytes have come since it was accepted; None if it is gone, or the system does not say."""
    if sys.platform != "linux":
        return None
    with _duplicate(number) as found:
        if found is None or _peer(found) != peer:
            return None
        size = _RECEIVED_OFFSET + _RECEIVED.size
        told = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, size)
        return _RECEIVED.unpack_from(told, _RECEIVED_OFFSET)[0] if len(told) == size else None


def _peer(found: socket.socket) -> Peer | None:
    try:
        name = found.getpeername()
    except OSError:  # it is no connection any more
        return None
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else None


@contextmanager
def _duplicate(number: int) -> Iterator[socket.socket | None]:
    try:
        own = os.dup(number)
    except OSError:  # it is closed
        yield None
        return
    try:
        found = socket.socket(fileno=own)
    except OSError:  # it is no socket any more
        os.close(own)
        yield None
        return
    with found:
        yield found
