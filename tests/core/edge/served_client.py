"""A client that an edge serves, and what it has received."""

from __future__ import annotations

from typing import Any

from tests.core.fleet import Client, Fleet, Publishing

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire

BIG = b"x" * 1000


def token(fleet: Fleet, position: int) -> wire.Token:
    return ("h", fleet.head().epoch, position)


def start(fleet: Fleet, *attach: msg.Resume, **limits: Any) -> tuple[Client, Publishing]:
    """A client at `e1` with these attachments, and a publisher of another client."""
    client = fleet.client("c", "e1", **limits)
    other = fleet.client("pub", "h")
    client.tell("e1", *attach)
    publisher = Publishing(other, "h")
    fleet.run(0.5)
    return client, publisher


def no_holes(items: list[msg.PubOpen | msg.Gap]) -> bool:
    """Whether the publications are in order, none twice, and every missing one lies in a gap reported in place."""
    before, gap = 0, False
    for item in items:
        if isinstance(item, msg.Gap):
            gap = True
            continue
        if item.seq <= before or (item.seq != before + 1 and not gap):
            return False
        before, gap = item.seq, False
    return True
