"""Consumer groups: many consumers share a stream by slices, in order per slice, each item processed by one of them.

`connection.group("readings", slices=100, function="Modulo", by="sensor").subscribe()` makes this connection a member.
It is an iterator over items of the slices that it has; load decides which those are.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Self

from plimsoll.client.base.member import LEAVE_SECONDS, BaseGroup, BaseMember, OnChange
from plimsoll.client.errors import ClosedError
from plimsoll.client.group_item import GroupItem
from plimsoll.client.waiting import run


class GroupSubscriber(BaseMember):
    """A member of a group: an iterator over items of the slices that it has. One thread at a time may receive."""

    def wait_member(self, timeout: float = 10.0) -> None:
        """Wait until the head has answered, and the slices that it has given count.

        Raises:
            FailedError, WaitTimeoutError, ClosedError: it is no member, and why.

        """
        run(self.wait_answered(timeout))

    def receive(self, timeout: float | None = None) -> GroupItem:
        """The next item, in order per slice. Taking it acknowledges the one before, unless `manual_ack` is set.

        Raises:
            WaitTimeoutError: nothing has come within `timeout` seconds.
            FailedError, ClosedError, ConnectionFailedError: nothing will come any more.

        """
        return self._next_ready() or run(self._receive(timeout))

    def __iter__(self) -> Iterator[GroupItem]:
        """Items until it is closed. Raises FailedError if it has failed."""
        while True:
            try:
                yield self.receive()
            except ClosedError:
                return  # the end of the iteration

    def close(self, *, leave: bool = True, timeout: float = LEAVE_SECONDS) -> None:
        """Give up all slices, then end. What was taken counts as processed, unless `manual_ack` is set.

        Without `leave`, or when that takes longer than `timeout`, it ends at once: others get its slices when the head
        has noticed, and what was not acknowledged comes again.
        """
        run(self.shut(leave=leave, timeout=timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close(leave=error is None)


class Group(BaseGroup[GroupSubscriber]):
    """A group by name, to be joined by `subscribe`. Made by `Connection.group`."""

    _member_kind = GroupSubscriber

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
        return run(self._subscribe(name, manual_ack=manual_ack, on_change=on_change, wait=wait, timeout=timeout))
