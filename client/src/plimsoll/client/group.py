"""Consumer groups: many consumers share a stream by slices, in order per slice, each item processed by one of them.

`connection.group("readings", slices=100, function="Modulo", by="sensor").subscribe()` makes this connection a member.
It is an iterator over items of the slices that it has; load decides which those are.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from plimsoll.client.errors import CallbackError, ClosedError, FailedError, WaitTimeoutError
from plimsoll.client.process_usage import OwnUsage
from plimsoll.core import client as core
from plimsoll.core.policies.consumer_groups.assignment_functions import FunctionType, Unassigned
from plimsoll.core.protocol.messages import GroupDefinition
from plimsoll.core.protocol.slice_names import stamp_attribute
from plimsoll.core.protocol.wire import Scalar

log = logging.getLogger(__name__)

LEAVE_SECONDS = 30.0
OnChange = Callable[[core.SlicesChanged], None]


class GroupConnection(Protocol):
    """What a group needs of a connection."""

    lock: Any
    changed: Any

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
    def wait_for(self, what: Callable[[], object], timeout: float | None, expected: str) -> None: ...


class ItemFinisher(Protocol):
    """What an item tells that it is processed: the member that it came from."""

    def finish(self, handed: list[core.HandedItem], /) -> None: ...


class GroupItem:
    """An item of a slice. `is_redelivered`: another consumer may have been given it before, and has gone.

    `delivery` is a gap instead if something may be missing: then `is_gap` is true.
    """

    __slots__ = ("_handed", "_subscriber")

    def __init__(self, subscriber: ItemFinisher, handed: core.HandedItem) -> None:
        self._subscriber, self._handed = subscriber, handed

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
) -> GroupDefinition | None:
    """What a group is, for a member that may make it; None without a number of slices."""
    if slices is None:
        return None
    return GroupDefinition(filter, slices, function, by, float(low), float(high), unassigned, balancing)


class Group:
    """A group by name, to be joined by `subscribe`. Made by `Connection.group`."""

    def __init__(self, connection: GroupConnection, name: str, definition: GroupDefinition | None) -> None:
        self._connection, self.name, self.definition = connection, name, definition

    @property
    def stamp(self) -> str:
        """The attribute with the slice of a publication, which a publisher sets for a function of its own."""
        return stamp_attribute(self.name)

    def subscribe(
        self,
        *,
        name: str = "",
        manual_ack: bool = False,
        on_change: OnChange | None = None,
        wait: bool = True,
        timeout: float = 10.0,
    ) -> GroupSubscriber:
        """Become a member, which gets slices. `name`: of the member, unique in the group; made up if it is left out.

        `manual_ack`: items are processed when their `ack` is called, not when the next one is taken.
        `on_change`: called on the I/O thread when slices have come or gone; it must not block.

        Raises:
            FailedError: the head refuses it, for good.
            WaitTimeoutError: no head has answered yet; it is asked again.

        """
        found = GroupSubscriber(self._connection, self, name, manual_ack=manual_ack, on_change=on_change)
        if wait:
            try:
                found.wait_member(timeout)
            except BaseException:
                found.close(leave=False)
                raise
        return found


class GroupSubscriber:
    """A member of a group: an iterator over items of the slices that it has. One thread at a time may receive."""

    def __init__(
        self, connection: GroupConnection, group: Group, name: str, *, manual_ack: bool, on_change: OnChange | None
    ) -> None:
        self._connection, self._manual_ack, self._on_change = connection, manual_ack, on_change
        self._changes: list[core.SlicesChanged] = []
        self._current: GroupItem | None = None
        self._callback_error: Exception | None = None
        self._closed = False
        with connection.lock:
            machine = connection.machine
            own = name or connection.engine.own_name("m")
            self._inner = machine.group_member(group.name, own, group.definition, OwnUsage())
            connection.own(self._inner, self)
            connection.wake()

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def slices(self) -> tuple[int, ...]:
        """The slices that it has now."""
        with self._connection.lock:
            return tuple(sorted(self._inner.slices))

    def statistics(self) -> dict[str, Any]:
        """Its slices, what waits, and whether the head knows it."""
        with self._connection.lock:
            return self._inner.statistics()

    def wait_member(self, timeout: float = 10.0) -> None:
        """Wait until the head has answered, and the slices that it has given count.

        Raises:
            FailedError, WaitTimeoutError, ClosedError: it is no member, and why.

        """
        with self._connection.lock:
            self._connection.wait_for(
                lambda: self._inner.is_settled or self._inner.has_left or self._closed, timeout, "a member of its group"
            )
            self._check()

    # -- items

    def receive(self, timeout: float | None = None) -> GroupItem:
        """The next item, in order per slice. Taking it acknowledges the one before, unless `manual_ack` is set.

        Raises:
            WaitTimeoutError: nothing has come within `timeout` seconds.
            FailedError, ClosedError, ConnectionFailedError: nothing will come any more.

        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._connection.lock:
            self._finish_current()
            while not (taken := self._take()):
                self._check()
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise WaitTimeoutError(f"member {self.name!r}: nothing was delivered within {timeout:g} s")
                self._connection.changed.wait(0.5 if left is None else min(left, 0.5))
            item = GroupItem(self, taken[0])
            self._current = None if self._manual_ack else item
            return item

    def _take(self) -> list[core.HandedItem]:
        if self._closed or self._connection.is_closed:
            return []
        self._inner.set_now(time.monotonic())
        return self._inner.take(1)

    def _finish_current(self) -> None:
        current, self._current = self._current, None
        if current is not None and not self._closed and not self._connection.is_closed:
            self._finish([current._handed])  # an item of this module

    def finish(self, handed: list[core.HandedItem]) -> None:
        """These items are processed."""
        with self._connection.lock:
            if not self._closed and not self._connection.is_closed:
                self._finish(handed)

    def _finish(self, handed: list[core.HandedItem]) -> None:
        self._inner.set_now(time.monotonic())
        for each in handed:
            was_held, was_stopping = each.owned.stream.queue.is_held, each.owned.is_stopping
            self._inner.finish(each)
            if was_stopping or was_held:
                self._connection.wake()

    def __iter__(self) -> Iterator[GroupItem]:
        """Items until it is closed. Raises FailedError if it has failed."""
        while True:
            try:
                yield self.receive()
            except ClosedError:
                return  # the end of the iteration

    # -- the end

    def close(self, *, leave: bool = True, timeout: float = LEAVE_SECONDS) -> None:
        """Give up all slices, then end. What was taken counts as processed, unless `manual_ack` is set.

        Without `leave`, or when that takes longer than `timeout`, it ends at once: others get its slices when the head
        has noticed, and what was not acknowledged comes again.
        """
        connection = self._connection
        with connection.lock:
            if self._closed:
                return
            if not connection.is_closed and not connection.has_failed:
                self._finish_current()
                if leave and self._inner.failed is None:
                    self._inner.leave()
                    connection.wake()
                    try:
                        connection.wait_for(lambda: self._inner.has_left, timeout, "without slices")
                    except (WaitTimeoutError, ClosedError):
                        log.warning("member %s ends with slices that it could not give up", self.name)
                if not self._inner.has_left and not connection.is_closed:
                    self._inner.close()
                    connection.wake()
            self._closed = True
            connection.disown(self._inner)
            connection.changed.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close(leave=error is None)

    # -- for the connection

    def take(self, events: list[core.GroupEvent]) -> bool:
        if self._on_change is not None:
            self._changes += [event for event in events if isinstance(event, core.SlicesChanged)]
        return bool(self._changes)

    def call(self) -> None:
        changes, self._changes = self._changes, []
        try:
            for change in changes:
                if self._on_change is not None:
                    self._on_change(change)
        except Exception as error:
            log.exception("the callback of member %s has raised; it is closed", self.name)
            self._callback_error = error
            self.close(leave=False)

    def _check(self) -> None:
        if self._callback_error is not None:
            raise CallbackError(f"the callback of {self.name!r} has raised") from self._callback_error
        if (failed := self._inner.failed) is not None:
            raise FailedError(failed.code, failed.text)
        if self._closed and not self._connection.has_failed:
            raise ClosedError(f"member {self.name!r} is closed")
        self._connection.check()
