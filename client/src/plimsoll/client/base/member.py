"""A group and its members without their waiting: items, what is finished of them, and the end of a member."""

# ruff: noqa: ASYNC109  # a timeout is a parameter of applications, and is named in errors

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from plimsoll.client.base.connection import BaseConnection
from plimsoll.client.base.receiver import BaseReceiver
from plimsoll.client.errors import ClosedError, WaitTimeoutError
from plimsoll.client.group_item import GroupItem
from plimsoll.client.process_usage import OwnUsage
from plimsoll.client.waiting import Timeout, run
from plimsoll.core import client as core
from plimsoll.core.protocol.messages import GroupDefinition
from plimsoll.core.protocol.slice_names import stamp_attribute

log = logging.getLogger(__name__)

LEAVE_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 0.5
"""A waiting member looks at its state this often: `stop` may come from a signal handler, which wakes no thread."""
TAKEN_AT_ONCE: Final = 64
"""Items that an application's thread takes without a look at the member, which the I/O thread uses as well."""
OnChange = Callable[[core.SlicesChanged], None]


M = TypeVar("M", bound="BaseMember")


class BaseGroup(Generic[M]):
    """The base of `Group` and `AsyncGroup`: a group by name, and how a member would define it."""

    _member_kind: type[M]

    def __init__(self, connection: BaseConnection, name: str, definition: GroupDefinition | None) -> None:
        self._connection, self.name, self.definition = connection, name, definition

    @property
    def stamp(self) -> str:
        """The attribute with the slice of a publication, which a publisher sets for a function of its own."""
        return stamp_attribute(self.name)

    async def _subscribe(
        self, name: str, *, manual_ack: bool, on_change: OnChange | None, wait: bool, timeout: float
    ) -> M:
        found = self._member_kind(self._connection, self, name, manual_ack=manual_ack, on_change=on_change)
        if wait:
            try:
                await found.wait_answered(timeout)
            except BaseException:
                await found.shut(leave=False, timeout=0.0)
                raise
        return found


class BaseMember(BaseReceiver):
    """The base of `GroupSubscriber` and `AsyncGroupSubscriber`."""

    _kind = "member"
    _inner: core.GroupMember

    def __init__(
        self,
        connection: BaseConnection,
        group: BaseGroup[Any],
        name: str,
        *,
        manual_ack: bool,
        on_change: OnChange | None,
    ) -> None:
        super().__init__()
        self._connection, self._manual_ack, self._on_change = connection, manual_ack, on_change
        self._changes: list[core.SlicesChanged] = []
        self._current: core.HandedItem | None = None
        self._is_stopped = False
        self._arrived = connection.new_signal()
        with connection.lock:
            own = name or connection.engine.own_name("m")
            self._inner = connection.machine.group_member(group.name, own, group.definition, OwnUsage())
            connection.own(self._inner, self)
            connection.wake()

    @property
    def slices(self) -> tuple[int, ...]:
        """The slices that it has now."""
        with self._connection.lock:
            return tuple(sorted(self._inner.slices))

    @property
    def over(self) -> str:
        """Why its group ends: it is no longer declared. Empty for a group that goes on.

        Its items in the log are still given. Then, or at the latest an hour after its removal, receiving raises
        FailedError with the code `over`.
        """
        return self._inner.over

    def statistics(self) -> dict[str, Any]:
        """Its slices, what waits, and whether the head knows it."""
        with self._connection.lock:
            self._inner.items.settle()
            return self._inner.statistics()

    @property
    def _is_over(self) -> bool:
        return self._closed or self._connection.is_closed

    async def wait_answered(self, timeout: float) -> None:
        """Wait until the head has answered; raises if it is no member."""
        with self._connection.lock:
            await self._connection.wait_for(self._is_answered, timeout, "a member of its group")
            self._check()

    def _is_answered(self) -> bool:
        """Whether the head has answered, or will not."""
        return self._inner.is_settled or self._inner.has_left or self._closed

    # -- items

    async def _receive(self, timeout: float | None) -> GroupItem:
        limit = Timeout(timeout)
        with self._connection.lock:
            self._look()
            while (item := self._next_ready()) is None:
                await self._wait_arrived(limit, timeout, LOOK_SECONDS)
                self._look()
            return item

    def _finish_current(self) -> None:
        current, self._current = self._current, None
        if current is not None and not self._is_over:
            self._inner.set_now(time.monotonic())
            self._finish_one(current)

    def finish(self, handed: list[core.HandedItem], /) -> None:
        """These items are processed."""
        with self._connection.lock:
            if self._is_over:
                return
            self._inner.set_now(time.monotonic())
            for each in handed:
                self._finish_one(each)

    def _finish_one(self, handed: core.HandedItem) -> None:
        owned = handed.owned
        is_awaited = owned.is_stopping or owned.stream.queue.is_held
        self._inner.items.finish(handed)
        if is_awaited:
            self._connection.wake()

    def _next_ready(self) -> GroupItem | None:
        """The next item without a look at the member; None if there is none, or the member is to be looked at.

        The item before it is finished by that, unless that is `ack`'s.
        """
        now, inner, current = time.monotonic(), self._inner, self._current
        buffer = inner.items.buffer
        if current is not None:
            self._current, current.finished_at = None, now
            buffer.finished.append(current)
            if current.owned.is_stopping:  # looked at after the item was put there: `ItemBuffer` says why
                return None
        if self._is_stopped or self._closed or self._connection.is_closed or now > inner.beats.lease_until:
            return None
        try:
            handed = buffer.ready.popleft()
        except IndexError:
            return None
        handed.taken_at = now
        self._current = None if self._manual_ack else handed
        return GroupItem(self, handed)

    def _look(self) -> None:
        """Count what is finished, and get further items."""
        if self._is_over:
            return
        self._inner.set_now(time.monotonic())
        if self._inner.items.settle():
            self._connection.wake()
        if not self._is_stopped:
            self._inner.items.refill(TAKEN_AT_ONCE)

    # -- the end

    def stop(self) -> None:
        """Give the application nothing more: its loop ends after the item in hand, within half a second.

        A signal handler may call this: it does not wait. `close` then gives up the slices.
        """
        self._is_stopped = True

    async def shut(self, *, leave: bool, timeout: float) -> None:
        """Close it, as `close` says; the lock is not held."""
        with self._connection.lock:
            if self._closed:
                return
            if self._leaves(leave):
                try:
                    await self._connection.wait_for(lambda: self._inner.has_left, timeout, "without slices")
                except (WaitTimeoutError, ClosedError):
                    log.warning("member %s ends with slices that it could not give up", self.name)
            self._end()
            self._arrived.notify()
            self._connection.changed.notify()

    def _leaves(self, leave: bool) -> bool:
        """Finish the current item, and begin to give up the slices; False if they are not given up."""
        if self._is_over or self._connection.has_failed:
            return False
        self._finish_current()
        self._inner.items.settle()
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

    def _check(self) -> None:
        self._check_itself()
        if self._is_stopped:
            raise ClosedError(f"member {self.name!r} takes nothing more: it was told to stop")
        self._connection.check()
        if self._inner.has_left:
            raise ClosedError(f"member {self.name!r} has left its group")

    # -- for the connection

    def take(self, events: list[core.GroupEvent]) -> bool:
        if self._on_change is not None:
            self._changes += [event for event in events if isinstance(event, core.SlicesChanged)]
        self._arrived.notify()
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
            run(self.shut(leave=False, timeout=0.0))  # waits for nothing, as it does not leave
