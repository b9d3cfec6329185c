"""What a head asks of its parts. A further part is a module of its own, and a line in `HeadParts`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from plimsoll.core.head.outbox import Outbox
from plimsoll.core.head.record_handlers import RecordHandlers
from plimsoll.core.transport.link import NEVER, Link


class HeadPart:
    """The hooks of a part; none of them does anything by itself.

    A head calls a hook of all its parts in the order of `HeadParts.parts`.
    """

    def register(self, handlers: RecordHandlers) -> None:
        """Name the records that this part deals with."""

    def client_lost(self, link: Link) -> None:
        """A client's link is over."""

    def broker_lost(self, outbox: Outbox) -> None:
        """The link of an edge or a neighbour is over, and with it an edge's outbox."""

    def on_ready(self) -> None:
        """All edges and neighbours have reported, or their lease has passed."""

    def tick(self) -> None:
        """Once a round."""

    def expire(self) -> None:
        """Once in `progress_seconds`: let go of what has waited or has been kept for long enough."""

    def wake_at(self) -> float:
        """When the next round is needed, at the latest."""
        return NEVER

    def report(self) -> dict[str, Any]:
        """Fields of the head's load report."""
        return {}

    def status(self) -> dict[str, Any]:
        """Fields of the head's status."""
        return {}


def with_hook(parts: Iterable[HeadPart], hook: str) -> tuple[HeadPart, ...]:
    """Those parts that do something at this hook, in order."""
    return tuple(part for part in parts if getattr(type(part), hook) is not getattr(HeadPart, hook))
