"""Which of several collectors hears a cluster: the same answer everywhere; few change hands when a collector comes."""

from __future__ import annotations

import hashlib


def owner(cluster: str, collectors: int) -> int:
    """The number, from 0, of the collector that hears a cluster: rendezvous hashing. `collectors` is at least 1."""
    return max(range(collectors), key=lambda number: (_weight(cluster, number), number))


def _weight(cluster: str, number: int) -> bytes:
    return hashlib.sha256(f"{number}/{cluster}".encode()).digest()
