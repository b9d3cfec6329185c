"""An item of a slice, as an application is given it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from plimsoll.core import client as core
from plimsoll.core.protocol.wire import Scalar


class ItemFinisher(Protocol):
    """What an item tells that it is processed: the member that it came from."""

    def finish(self, handed: list[core.HandedItem], /) -> None: ...


class GroupItem(Struct, eq=False):
    """An item of a slice. `is_redelivered`: another consumer may have been given it before, and has gone.

    `delivery` is a gap instead if something may be missing: then `is_gap` is true.
    """

    _subscriber: ItemFinisher
    _handed: core.HandedItem

    def __repr__(self) -> str:
        return f"<GroupItem of slice {self.slice}: {self._handed.item!r}>"

    @property
    def slice(self) -> int:
        return self._handed.owned.slice

    @property
    def is_redelivered(self) -> bool:
        return self._handed.is_redelivered

    @property
    def is_gap(self) -> bool:
        return isinstance(self._handed.item, core.GapNotice)

    @property
    def gap(self) -> core.GapNotice:
        item = self._handed.item
        if not isinstance(item, core.GapNotice):
            raise TypeError("this item is a publication")
        return item

    @property
    def delivery(self) -> core.Delivery:
        item = self._handed.item
        if not isinstance(item, core.Delivery):
            raise TypeError("this item is a gap; ask `is_gap` first")
        return item

    @property
    def attributes(self) -> Mapping[str, Scalar]:
        return self.delivery.attributes

    @property
    def payload(self) -> bytes:
        return self.delivery.payload

    def ack(self) -> None:
        """The item is processed: it does not come again. Done by taking the next one, unless `manual_ack` is set."""
        self._subscriber.finish([self._handed])
