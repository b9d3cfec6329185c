"""A mediator epoch reaches all edges and neighbours once, and never goes down."""

from __future__ import annotations

from typing import Any

from plimsoll.core.head.mediator_fence import MediatorFence
from plimsoll.core.protocol import messages as msg


class FakeHead:
    """Two edges, a neighbour that has had the whole cover, and one that has not."""

    def __init__(self) -> None:
        self.edges: Any = {"a": "outbox of a", "b": "outbox of b"}
        self.routes: Any = self
        self.outboxes: Any = self
        self.sent: list[tuple[Any, Any]] = []

    def synced_neighbors(self) -> list[str]:
        return ["k"]

    def send(self, outbox: Any, record: Any) -> None:
        self.sent.append((outbox, record))

    def send_to(self, key: str, record: Any) -> None:
        self.sent.append((key, record))


def test_a_higher_epoch_goes_out_once_and_a_lower_one_changes_nothing():
    head = FakeHead()
    fence = MediatorFence(head)
    fence.raise_to(0)
    assert head.sent == []
    fence.raise_to(9)
    assert head.sent == [(to, msg.MediatorEpoch(9)) for to in ("outbox of a", "outbox of b", "k")]
    fence.raise_to(9)
    fence.raise_to(8)
    assert fence.epoch == 9
    assert len(head.sent) == 3
