"""The ledger of a channel: its batches and how far their results are published. All that outlasts a killed driver.

`_batches/NUMBER.batch` is one commit: the places in the feeds behind the batch, the parameters, and the results. It
appears by a link, whole or not at all, and before any of its results is published. `position.json` says up to which
result a head has answered, under which identity. It is written before the first publication of an identity, and after
answers. So a life that follows knows every publication that may have been sent, and asks the head which of them it has.

In an object store a batch is a conditional write, and so is the position, which has to be as this driver left it.
Nothing locks a store: of two drivers one writes the next batch or position, and the other ends.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
from msgspec import Struct

from plimsoll.channels.batch import BatchCommit, Result
from plimsoll.core.client import PublisherPosition
from plimsoll.feeds.commit_log import create, sync_folder, unlink, write_synced
from plimsoll.feeds.object_path import DatasetPath, ObjectPath, children

BATCHES: Final = "_batches"
POSITION: Final = "position.json"
LOCK: Final = "lock"
FORMAT: Final = 1


class LedgerError(Exception):
    """A ledger cannot be opened or written; says why and what to do."""


class PublishedCounts(Struct, frozen=True):
    """The answers of heads to results, up to a position."""

    accepted: int = 0
    unknown: int = 0
    refused: int = 0

    @property
    def answered(self) -> int:
        return self.accepted + self.unknown + self.refused

    def plus(self, answer: str, number: int) -> PublishedCounts:
        """The counts with this number of results more, which have this answer of a publisher."""
        if answer in ("accepted", "unconfirmed"):
            return PublishedCounts(self.accepted + number, self.unknown, self.refused)
        if answer == "unknown":
            return PublishedCounts(self.accepted, self.unknown + number, self.refused)
        return PublishedCounts(self.accepted, self.unknown, self.refused + number)


class LedgerPosition(Struct, frozen=True):
    """Results up to `number` are answered; `incarnation`, `seq`, `head`, `epoch` as in `PublisherPosition`."""

    number: int
    incarnation: int
    seq: int
    head: str
    epoch: int
    at_us: int
    counts: PublishedCounts = PublishedCounts()
    format: int = FORMAT

    @property
    def of_publisher(self) -> PublisherPosition:
        return PublisherPosition(self.incarnation, self.number, self.seq, self.head, self.epoch)


class ChannelLedger:
    """The ledger in a folder or an object store, open for one process.

    Raises:
        LedgerError: another process has it, or a file of it cannot be read.
        OSError: the disk or the store fails.

    """

    def __init__(self, root: DatasetPath) -> None:
        self.root = root
        (root / BATCHES).mkdir(parents=True, exist_ok=True)
        self._lock = _locked(root) if isinstance(root, Path) else None
        self._version = ""  # of the position in a store
        try:
            self.position = self._read_position()
            self._kept = self._recover()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let another process work on the channel."""
        if self._lock is not None:
            self._lock.close()

    @property
    def last(self) -> BatchCommit | None:
        """The newest batch."""
        return self._kept[-1] if self._kept else None

    def unpublished(self) -> Iterator[Result]:
        """The results behind the position, in order: those that have no answer of a head."""
        through = self.position.number if self.position is not None else 0
        for commit in self._kept:
            yield from commit.results[max(0, through - commit.before) :]

    def commit(self, commit: BatchCommit) -> None:
        """Make a batch final. Raises LedgerError: another process has written this batch."""
        path = self._path(commit.number)
        try:
            create(path, msgspec.msgpack.encode(commit))
        except FileExistsError as error:
            raise LedgerError(f"{path}: another driver has written this batch; end it") from error
        self._kept.append(commit)
        self._forget_published()

    def save_position(self, position: LedgerPosition) -> None:
        """Note how far results are published. Raises LedgerError: another driver has noted it in the store."""
        path, content = self.root / POSITION, msgspec.json.encode(position)
        if isinstance(path, ObjectPath):
            try:
                self._version = path.update(content, self._version)
            except FileExistsError as error:
                raise LedgerError(f"{path}: another driver works on this channel; end it") from error
        else:
            partial = path.with_name(f".{path.name}.partial")
            write_synced(partial, content)
            replace(partial, path)
            sync_folder(path.parent)
        self.position = position

    def _forget_published(self) -> None:
        """Delete batches whose results are all answered, but for the newest, which has the places."""
        through = self.position.number if self.position is not None else 0
        while len(self._kept) > 1 and self._kept[0].totals.results <= through:
            unlink(self._path(self._kept[0].number))
            del self._kept[0]

    def _recover(self) -> list[BatchCommit]:
        folder = self.root / BATCHES
        for path in children(folder, ".*.partial"):
            unlink(path)
        found = [self._decoded(path) for path in children(folder, "[0-9]*.batch")]
        for before, after in pairwise(found):
            if after.number != before.number + 1:
                raise LedgerError(f"{folder}: batch {before.number + 1} is missing: restore it from a copy")
        return found

    def _decoded(self, path: DatasetPath) -> BatchCommit:
        try:
            return msgspec.msgpack.decode(path.read_bytes(), type=BatchCommit)
        except msgspec.MsgspecError as error:
            raise LedgerError(f"{path}: this is not a batch of a channel: {error}; restore it from a copy") from error

    def _read_position(self) -> LedgerPosition | None:
        path = self.root / POSITION
        try:
            if isinstance(path, ObjectPath):
                content, self._version = path.read_version()
            else:
                content = path.read_bytes()
            return msgspec.json.decode(content, type=LedgerPosition)
        except FileNotFoundError:  # nothing has been published yet
            return None
        except msgspec.MsgspecError as error:
            raise LedgerError(f"{path}: this is not a position of a channel: {error}") from error

    def _path(self, number: int) -> DatasetPath:
        return self.root / BATCHES / f"{number:012d}.batch"


def _locked(root: Path) -> BinaryIO:
    lock = (root / BATCHES / LOCK).open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise LedgerError(f"{root}: another driver works on this channel; end it first") from error
    return lock


def replace(source: Path, target: Path) -> None:
    """Move a file over another one."""
    source.replace(target)
