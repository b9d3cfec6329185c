"""Consumer groups for asyncio: a member is an asynchronous iterator over items of the slices that it has."""

# ruff: noqa: ASYNC109  # the parameters are those of the synchronous twins

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
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


class AsyncGroupConnection(MemberConnection, Protocol):
    """What a group needs of a connection."""

    async def wait_for(self, what: Callable[[], object], timeout: float | None, expected: str) -> None: ...


class AsyncGroup(NamedGroup):
    """A group by name, to be joined by `subscribe`. Made by `AsyncConnection.group`."""

    def __init__(self, connection: AsyncGroupConnection, name: str, definition: GroupDefinition | None) -> None:
        super().__init__(name, definition)
        self._connection = connection

    async def subscribe(
        self,
        *,
        name: str = "",
        manual_ack: bool = False,
        on_change: OnChange | None = None,
        wait: bool = True,
        timeout: float = 10.0,
    ) -> AsyncGroupSubscriber:
        """Become a member; parameters and errors are those of `plimsoll.client.Group.subscribe`."""
        found = AsyncGroupSubscriber(self._connection, self, name, manual_ack=manual_ack, on_change=on_change)
        if wait:
            try:
                await found.wait_member(timeout)
            except BaseException:
                await found.close(leave=False)
                raise
        return found


class AsyncGroupSubscriber(GroupMembership):
    """A member of a group. One task at a time may receive; `on_change` is called by the event loop."""

    _connection: AsyncGroupConnection

    def __init__(
        self,
        connection: AsyncGroupConnection,
        group: NamedGroup,
        name: str,
        *,
        manual_ack: bool,
        on_change: OnChange | None,
    ) -> None:
        self._arrived = asyncio.Event()
        super().__init__(connection, group, name, manual_ack=manual_ack, on_change=on_change)

    @property
    def slices(self) -> tuple[int, ...]:
        """The slices that it has now."""
        return tuple(sorted(self._inner.slices))

    def statistics(self) -> dict[str, Any]:
        """Its slices, what waits, and whether the head knows it."""
        return self._inner.statistics()

    async def wait_member(self, timeout: float = 10.0) -> None:
        """Wait until the head has answered, and the slices that it has given count.

        Raises:
            FailedError, WaitTimeoutError, ClosedError: it is no member, and why.

        """
        await self._connection.wait_for(self._is_answered, timeout, "a member of its group")
        self._check()

    async def receive(self, timeout: float | None = None) -> GroupItem:
        """The next item, in order per slice. Taking it acknowledges the one before, unless `manual_ack` is set.

        Raises:
            WaitTimeoutError: nothing has come within `timeout` seconds.
            FailedError, ClosedError, ConnectionFailedError: nothing will come any more.

        """
        deadline = None if timeout is None else time.monotonic() + timeout
        self._finish_current()
        while not (taken := self._take()):
            self._check()
            self._arrived.clear()
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise WaitTimeoutError(f"member {self.name!r}: nothing was delivered within {timeout:g} s")
            try:
                await asyncio.wait_for(self._arrived.wait(), left)
            except TimeoutError:
                continue  # the next turn says so
        return self._hand_over(self, taken[0])

    def finish(self, handed: list[core.HandedItem]) -> None:
        """These items are processed."""
        self._finish(handed)

    async def __aiter__(self) -> AsyncIterator[GroupItem]:
        """Items until it is closed. Raises FailedError if it has failed."""
        while True:
            try:
                yield await self.receive()
            except ClosedError:
                return  # the end of the iteration

    def stop(self) -> None:
        """Give the application nothing more: its loop ends behind the item in hand. `close` then gives up the slices.

        For `loop.add_signal_handler`.
        """
        self._is_stopped = True
        self._arrived.set()

    async def close(self, *, leave: bool = True, timeout: float = LEAVE_SECONDS) -> None:
        """Give up all slices, then end; or at once, as `plimsoll.client.GroupSubscriber.close` says."""
        if self._closed:
            return
        if self._leaves(leave):
            try:
                await self._connection.wait_for(lambda: self._inner.has_left, timeout, "without slices")
            except (WaitTimeoutError, ClosedError):
                self._note_failed_leave()
        self._end()
        self._arrived.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close(leave=error is None)

    # -- for the connection

    def take(self, events: list[core.GroupEvent]) -> None:
        try:
            for event in events:
                if self._on_change is not None and isinstance(event, core.SlicesChanged):
                    self._on_change(event)
        except Exception as error:  # noqa: BLE001  # raised again where the application waits for items
            self._callback_raised(error)
            self._inner.close()
        self._arrived.set()

    def fail(self) -> None:
        self._arrived.set()
