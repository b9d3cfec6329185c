"""Consumer groups for asyncio: a member is an asynchronous iterator over items of the slices that it has."""

# ruff: noqa: ASYNC109  # the parameters are those of the synchronous twins

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Protocol, Self

from plimsoll.client.errors import CallbackError, ClosedError, FailedError, WaitTimeoutError
from plimsoll.client.group import LEAVE_SECONDS, GroupItem, OnChange
from plimsoll.client.process_usage import OwnUsage
from plimsoll.core import client as core
from plimsoll.core.protocol.messages import GroupDefinition
from plimsoll.core.protocol.slice_names import stamp_attribute

log = logging.getLogger(__name__)


class AsyncGroupConnection(Protocol):
    """What a group needs of a connection."""

    @property
    def machine(self) -> core.Client: ...
    @property
    def engine(self) -> Any: ...
    @property
    def is_closed(self) -> bool: ...
    def own(self, inner: Any, owner: Any) -> None: ...
    def disown(self, inner: object) -> None: ...
    def wake(self) -> None: ...
    def check(self) -> None: ...
    async def wait_for(self, what: Callable[[], object], timeout: float | None, expected: str) -> None: ...


class AsyncGroup:
    """A group by name, to be joined by `subscribe`. Made by `AsyncConnection.group`."""

    def __init__(self, connection: AsyncGroupConnection, name: str, definition: GroupDefinition | None) -> None:
        self._connection, self.name, self.definition = connection, name, definition

    @property
    def stamp(self) -> str:
        """The attribute with the slice of a publication, which a publisher sets for a function of its own."""
        return stamp_attribute(self.name)

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


class AsyncGroupSubscriber:
    """A member of a group. One task at a time may receive; `on_change` is called by the event loop."""

    def __init__(
        self,
        connection: AsyncGroupConnection,
        group: AsyncGroup,
        name: str,
        *,
        manual_ack: bool,
        on_change: OnChange | None,
    ) -> None:
        self._connection, self._manual_ack, self._on_change = connection, manual_ack, on_change
        self._current: GroupItem | None = None
        self._arrived = asyncio.Event()
        self._callback_error: Exception | None = None
        self._closed = False
        own = name or connection.engine.own_name("m")
        self._inner = connection.machine.group_member(group.name, own, group.definition, OwnUsage())
        connection.own(self._inner, self)
        connection.wake()

    @property
    def name(self) -> str:
        return self._inner.name

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
        await self._connection.wait_for(
            lambda: self._inner.is_settled or self._inner.has_left or self._closed, timeout, "a member of its group"
        )
        self._check()

    # -- items

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
        if current is not None:
            current.ack()

    def finish(self, handed: list[core.HandedItem]) -> None:
        """These items are processed."""
        if self._closed or self._connection.is_closed:
            return
        self._inner.set_now(time.monotonic())
        for each in handed:
            is_awaited = each.owned.is_stopping or each.owned.stream.queue.is_held
            self._inner.finish(each)
            if is_awaited:
                self._connection.wake()

    async def __aiter__(self) -> AsyncIterator[GroupItem]:
        """Items until it is closed. Raises FailedError if it has failed."""
        while True:
            try:
                yield await self.receive()
            except ClosedError:
                return  # the end of the iteration

    # -- the end

    async def close(self, *, leave: bool = True, timeout: float = LEAVE_SECONDS) -> None:
        """Give up all slices, then end; or at once, as `plimsoll.client.GroupSubscriber.close` says."""
        if self._closed:
            return
        connection = self._connection
        if not connection.is_closed:
            self._finish_current()
            if leave and self._inner.failed is None:
                self._inner.leave()
                connection.wake()
                try:
                    await connection.wait_for(lambda: self._inner.has_left, timeout, "without slices")
                except (WaitTimeoutError, ClosedError):
                    log.warning("member %s ends with slices that it could not give up", self.name)
        if not self._inner.has_left and not connection.is_closed:
            self._inner.close()
            connection.wake()
        self._closed = True
        connection.disown(self._inner)
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
        except Exception as error:
            log.exception("the callback of member %s has raised; it is closed", self.name)
            self._callback_error = error
            self._inner.close()
        self._arrived.set()

    def fail(self) -> None:
        self._arrived.set()

    def _check(self) -> None:
        if self._callback_error is not None:
            raise CallbackError(f"the callback of {self.name!r} has raised") from self._callback_error
        if (failed := self._inner.failed) is not None:
            raise FailedError(failed.code, failed.text)
        if self._closed:
            raise ClosedError(f"member {self.name!r} is closed")
        if self._inner.has_left:
            raise ClosedError(f"member {self.name!r} has left its group")
        self._connection.check()
