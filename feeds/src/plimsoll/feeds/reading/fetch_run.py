"""Reads a feed over a connection to its recorder: asks, waits, repeats, and looks for it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from plimsoll.core.protocol import messages as msg
from plimsoll.feeds.reading.table_reader import (
    AllRead,
    FeedReadError,
    FileAbandoned,
    ReadEvent,
    RowsGone,
    TableReader,
)

WAIT_SECONDS: Final = 0.1
REPEAT_SECONDS: Final = 2.0
LOOK_AGAIN_SECONDS: Final = 5.0
"""Without a connection for this long, the address is looked up again: the recorder may have another one."""
SILENT_SECONDS: Final = 30.0
FOLLOW_SECONDS: Final = 1.0
VANISHED_SECONDS: Final = 0.2
COMPACT_SECONDS: Final = 60.0
UNKNOWN: Final = "it does not run, cannot be reached from here, does not know this key, or serves many others with it"


class AsksRecorder(Protocol):
    """`plimsoll.client.feed_connection.FeedConnection` is one."""

    @property
    def is_connected(self) -> bool: ...
    @property
    def fault(self) -> str: ...
    def ask(self, requests: Iterable[msg.FeedRequest]) -> None: ...
    def answers(self, seconds: float) -> list[msg.FeedAnswer]: ...
    def close(self) -> None: ...


class TakesFeed(Protocol):
    """What is given all that is read; `DatasetCopy` is one. `remedy`: how to go on if the recorder is silent."""

    @property
    def remedy(self) -> str: ...
    def take(self, reader: TableReader, event: ReadEvent, now_us: int) -> None: ...
    def compact(self, now_us: int) -> int: ...


@dataclass
class FetchRun:
    """Reads for `taker` until it is closed. `connect` looks the recorder up; `tell` is given lines for a person.

    `connect` raises FeedReadError if the recorder is not to be found. `follows`: it waits for more.
    `monotonic`: seconds; `clock`: microseconds since 1970.
    """

    taker: TakesFeed
    readers: list[TableReader]
    connect: Callable[[], AsksRecorder]
    tell: Callable[[str], None]
    monotonic: Callable[[], float]
    clock: Callable[[], int]
    follows: bool = False
    _due: dict[str, float] = field(default_factory=dict)  # by table: when to ask
    _done: set[str] = field(default_factory=set)
    _lookup_fault: str = ""
    _connection: AsksRecorder | None = None

    def run(self, stopped: Callable[[], bool]) -> None:
        """Read until there is nothing more, or until `stopped`; another call goes on.

        Raises:
            FeedReadError: reading cannot go on.

        """
        connection = self._connected()
        heard = repeated = linked = compacted = self.monotonic()
        while not stopped() and len(self._done) < len(self.readers):
            self._ask(connection)
            answers = connection.answers(WAIT_SECONDS)
            now = self.monotonic()
            for answer in answers:
                self._take(answer, now)
            linked = now if connection.is_connected else linked
            if answers:
                heard = repeated = now
            elif now - linked >= LOOK_AGAIN_SECONDS:
                connection, linked = self._looked_up_again(connection), now
            elif now - repeated >= REPEAT_SECONDS:
                repeated = now
                connection.ask(request for reader in self.readers for request in reader.requests_again())
            if now - heard >= SILENT_SECONDS and not self._is_idle(now):
                heard = self._note_silence(connection.fault, now)
            if self.follows and now - compacted >= COMPACT_SECONDS:
                compacted = now
                self.taker.compact(self.clock())

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connected(self) -> AsksRecorder:
        if self._connection is None:
            self._connection = self.connect()
        return self._connection

    def _looked_up_again(self, connection: AsksRecorder) -> AsksRecorder:
        """A connection to where the recorder is now; if it is not to be found, the one that there was."""
        try:
            found = self.connect()
        except FeedReadError as error:  # its fleet may be starting again; a silence that lasts says it
            self._lookup_fault = str(error)
            return connection
        self._lookup_fault, self._connection = "", found
        connection.close()
        return found

    def _ask(self, connection: AsksRecorder) -> None:
        now = self.monotonic()
        if not connection.is_connected:
            return
        for reader in self.readers:
            if reader.table not in self._done and now >= self._due.get(reader.table, now):
                connection.ask(reader.requests())

    def _take(self, answer: msg.FeedAnswer, now: float) -> None:
        for reader in self.readers:
            for event in reader.take(answer):
                self.taker.take(reader, event, self.clock())
                if isinstance(event, RowsGone):
                    lost = f"{reader.feed}: {reader.table} {event.first} to {event.last}"
                    self.tell(f"{lost}: retention has deleted them before they were read")
                elif isinstance(event, FileAbandoned):
                    self._due[reader.table] = now + VANISHED_SECONDS
                elif isinstance(event, AllRead):
                    self._due[reader.table] = now + FOLLOW_SECONDS
                    if not self.follows:
                        self._done.add(reader.table)

    def _is_idle(self, now: float) -> bool:
        """Whether nothing is asked, since all is read."""
        return not any(reader.requests_again() for reader in self.readers) and all(
            self._due.get(reader.table, 0.0) > now for reader in self.readers
        )

    def _note_silence(self, fault: str, now: float) -> float:
        feed = self.readers[0].feed
        found = f"the recorder of {feed} has not answered for {SILENT_SECONDS:.0f} s"
        why = self._lookup_fault or fault or UNKNOWN
        if not self.follows:
            raise FeedReadError(f"{found}: {why}; {self.taker.remedy}")
        self.tell(f"{found}: {why}; trying again")
        return now
