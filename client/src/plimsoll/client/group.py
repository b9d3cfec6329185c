"""Consumer groups: many consumers share a stream by slices, in order per slice, each item processed by one of them.

`connection.group("readings", slices=100, function="Modulo", by="sensor").subscribe()` makes this connection a member.
It is an iterator over items of the slices that it has; load decides which those are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Protocol, Self

from plimsoll.client.errors import ClosedError, WaitTimeoutError
from plimsoll.client.group_member import (
    LEAVE_SECONDS,
    GroupItem,
    GroupMembership,
    MemberConnection,
    NamedGroup,
    OnChange,
)
from plimsoll.core import client as core
from plimsoll.core.protocol.messages import GroupDefinition


class GroupConnection(MemberConnection, Protocol):
    """What a group needs of a connection."""

    lock: Any
    changed: Any

    def wait_for(self, what: Callable[[], object], timeout: float | None, expected: str) -> None: ...


class Group(NamedGroup):
    """A group by name, to be joined by `subscribe`. Made by `Connection.group`."""

    def __init__(self, connection: GroupConnection, name: str, definition: GroupDefinition | None) -> None:
        super().__init__(name, definition)
        self._connection = connection

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


class GroupSubscriber(GroupMembership):
    """A member of a group: an iterator over items of the slices that it has. One thread at a time may receive."""

    _connection: GroupConnection

    def __init__(
        self, connection: GroupConnection, group: NamedGroup, name: str, *, manual_ack: bool, on_change: OnChange | None
    ) -> None:
        self._changes: list[core.SlicesChanged] = []
        with connection.lock:
            super().__init__(connection, group, name, manual_ack=manual_ack, on_change=on_change)

    @property
    def slices(self) -> tuple[int, ...]:
        """The slices that it has now."""
        with self._connection.lock:
            return tuple(sorted(self._inner.slices))

    def statistics(self) -> dict[str, Any]:
        """Its slices, what waits, and whether the head knows it."""
        with self._connection.lock:
            self._inner.settle()
            return self._inner.statistics()

    def wait_member(self, timeout: float = 10.0) -> None:
        """Wait until the head has answered, and the slices that it has given count.

        Raises:
            FailedError, WaitTimeoutError, ClosedError: it is no member, and why.

        """
        with self._connection.lock:
            self._connection.wait_for(self._is_answered, timeout, "a member of its group")
            self._check()

    def receive(self, timeout: float | None = None) -> GroupItem:
        """The next item, in order per slice. Taking it acknowledges the one before, unless `manual_ack` is set.

        Raises:
            WaitTimeoutError: nothing has come within `timeout` seconds.
            FailedError, ClosedError, ConnectionFailedError: nothing will come any more.

        """
        if (item := self._next_ready()) is not None:
            return item
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._connection.lock:
            self._look()
            while (item := self._next_ready()) is None:
                self._check()
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise WaitTimeoutError(f"member {self.name!r}: nothing was delivered within {timeout:g} s")
                self._connection.changed.wait(0.5 if left is None else min(left, 0.5))
                self._look()
            return item

    def finish(self, handed: list[core.HandedItem]) -> None:
        """These items are processed."""
        with self._connection.lock:
            self._finish(handed)

    def __iter__(self) -> Iterator[GroupItem]:
        """Items until it is closed. Raises FailedError if it has failed."""
        while True:
            try:
                yield self.receive()
            except ClosedError:
                return  # the end of the iteration

    def stop(self) -> None:
        """Give the application nothing more: its loop ends behind the item in hand, within half a second.

        A handler of signals may call this: it waits for nothing, and `close` then gives up the slices.
        """
        self._is_stopped = True

    def close(self, *, leave: bool = True, timeout: float = LEAVE_SECONDS) -> None:
        """Give up all slices, then end. What was taken counts as processed, unless `manual_ack` is set.

        Without `leave`, or when that takes longer than `timeout`, it ends at once: others get its slices when the head
        has noticed, and what was not acknowledged comes again.
        """
        with self._connection.lock:
            if self._closed:
                return
            if self._leaves(leave):
                try:
                    self._connection.wait_for(lambda: self._inner.has_left, timeout, "without slices")
                except (WaitTimeoutError, ClosedError):
                    self._note_failed_leave()
            self._end()
            self._connection.changed.notify_all()

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
        except Exception as error:  # noqa: BLE001  # raised again where the application waits for items
            self._callback_raised(error)
            self.close(leave=False)
