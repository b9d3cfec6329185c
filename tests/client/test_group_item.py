"""Items of a slice as an application sees them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.client.group_item import GroupItem
from plimsoll.core import client as core
from plimsoll.core.protocol import messages as msg


class Finisher:
    """A member that writes down what is processed."""

    def __init__(self) -> None:
        self.finished: list[Any] = []

    def finish(self, handed: list[Any], /) -> None:
        self.finished += handed


def item_of(content: object, finisher: Finisher, *, is_redelivered: bool = False) -> GroupItem:
    handed: Any = SimpleNamespace(owned=SimpleNamespace(slice=4), item=content, is_redelivered=is_redelivered)
    return GroupItem(finisher, handed)


def test_an_item_is_acknowledged_at_its_member():
    finisher = Finisher()
    item = item_of(object(), finisher, is_redelivered=True)
    assert (item.slice, item.is_redelivered) == (4, True)
    item.ack()
    assert len(finisher.finished) == 1


def test_a_gap_is_no_delivery_and_a_delivery_no_gap():
    gap = core.GapNotice(msg.Gap("h", 11, 10, 11, 20, [], "log"), 1.0)
    delivery = core.Delivery(msg.PubOpen(42, "h", 11, 17, "p", 7, 3, 1, 0, msg.Body({"n": 1})), ("h", 11), 1.0)
    lost, given = item_of(gap, Finisher()), item_of(delivery, Finisher())
    assert (lost.is_gap, lost.gap) == (True, gap)
    assert (given.is_gap, given.delivery, given.attributes) == (False, delivery, {"n": 1})
    with pytest.raises(TypeError, match="is a gap; ask `is_gap` first"):
        lost.delivery  # noqa: B018  # that it raises is the test
    with pytest.raises(TypeError, match="is a publication"):
        given.gap  # noqa: B018  # that it raises is the test
