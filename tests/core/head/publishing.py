"""Publishers that are open at the table of a head, and what they publish."""

from __future__ import annotations

from typing import Any

from plimsoll.core.head.publishers import PublisherTable
from plimsoll.core.permissions import ClientPermissions
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import Link, LinkLimits


def link(name: str = "c") -> Link:
    return Link(
        name.encode(), local=Info("h", "head", 1), limits=LinkLimits(), initiator=False, new_id=lambda: 1, now=0.0
    )


def opened(publishers: PublisherTable, at: Link, handle: int = 1, name: str = "p", incarnation: int = 1) -> Any:
    return publishers.open(at, msg.Open(handle, name, incarnation), "h", 5, 0.0)


def answers(publishers: PublisherTable, now: float = 0.0) -> list[Any]:
    return [answer for _, answer in publishers.answers.due(now)]


def take(publishers: PublisherTable, at: Link, seq: int, handle: int = 1, now: float = 0.0) -> Any:
    publisher = publishers.get(at, handle)
    assert publisher is not None
    publishers.took(publisher, seq, 100, now)
    return publisher


def granted(at: Link, **grant: Any) -> Link:
    at.identity, at.grant = "ann", ClientPermissions("ann", **grant)
    return at
