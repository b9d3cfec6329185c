"""Consumer groups for asyncio: a member is an asynchronous iterator over items of the slices that it has."""

# ruff: noqa: ASYNC109  # the parameters are those of the synchronous twins

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self

from plimsoll.client.base.member import LEAVE_SECONDS, BaseGroup, BaseMember, OnChange
from plimsoll.client.errors import ClosedError
from plimsoll.client.group_item import GroupItem


class AsyncGroupSubscriber(BaseMember):
    """A member of a group. One task at a time may receive; `on_change` is called by the event loop."""

    async def wait_member(self, timeout: float = 10.0) -> None:
        """Wait until the head has answered, and the slices that it has given count.

        Raises:
            FailedError, WaitTimeoutError, ClosedError: it is no member, and why.

        """
        await self.wait_answered(timeout)

    async def receive(self, timeout: float | None = None) -> GroupItem:
        """The next item, in order per slice. Taking it acknowledges the one before, unless `manual_ack` is set.

        Raises:
            WaitTimeoutError: nothing has come within `timeout` seconds.
            FailedError, ClosedError, ConnectionFailedError: nothing will come any more.

        """
        return self._next_ready() or await self._receive(timeout)

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
        super().stop()
        self._arrived.notify()

    async def close(self, *, leave: bool = True, timeout: float = LEAVE_SECONDS) -> None:
        """Give up all slices, then end; or at once, as `plimsoll.client.GroupSubscriber.close` says."""
        await self.shut(leave=leave, timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close(leave=error is None)


class AsyncGroup(BaseGroup[AsyncGroupSubscriber]):
    """A group by name, to be joined by `subscribe`. Made by `AsyncConnection.group`."""

    _member_kind = AsyncGroupSubscriber

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
        return await self._subscribe(name, manual_ack=manual_ack, on_change=on_change, wait=wait, timeout=timeout)
