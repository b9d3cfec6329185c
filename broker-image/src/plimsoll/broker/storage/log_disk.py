"""A head's log on its disk, as the event loop uses it: recovery at the start, a batch a round, output that waits.

With `Always` what a round has to say is held until a sync that began behind its batch has ended; the loop goes on
meanwhile, and a sync covers all rounds that were written before it. Syncs may overlap. With `Interval` they come at
most that often, and output waits only for what may never be forgotten: the beginning of an epoch, and gaps.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from plimsoll.broker.storage.log_checker import LogChecker
from plimsoll.broker.storage.log_folder import DAMAGED, LogFolder
from plimsoll.broker.storage.log_syncer import LogSyncer
from plimsoll.core.config import DiskLog
from plimsoll.core.head.durability.commit import RoundCommit, recovered_log
from plimsoll.core.head.durability.damage_note import DAMAGE_NOTE
from plimsoll.core.head.durability.journal import RecoveredLog
from plimsoll.core.head.durability.records import DamagedBatchError
from plimsoll.core.head.durability.recovery import Recovery, compared
from plimsoll.core.head.durability.segments import PROMISE
from plimsoll.core.head.durability.store import LogStore
from plimsoll.core.head.machine import Head
from plimsoll.core.transport.overlay_node import Dial, Hangup

log = logging.getLogger(__name__)

BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
PROMISE_SECONDS: Final = 1.0
"""How often a sync takes along the note how far the log is safe, at most. It is written ahead of every answer."""

BEGUN: Final = ".begun"
"""The end of the name of a file beside the folder: there has been a log, whatever becomes of the folder."""

LAST_SYNC_SECONDS: Final = 10.0
"""How long a head that leaves waits for the last sync."""


class LogDiskError(OSError):
    """The disk of a log has failed; the process has to end, and recovers what is safe when it starts again."""


class RoundOutput(NamedTuple):
    """What a machine has to say at the end of a round."""

    dials: list[Dial | Hangup]
    control: list[tuple[Any, bytes]]
    data: list[tuple[Any, bytes]]

    def __bool__(self) -> bool:
        return bool(self.dials or self.control or self.data)


class LogDisk:
    """The disk of the log of head `name`. `recover` comes first, then `attach`."""

    def __init__(self, config: DiskLog, name: str) -> None:
        """Open the folder of the log.

        Raises:
            LogFolderError: it cannot be used.

        """
        self.config, self.name = config, name
        self.folder = LogFolder(Path(config.directory))
        self._begun = self.folder.path.with_name(self.folder.path.name + BEGUN)
        self.store = LogStore(self.folder, name, config.size_bytes)
        self.syncer = LogSyncer(self.folder)
        self.commit: RoundCommit | None = None
        self.found, self.damages = "", 0
        self._safe_last = 0
        self.checker = LogChecker(self.folder, [])
        self._held: deque[tuple[int, RoundOutput]] = deque()
        self._places: deque[tuple[int, tuple[int, int], int]] = deque()  # of rounds for which a sync was asked
        self._round = self._asked = self._waits_for = 0
        self._next_sync = self._next_promise = 0.0
        self.is_relaxed = False
        """Whether a standby has all that leaves, so that its word is enough for now."""

    @property
    def is_always(self) -> bool:
        return self.config.sync == "Always"

    @property
    def is_behind(self) -> bool:
        """Never: a log on a disk is written from its beginning on."""
        return False

    @property
    def rounds_held(self) -> int:
        """How many rounds have output that waits for a sync."""
        return len(self._held)

    @property
    def descriptor(self) -> int:
        """Readable when something may have become safe; `clear` makes it unreadable again."""
        return self.syncer.descriptor

    def clear(self) -> None:
        self.syncer.clear()

    # -- start and end

    def recover(self, *, is_replica: bool = False) -> RecoveredLog:
        """Read what the disk has, and say what was found. `is_replica`: a head wrote it whose standby this was.

        Raises:
            LogDiskError: it cannot be read.

        """
        note = self.store.damage
        try:
            note.forget_known(self.config.known_epoch, self.config.known_position)
            found = self.store.recover()
            noted = len(found.damage)
            if not (found.segments or found.damage or is_replica) and self._begun.exists():
                found = found._replace(damage=("all of its files are gone, and a new one begins",), is_whole=False)
            if not is_replica:  # one that has followed has all that was told, whatever its own disk has
                found = compared(found, self.config.known_epoch, self.config.known_position)
            for damage in found.damage[noted:]:
                note.add(damage, 0, is_whole=False)
            is_synced = self._waits_always(may_lag=self.config.may_lag)
            recovered = recovered_log(self.store, found, is_synced=is_synced, boot=_boot(), is_replica=is_replica)
        except (OSError, DamagedBatchError) as error:
            raise LogDiskError(f"the log in {self.config.directory} cannot be read: {error}") from error
        self._say_found(found)
        self.found = (
            f"positions {self.store.first} to {self.store.position} in {found.segments} segments, "
            f"{found.bytes} bytes; {found.torn_bytes} bytes of a torn end cut off"
        )
        self.checker = LogChecker(self.folder, self.store.unchecked())
        log.info("recovered the log in %s: %s", self.config.directory, self.found)
        return recovered

    def _say_found(self, found: Recovery) -> None:
        directory, note = self.config.directory, self.store.damage
        self.damages = note.found.parts
        for damage in [text for text in note.found.texts if text not in found.damage]:
            log.error(
                "the log in %s, as an earlier start has found and no status is known to say: %s", directory, damage
            )
        for damage in found.damage:
            log.error("the log in %s: %s; what is set aside is in its folder %s", directory, damage, DAMAGED)
        if note.fault:
            log.error(
                "the log in %s: its damage cannot be noted in %s: %s; if this process ends soon, no later one says it",
                directory, DAMAGE_NOTE, note.fault,
            )  # fmt: skip
        if not found.segments:
            log.warning("the log in %s is empty: a new one begins", directory)

    def attach(self, head: Head, now: float) -> None:
        """Begin to write what this head logs.

        Raises:
            LogDiskError: there is no room for a log.

        """
        self.commit = RoundCommit(self.store, head)
        try:
            self.commit.begin(now)
        except OSError as error:
            raise LogDiskError(str(error)) from error
        with suppress(OSError):  # where nothing can be written beside the folder, as on a volume, it is not known
            self._begun.touch(mode=0o600)
        self.begin_syncs()
        self.checker.start()

    def confirm(self, *, may_lag: bool) -> None:
        """Have the log say whether all waits for syncs from now on. `may_lag`: not while a standby has it."""
        if self.commit is not None:
            self.commit.journal.wait_for_syncs(is_synced=self._waits_always(may_lag=may_lag))

    def _waits_always(self, *, may_lag: bool) -> bool:
        return self.is_always and not may_lag

    def begin_syncs(self) -> None:
        """Sync what is written from here on: a standby writes before it is a head."""
        self.syncer.start()

    def sync_at_times(self, now: float) -> None:
        """Ask for a sync, if the last one was asked for long enough ago: a standby is waited for without it."""
        if now >= self._next_sync:
            self._next_sync = now + self.config.interval_seconds
            self._round += 1
            self._asked = self._round
            self.syncer.ask(self._round)

    def close(self) -> None:
        self.checker.close()
        self.syncer.close()
        self.folder.close()

    # -- rounds

    def end_round(self, output: RoundOutput, now: float) -> None:
        """Write what the round has logged, and take what it has to say: `released` gives it back in its time.

        Raises:
            LogDiskError: the disk has failed.

        """
        if self.commit is None:
            raise RuntimeError(f"{self.name} has no log attached")
        try:
            for name, fault in self.checker.take():
                self.commit.checked(name, fault)
            self._note_safe()
            if now >= self._next_promise:
                self._next_promise = now + PROMISE_SECONDS
                self.store.promise()
                self.store.damage.try_again()
            written = self.commit.write(now)
        except OSError as error:
            raise LogDiskError(f"the log in {self.config.directory} cannot be written: {error}") from error
        if written:
            self._round += 1
            if (self.is_always and not self.is_relaxed) or self.commit.is_binding:
                self._waits_for = self._round
        if self._asked < self._round and (self._waits_for > self._asked or now >= self._next_sync):
            self._asked = self._round
            self._next_sync = now + self.config.interval_seconds
            self._places.append((self._round, self.store.place, self.store.position))
            self.syncer.ask(self._round)
        if output:
            self._held.append((self._waits_for, output))

    def _note_safe(self) -> None:
        """Have the next batch say how far the segment is safe."""
        while self._places and self._places[0][0] <= self.syncer.done:
            _, place, self._safe_last = self._places.popleft()
            self.store.safe(place)

    def wait_for_all(self) -> None:
        """Let what comes wait for a sync of all that was written before: no standby has it any more."""
        self._waits_for = self._round

    def released(self) -> list[RoundOutput]:
        """The output that may be sent now, in order.

        Raises:
            LogDiskError: a sync has failed; what is held can never be sent.

        """
        if self.syncer.failed is not None:
            raise LogDiskError(f"the log in {self.config.directory} cannot be synced: {self.syncer.failed}")
        found = []
        while self._held and self._held[0][0] <= self.syncer.done:
            found.append(self._held.popleft()[1])
        if found:
            # Before others learn of it: what is missing after the end of this process has been promised then.
            self._note_safe()
            try:
                self.store.promise(is_synced=False)
            except OSError as error:
                raise LogDiskError(f"the log in {self.config.directory} cannot be written: {error}") from error
        return found

    def await_safe(self, seconds: float) -> bool:
        """Wait until a sync gives something back, for this long at most; False if it does not, or nothing is held."""
        return bool(self._held) and self.syncer.wait_asked(self._held[0][0], seconds)

    def flush(self) -> list[RoundOutput]:
        """All that is held, once it is safe: when the head leaves.

        Raises:
            LogDiskError: as `released`.

        """
        if self._round and not self.syncer.wait(self._round, LAST_SYNC_SECONDS):
            log.warning("the last sync of the log in %s has not ended", self.config.directory)
        elif self._round and self.syncer.failed is None:
            self._promise_all()
        return self.released()

    def _promise_all(self) -> None:
        """Note that all of the log is safe: a start that finds less has lost something."""
        try:
            self.store.safe(self.store.place)
            self.store.promise()
            if PROMISE in self.folder.names():
                self.folder.settle(PROMISE)
        except OSError as error:
            raise LogDiskError(f"the log in {self.config.directory} cannot be written: {error}") from error

    def status(self) -> dict[str, Any]:
        """Scalars about the disk, for status and metrics."""
        syncer, store = self.syncer, self.store
        return {
            "log_sync": self.config.sync,
            "log_disk_bytes": store.bytes,
            "log_disk_limit_bytes": store.size,
            "log_disk_first": store.first,
            "log_disk_last": store.position,
            "log_safe_last": self._safe_last,
            "log_syncs": syncer.syncs,
            "log_sync_seconds": syncer.sync_seconds,
            "log_longest_sync_seconds": syncer.longest_seconds,
            "log_sync_waiting_seconds": syncer.waiting_seconds,
            "log_rounds_held": self.rounds_held,
            "log_found": self.found,
            "log_fault": "" if self.commit is None else self.commit.refused,
            "log_damages": self.damages,
            "log_read_faults": len(store.read_faults),
            "log_unchecked_bytes": self.checker.remaining_bytes,
        }


def _boot() -> str:
    """Which start of the operating system this is: only with that ends what was written and not synced."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""
