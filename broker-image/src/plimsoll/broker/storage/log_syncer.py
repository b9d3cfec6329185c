"""The thread that syncs a log, so that the loop goes on meanwhile: a sync covers all rounds written before it began."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Protocol


class SyncedFiles(Protocol):
    def sync(self) -> None: ...


class LogSyncer:
    """`done`: the number of the last round that is safe. `descriptor` becomes readable when that has risen.

    `failed`: why a sync failed; then nothing later is safe.
    """

    def __init__(self, files: SyncedFiles) -> None:
        self.files = files
        self.done = self._asked = 0
        self.failed: OSError | None = None
        self.syncs, self.sync_seconds, self.longest_seconds = 0, 0.0, 0.0
        self._began_at: float | None = None
        self._stops = False
        self._change = threading.Condition()
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="log-sync", daemon=True)

    @property
    def descriptor(self) -> int:
        return self._reader.fileno()

    @property
    def waiting_seconds(self) -> float:
        """For how long a sync has been going on; 0 if there is none."""
        began = self._began_at
        return 0.0 if began is None else time.monotonic() - began

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self._thread.ident is None:
            self._thread.start()

    def ask(self, number: int) -> None:
        """Have everything written up to now synced, which is all of round `number`."""
        with self._change:
            self._asked = max(self._asked, number)
            self._change.notify()

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
        with self._change:
            self._change.wait_for(lambda: self.done >= number or self.failed is not None, seconds)
        return self.done >= number

    def close(self) -> None:
        with self._change:
            self._stops = True
            self._change.notify()
        if self._thread.ident is not None:
            self._thread.join(5.0)
        self._reader.close()
        self._writer.close()

    def _run(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._asked > self.done or self._stops)
                if self._asked <= self.done:
                    return
                number = self._asked
            self._began_at = started = time.monotonic()
            failed: OSError | None = None
            try:
                self.files.sync()
            except OSError as error:
                failed = error
            seconds = time.monotonic() - started
            self._began_at = None
            with self._change:
                self.syncs += 1
                self.sync_seconds += seconds
                self.longest_seconds = max(self.longest_seconds, seconds)
                if failed is None:
                    self.done = number
                self.failed = failed
                self._change.notify_all()
            with contextlib.suppress(BlockingIOError):  # the reader is awake already
                self._writer.send(b"s")
            if failed is not None:
                return
