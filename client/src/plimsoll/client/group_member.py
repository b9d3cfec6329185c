"""What a group and its members are to an application, with threads as with asyncio: definitions, items, their ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from plimsoll.client.errors import CallbackError, ClosedError, FailedError
from plimsoll.client.process_usage import OwnUsage
from plimsoll.core import client as core
from plimsoll.core.policies.consumer_groups.assignment_functions import FunctionType, Unassigned
from plimsoll.core.protocol.messages import GroupDefinition
from plimsoll.core.protocol.slice_names import stamp_attribute
from plimsoll.core.protocol.wire import Scalar

log = logging.getLogger(__name__)

LEAVE_SECONDS = 30.0
TAKEN_AT_ONCE = 64
"""Items that an application's thread takes without a look at the member, which the I/O thread uses as well."""
OnChange = Callable[[core.SlicesChanged], None]


class MemberConnection(Protocol):
    """What a member needs of its connection."""

    @property
    def machine(self) -> core.Client: ...
    @property
    def engine(self) -> Any: ...
    @property
    def has_failed(self) -> bool: ...
    @property
    def is_closed(self) -> bool: ...
    def own(self, inner: Any, owner: Any) -> None: ...
    def disown(self, inner: object) -> None: ...
    def wake(self) -> None: ...
    def check(self) -> None: ...


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


def group_definition(
    slices: int | None,
    *,
    filter: str = "",  # noqa: A002  # the word of the specification
    function: FunctionType = "Hash",
    by: str = "",
    low: float = 0.0,
    high: float = 0.0,
    unassigned: Unassigned = "Drop",
    balancing: str = "Rates",
    in_session: str = "Deliver",
) -> GroupDefinition | None:
    """What a group is, for a member that may make it; None without a number of slices."""
    if slices is None:
        return None
    return GroupDefinition(filter, slices, function, by, float(low), float(high), unassigned, balancing, in_session)


class NamedGroup:
    """A group by name, and how a member would define it."""

    def __init__(self, name: str, definition: GroupDefinition | None) -> None:
        self.name, self.definition = name, definition

    @property
    def stamp(self) -> str:
        """The attribute with the slice of a publication, which a publisher sets for a function of its own."""
        return stamp_attribute(self.name)


class GroupMembership:
    """The base of both kinds of members. With threads the caller holds the lock of the connection."""

    _connection: MemberConnection

    def __init__(
        self,
        connection: MemberConnection,
        group: NamedGroup,
        name: str,
        *,
        manual_ack: bool,
        on_change: OnChange | None,
    ) -> None:
        self._connection, self._manual_ack, self._on_change = connection, manual_ack, on_change
        self._current: GroupItem | None = None
        self._callback_error: Exception | None = None
        self._closed = self._is_stopped = False
        own = name or connection.engine.own_name("m")
        self._inner = connection.machine.group_member(group.name, own, group.definition, OwnUsage())
        connection.own(self._inner, self)
        connection.wake()

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def over(self) -> str:
        """Why its group ends, as it is declared no longer; empty for one that goes on.

        What the log has of it is still given. Then, or at the latest an hour after its removal, receiving raises
        FailedError with the code `over`.
        """
        return self._inner.over

    @property
    def _is_over(self) -> bool:
        return self._closed or self._connection.is_closed

    def _is_answered(self) -> bool:
        """Whether the head has answered, or will not."""
        return self._inner.is_settled or self._inner.has_left or self._closed

    # -- items

    def _take(self) -> list[core.HandedItem]:
        if self._closed or self._is_stopped or self._connection.is_closed:
            return []
        self._inner.set_now(time.monotonic())
        return self._inner.take(1)

    def finish(self, handed: list[core.HandedItem], /) -> None:
        """These items are processed."""
        raise NotImplementedError

    def _hand_over(self, finisher: ItemFinisher, handed: core.HandedItem) -> GroupItem:
        """An item for the application; it counts as processed when the next one is taken, unless that is `ack`'s."""
        item = GroupItem(finisher, handed)
        self._current = None if self._manual_ack else item
        return item

    def _finish_current(self) -> None:
        current, self._current = self._current, None
        if current is not None and not self._is_over:
            self._inner.set_now(time.monotonic())
            self._finish_one(current._handed)  # an item of this module

    def _finish(self, handed: list[core.HandedItem]) -> None:
        """These items are processed."""
        if self._is_over:
            return
        self._inner.set_now(time.monotonic())
        for each in handed:
            self._finish_one(each)

    def _finish_one(self, handed: core.HandedItem) -> None:
        owned = handed.owned
        is_awaited = owned.is_stopping or owned.stream.queue.is_held
        self._inner.finish(handed)
        if is_awaited:
            self._connection.wake()

    def _next_ready(self) -> GroupItem | None:
        """The next item without a look at the member; None if there is none, or the member is to be looked at.

        The item before it is finished by that.
        """
        now, inner, current = time.monotonic(), self._inner, self._current
        if current is not None:
            self._current, handed = None, current._handed  # an item of this module
            handed.finished_at = now
            inner.buffer.finished.append(handed)
            if handed.owned.is_stopping:  # looked at after the item was put there: `ItemBuffer` says why
                return None
        if self._is_stopped or self._closed or self._connection.is_closed or now > inner.lease_until:
            return None
        try:
            handed = inner.buffer.ready.popleft()
        except IndexError:
            return None
        handed.taken_at = now
        return self._hand_over(self, handed)

    def _look(self) -> None:
        """Count what is finished, and get further items."""
        if self._is_over:
            return
        self._inner.set_now(time.monotonic())
        if self._inner.settle():
            self._connection.wake()
        if not self._is_stopped:
            self._inner.refill(TAKEN_AT_ONCE)

    # -- the end

    def _leaves(self, leave: bool) -> bool:
        """Finish the current item, and begin to give up the slices; False if they are not given up."""
        if self._is_over or self._connection.has_failed:
            return False
        self._finish_current()
        self._inner.settle()
        if not leave or self._inner.failed is not None:
            return False
        self._inner.leave()
        self._connection.wake()
        return True

    def _end(self) -> None:
        """End, with what slices it still has."""
        connection = self._connection
        if not self._inner.has_left and not connection.is_closed and not connection.has_failed:
            self._inner.close()
            connection.wake()
        self._closed = True
        connection.disown(self._inner)

    def _note_failed_leave(self) -> None:
        log.warning("member %s ends with slices that it could not give up", self.name)

    def _callback_raised(self, error: Exception) -> None:
        log.exception("the callback of member %s has raised; it is closed", self.name)
        self._callback_error = error

    def _check(self) -> None:
        if self._callback_error is not None:
            raise CallbackError(f"the callback of {self.name!r} has raised") from self._callback_error
        if (failed := self._inner.failed) is not None:
            raise FailedError(failed.code, failed.text)
        if self._closed and not self._connection.has_failed:
            raise ClosedError(f"member {self.name!r} is closed")
        if self._is_stopped:
            raise ClosedError(f"member {self.name!r} takes nothing more: it was told to stop")
        self._connection.check()
        if self._inner.has_left:
            raise ClosedError(f"member {self.name!r} has left its group")
