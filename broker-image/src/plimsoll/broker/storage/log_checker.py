"""The thread that reads sealed segments after the start, so that damage in them is found before a reader needs them."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from plimsoll.core.head.durability.records import DamagedBatchError
from plimsoll.core.head.durability.segments import CHECK_BYTES, LogFiles, Segment, check_sealed

log = logging.getLogger(__name__)

CHECK_BYTES_PER_SECOND: Final = 64 * 1024 * 1024
"""Reading no faster leaves the disk to the syncs: a log of 100 GiB is checked in 27 minutes."""


class LogChecker:
    """`remaining_bytes`: still to be read. `take` gives what was found, segment by segment, to the loop."""

    def __init__(self, files: LogFiles, segments: Sequence[Segment], bytes_per_second: float = CHECK_BYTES_PER_SECOND):
        self.files = files
        self.remaining_bytes = sum(segment.end for segment in segments)
        self._pause_seconds = CHECK_BYTES / bytes_per_second
        self._todo = [(segment.name, segment.checksum, segment.end) for segment in segments]
        self._found: deque[tuple[str, str]] = deque()
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-check", daemon=True)

    def start(self) -> None:
        if self._todo:
            self._thread.start()

    def take(self) -> list[tuple[str, str]]:
        """The segments that were read since the last call, each with its fault, or with an empty text."""
        found = []
        while self._found:
            found.append(self._found.popleft())
        return found

    def close(self) -> None:
        self._stops.set()
        if self._thread.ident is not None:
            self._thread.join(5.0)

    def _run(self) -> None:
        # The newest first: what is behind a damaged segment is given up with it, so the older ones matter less.
        for name, checksum, size in reversed(self._todo):
            fault = self._fault_of(name, checksum)
            if self._stops.is_set():
                return
            self._found.append((name, fault))  # first: once nothing remains, all has been found
            self.remaining_bytes -= size

    def _fault_of(self, name: str, checksum: int) -> str:
        try:
            for _ in check_sealed(self.files, name, checksum):
                if self._stops.wait(self._pause_seconds):
                    return ""
        except FileNotFoundError:
            return ""  # it has gone by its age, which the loop knows
        except (OSError, DamagedBatchError) as error:
            log.error("%s: %s", name, error)  # what is done about it, the loop does
            return str(error)
        return ""
