"""System limits on open files and sockets: raised where possible, else named in an error."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Final

import zmq

from plimsoll.client.errors import ResourceLimitError

FILES_PER_SOCKET: Final = 8
"""libzmq opens a mailbox and a connection for a socket, and more while it reconnects; it aborts if it cannot."""

_OPEN_FILES: Final = Path("/proc/self/fd")


def raise_open_files() -> int:
    """Raise the limit of open files as far as this user may; returns the limit in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            # Some systems allow less than the hard limit; `check_socket_room` names the limit in force.
            return soft
    return hard


def check_socket_room(sockets: int, most_sockets: int) -> None:
    """Whether one more socket can be opened beside `sockets` others.

    Raises:
        ResourceLimitError: naming the limit, and how to raise it.

    """
    if sockets + 1 >= most_sockets:
        raise ResourceLimitError(
            f"this connection has {sockets} of at most {most_sockets} ZeroMQ sockets; use another connection for more"
        )
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or not _OPEN_FILES.exists():
        return
    used = sum(1 for _ in _OPEN_FILES.iterdir())
    if used + FILES_PER_SOCKET > soft:
        raise ResourceLimitError(
            f"{used} files are open and the limit is {soft} (hard limit {hard}); raise it with `ulimit -n` or "
            "LimitNOFILE, or close connections"
        )


def make_context() -> zmq.Context[zmq.Socket[bytes]]:
    """A ZeroMQ context that takes as many sockets as libzmq can.

    Raises:
        ResourceLimitError: there is no room for the first of them.

    """
    check_socket_room(0, 2)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    context.set(zmq.MAX_SOCKETS, context.get(zmq.SOCKET_LIMIT))
    return context
