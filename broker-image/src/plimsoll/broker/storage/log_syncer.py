"""The threads that sync a log, so that the loop goes on meanwhile: a sync covers all rounds written before it began.

A round that is written while a sync runs need not wait for the rest of that one: another thread begins with it at once.
The syncs may end in any order, since each covers all that the earlier ones cover.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Protocol

from plimsoll.broker.storage.log_folder import SYNCS_AT_ONCE


class SyncedFiles(Protocol):
    def sync(self, thread: int) -> None: ...


class LogSyncer:
    """`done`: the number of the last round that is safe. `descriptor` becomes readable when that has risen.

    `failed`: why a sync failed; then nothing later is safe.
    """

    def __init__(self, files: SyncedFiles, at_once: int = SYNCS_AT_ONCE) -> None:
        self.files = files
        self.done = self._asked = self._begun = 0
        self.failed: OSError | None = None
        self.syncs, self.sync_seconds, self.longest_seconds = 0, 0.0, 0.0
        self._began_at: dict[int, float] = {}  # by thread: when the syncs began that go on
        self._stops = False
        self._waiters = 0
        guard = threading.Lock()
        self._work, self._ended = threading.Condition(guard), threading.Condition(guard)
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._threads = [
            threading.Thread(target=self._run, args=(i,), name=f"log-sync-{i}", daemon=True) for i in range(at_once)
        ]

    @property
    def descriptor(self) -> int:
        return self._reader.fileno()

    @property
    def waiting_seconds(self) -> float:
        """For how long the oldest sync has been going on; 0 if there is none."""
        began = list(self._began_at.values())
        return time.monotonic() - min(began) if began else 0.0

    def start(self) -> None:
        """Begin, unless it has begun."""
        for thread in self._threads:
            if thread.ident is None:
                thread.start()

    def ask(self, number: int) -> None:
        """Have everything written up to now synced, which is all of round `number`."""
        with self._work:
            self._asked = max(self._asked, number)
            self._work.notify()

    def clear(self) -> None:
        """Make the descriptor unreadable again."""
        try:
            while self._reader.recv(4096):
                pass
        except BlockingIOError:
            pass  # all of it is read

    def wait(self, number: int, seconds: float) -> bool:
        """Wait until a round is safe; False if that takes longer, or a sync has failed."""
        self.ask(number)
        return self.wait_asked(number, seconds)

    def wait_asked(self, number: int, seconds: float) -> bool:
        """The same for a round whose sync has been asked for."""
        with self._ended:
            self._waiters += 1
            self._ended.wait_for(lambda: self.done >= number or self.failed is not None, seconds)
            self._waiters -= 1
        return self.done >= number

    def close(self) -> None:
        with self._work:
            self._stops = True
            self._work.notify_all()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(5.0)
        self._reader.close()
        self._writer.close()

    def _run(self, thread: int) -> None:
        while (number := self._next(thread)) is not None:
            failed: OSError | None = None
            try:
                self.files.sync(thread)
            except OSError as error:
                failed = error
            if not self._note(thread, number, failed):
                with contextlib.suppress(BlockingIOError):  # the reader is awake already
                    self._writer.send(b"s")

    def _next(self, thread: int) -> int | None:
        """The round to sync; None: there will be none."""
        with self._work:
            self._work.wait_for(lambda: self._asked > self._begun or self._stops or self.failed is not None)
            if self._asked <= self._begun or self.failed is not None:
                return None
            self._begun = self._asked
            self._began_at[thread] = time.monotonic()
            return self._begun

    def _note(self, thread: int, number: int, failed: OSError | None) -> bool:
        """Note the end of a sync; whether the loop was waiting for one, and so needs no other sign of its success."""
        with self._ended:
            seconds = time.monotonic() - self._began_at.pop(thread)
            self.syncs += 1
            self.sync_seconds += seconds
            self.longest_seconds = max(self.longest_seconds, seconds)
            if failed is None:
                self.done = max(self.done, number)
            elif self.failed is None:
                self.failed = failed
                self._work.notify_all()
            self._ended.notify_all()
            return self._waiters > 0 and failed is None
