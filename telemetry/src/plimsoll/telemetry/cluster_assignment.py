"""The collector of each cluster: the same everywhere; few clusters change collectors when one is added."""

from __future__ import annotations

import hashlib


def collector_of(cluster: str, collectors: int) -> int:
    """The index of the collector for a cluster, by rendezvous hashing. `collectors` is at least 1."""
    return max(range(collectors), key=lambda number: (_weight(cluster, number), number))


def _weight(cluster: str, number: int) -> bytes:
    return hashlib.sha256(f"{number}/{cluster}".encode()).digest()
