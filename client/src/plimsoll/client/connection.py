"""A connection of a process: one I/O thread, one machine, and any number of publishers and subscribers on it.

One lock guards the machine and its state. The I/O thread waits without it, serves a round under it, and calls the
application's callbacks without it. Waiting threads are woken through a condition of that lock.
"""

# ruff: noqa: ASYNC109  # a timeout is a parameter of applications, and is named in errors

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from types import TracebackType
from typing import Any, Self

from plimsoll.client.base.connection import CLOSE_SECONDS, BaseConnection
from plimsoll.client.group import Group
from plimsoll.client.io_driver import Heads
from plimsoll.client.security import Security
from plimsoll.client.waiting import Signal, ThreadSignal, Timeout, run
from plimsoll.core import client as core

log = logging.getLogger(__name__)


class Connection(BaseConnection):
    """Connects to a head, and to the edges that it names. Thread-safe. Used in a `with` block, or closed by `close`.

    `heads`: an endpoint such as `tcp://127.0.0.1:7000`, or several; the first that answers is used.
    `security`: `Curve(secret=..., server=...)`, or `"plain"` on a network that you trust.
    `name`: unique in the fleet; made up if it is left out.

    Raises:
        SecurityError: a key cannot be used.
        ResourceLimitError: the system allows this process no more sockets.

    """

    def __init__(
        self, heads: Heads, *, security: Security, name: str = "", limits: core.ClientLimits | None = None
    ) -> None:
        super().__init__(heads, security=security, name=name, limits=limits)
        self.lock = threading.Lock()
        self.changed = ThreadSignal(threading.Condition(self.lock))
        self._has_ended = False
        self._is_woken = False
        self._next_round_at = 0.0
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._engine.transport.watch(self._wake_read)
        self._thread = threading.Thread(target=self._run, name=f"plimsoll {self.name}", daemon=True)
        self._thread.start()

    # -- for the application

    def wait_open(self, timeout: float = 10.0) -> None:
        """Wait until a head has answered.

        Raises:
            WaitTimeoutError: saying what was tried.

        """
        run(self._wait_open(timeout))

    def group(self, name: str, slices: int | None = None, **definition: Any) -> Group:
        """A consumer group of the cluster whose head this connection uses; `subscribe` makes it a member.

        `slices`, and with it `filter`, `function`, `by`, `low`, `high`, `unassigned`, `balancing` and `in_session`:
        what the group is, for an identity with the role `Group`, which may make it. Others leave it out, and join what
        is there.

        Raises:
            TypeError: there is no such part of a definition, or no `slices` with it.

        """
        return Group(self, name, self._definition(name, slices, definition))

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Wait for unanswered publications, close all publishers and subscribers, and end; within `timeout` seconds.

        Called from a callback it does not wait; the connection ends right after the callback.
        """
        run(self.shut(timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # -- for publishers, subscribers and members

    def wake(self) -> None:
        """Wake the I/O thread for a round."""
        if not self._is_woken:
            self._is_woken = True
            # a full pipe wakes it, too
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake_write, b"x")

    def new_signal(self) -> Signal:
        return self.changed  # a condition wakes all threads that wait with the lock

    async def shut(self, timeout: float) -> None:
        if self._has_ended:
            return
        if threading.current_thread() is self._thread:
            with self.lock:
                self._engine.machine.close_all(time.monotonic())
                self._closed = True
            return
        limit = Timeout(timeout)
        with self.lock:
            await self._finish(limit)
            self._closed = True
            self.wake()
        self._thread.join(max(1.0, limit.left() or 0.0))
        self._has_ended = True

    # -- the I/O thread

    def _run(self) -> None:
        try:
            while not self._closed:
                self._round()
        except BaseException as error:  # raised again at all users of this connection
            log.exception("connection %s has failed", self.name)
            self._failure = error
        finally:
            self._end()

    def _round(self) -> None:
        self._engine.transport.wait(0.0 if self._is_woken else max(0.0, self._next_round_at - time.monotonic()))
        with self.lock:
            if self._is_woken:
                self._is_woken = False
                with contextlib.suppress(BlockingIOError):  # a full pipe took no byte of this wake-up
                    os.read(self._wake_read, 4096)
            calls = self._serve()
            # Under the lock: other threads change what the machine goes through here.
            self._next_round_at = time.monotonic() + self._engine.seconds_to_next()
            self.changed.notify()
        for owner in calls:
            self._call(owner)

    def _end(self) -> None:
        with self.lock:
            self._closed = True
            self._leave()
            # `wake` writes under the lock, and no longer from here on.
            self._is_woken = True
            os.close(self._wake_read)
            os.close(self._wake_write)
