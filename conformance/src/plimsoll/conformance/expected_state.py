"""The table of record and state of docs/simple-client.md, as a scenario keeps it to hold the client to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Token

EPOCH = 11
PUBLISHER, PUBLISHER_INCARNATION = "feed", 7
STOCK = "[class,=,'STOCK']"

Item = tuple[Any, ...]
"""What the application is given: ("delivery", publisher, incarnation, number) or ("gap", reason)."""


def publication(number: int, position: int | None = None, head: str = "h", epoch: int = EPOCH) -> msg.PubOpen:
    """Publication `number` of the scripted publisher; its origin is offset `number` of head h."""
    at = number if position is None else position
    body = msg.Body({"class": "STOCK", "n": number})
    return msg.PubOpen(
        at, head, epoch, number, PUBLISHER, PUBLISHER_INCARNATION, number, 0, 1_700_000_000_000_000, body
    )


def item_of(report: Mapping[str, Any]) -> Item:
    """An item as the client reports it."""
    if report["event"] == "gap":
        return "gap", report.get("reason")
    return "delivery", report.get("publisher"), report.get("incarnation"), report.get("seq")


class ExpectedState:
    """Owner epoch, token, watermarks and list of the subscriber, and the items that its application must be given.

    `n` is None before the first RESUME: a client may begin with any number.
    """

    def __init__(self, name: str, subscriptions: list[str]) -> None:
        self.name, self.subscriptions = name, subscriptions
        self.n: int | None = None
        self.version = 0
        self.token: Token | None = None
        self.marks: dict[tuple[str, int], int] = {}
        self.items: list[Item] = []

    def deliver(self, pub: msg.PubOpen) -> None:
        """A publication on the attachment that serves."""
        origin = (pub.head, pub.epoch)
        if pub.offset > self.marks.get(origin, 0):
            self.marks[origin] = pub.offset
            self.items.append(("delivery", pub.publisher, pub.incarnation, pub.seq))
        self.reach(pub.position)

    def reach(self, position: int) -> None:
        """A position of the log that the subscriber is served from."""
        if self.token is not None:
            self.token = (*self.token[:2], max(self.token[2], position))

    def gap(self, gap: msg.Gap) -> None:
        """A gap on the attachment that serves."""
        self.items.append(("gap", gap.reason))
        for head, epoch, offset in gap.last:
            self.marks[head, epoch] = max(offset, self.marks.get((head, epoch), 0))
        self.token = (gap.head, gap.epoch, gap.high)

    def given(self) -> int:
        return len(self.items)
