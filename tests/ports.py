"""Ports for programs that bind them later."""

from __future__ import annotations

import contextlib
import random
import socket


def free_ports(count: int) -> list[int]:
    """Ports below the ephemeral range, so that no connection takes one meanwhile."""
    ports: list[int] = []
    while len(ports) < count:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):  # in use: another one is drawn
            probe.bind(("127.0.0.1", port))
            ports.append(port)
    return list(dict.fromkeys(ports)) if len(set(ports)) == count else free_ports(count)
