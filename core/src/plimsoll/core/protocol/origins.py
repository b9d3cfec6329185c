"""Offsets of publications by the head that accepted them, as watermarks, gaps and logs use them."""

from __future__ import annotations

from collections.abc import Iterable

Origin = tuple[str, int]
"""The head that accepted a publication and its epoch: a space of offsets."""


def raise_to(last: dict[Origin, int], found: Iterable[tuple[Origin, int]]) -> None:
    """Keep the higher offset of each origin: a gap logged late may name lower offsets than entries before it."""
    for origin, offset in found:
        if offset > last.get(origin, 0):
            last[origin] = offset
