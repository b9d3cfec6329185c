"""The commit log of a dataset: which files belong to it, and how far its subscriber had come when they were written.

A change of a dataset has three steps, and may be interrupted before, between and in each of them:

1. **Stage.** New files are written to `_staging/` and synced. No reader looks there.
2. **Commit.** `_commits/NUMBER.json` appears by a link, which fails if that number exists. It names the files that come
   and go, and holds token, watermarks, counts and schema after the change. This one step decides.
3. **Publish.** Staged files are renamed into their folders, files that go are deleted.

In an object store (`object_path`) a commit is a conditional write, and publishing a copy with a deletion behind it.

A process that opens the log repeats step 3 for every commit, which changes nothing where it is done, and deletes staged
files that no commit names. So a row is in the dataset if and only if its commit is, and the next life of the recorder
asks the fleet for exactly what no commit has. A second writer cannot commit: the number that it takes exists.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, Literal

import msgspec
from msgspec import Struct

from plimsoll.feeds.object_path import DatasetPath, ListedObject, children
from plimsoll.feeds.schema import FeedSchema

COMMITS: Final = "_commits"
COMMIT_NAMES: Final = "[0-9]*.json"
STAGING: Final = "_staging"
LOCK: Final = "lock"
FORMAT: Final = 1
STAGED_SECONDS: Final = 3600.0
"""A staged object that is older is left over: a recorder commits within seconds of staging."""
CHECKPOINT_COMMITS: Final = 256
"""After this number of commits one lists all files, and those before it are deleted."""

Mark = tuple[str | int, ...]
Table = Literal["rows", "dead-letters"]
TABLES: Final[tuple[Table, ...]] = ("rows", "dead-letters")


class FeedFile(Struct, frozen=True):
    """A Parquet file of a dataset. `path`: below its folder. Times are of recording, in microseconds since 1970.

    Files of a table hold disjoint ranges of rows. `last_row`: 0 in a commit of an earlier version.
    """

    path: str
    table: Table
    rows: int
    size_bytes: int
    first_row: int
    first_us: int
    last_us: int
    last_row: int = 0

    @property
    def staged_name(self) -> str:
        return self.path.rpartition("/")[2]


class FeedCounts(Struct, frozen=True):
    """Counts since the beginning of the dataset: received = rows + dead letters.

    `expired_rows`: rows and dead letters that retention has deleted. `gaps`: those that the fleet has reported.
    """

    received: int = 0
    rows: int = 0
    dead_letters: int = 0
    gaps: int = 0
    expired_rows: int = 0


class FeedCommit(Struct, frozen=True):
    """One commit. `files`: all files of the dataset, in a checkpoint; else only `added` and `removed` are said.

    `dataset`: the same in all commits of a dataset and in its copies, and another one in every other dataset; empty
    until a first commit of this version. `expired_to`: the last row of each table that retention has deleted.
    `copy_of`: of a copy, the feed; `copied_to`: the row of the feed up to which it has each table.
    """

    number: int
    at_us: int
    subscription: str
    added: tuple[FeedFile, ...] = ()
    removed: tuple[str, ...] = ()
    files: tuple[FeedFile, ...] | None = None
    token: tuple[str, int, int] | None = None
    watermarks: tuple[Mark, ...] = ()
    counts: FeedCounts = FeedCounts()
    schema: FeedSchema | None = None
    gaps: tuple[str, ...] = ()
    format: int = FORMAT
    dataset: str = ""
    expired_to: dict[Table, int] = {}
    copy_of: str = ""
    copied_to: dict[Table, int] = {}


class FeedDatasetError(Exception):
    """A dataset cannot be opened, read or written; says why and what to do."""


@dataclass
class FeedState:
    """What the commits of a dataset say together."""

    last: FeedCommit | None = None
    files: dict[str, FeedFile] = field(default_factory=dict)

    def apply(self, commit: FeedCommit) -> None:
        """Take the next commit."""
        if commit.files is not None:
            self.files = {each.path: each for each in commit.files}
        self.files |= {each.path: each for each in commit.added}
        for path in commit.removed:
            self.files.pop(path, None)
        self.last = commit

    def table(self, table: Table) -> list[FeedFile]:
        """The files of a table, in the order of recording.

        Of a file without a last row it is the one in front of the next file's first, which is never too low.
        """
        files = sorted((each for each in self.files.values() if each.table == table), key=lambda each: each.first_row)
        received = self.last.counts.received if self.last is not None else 0
        bounds = [*(each.first_row - 1 for each in files[1:]), received]
        return [
            each if each.last_row else msgspec.structs.replace(each, last_row=bound)
            for each, bound in zip(files, bounds, strict=False)
        ]

    def expired_to(self, table: Table) -> int:
        """The last row of a table that retention has deleted; 0: none.

        Commits of earlier versions do not tell: then any row in front of the first file may be.
        """
        if self.last is None or not self.last.counts.expired_rows or self.last.expired_to:
            return 0 if self.last is None else self.last.expired_to.get(table, 0)
        files = self.table(table)
        return files[0].first_row - 1 if files else self.last.counts.received


class CommitLog:
    """The commit log in a folder, open for writing by one process. Raises OSError where the disk fails.

    In an object store nothing tells whether another process writes, before it commits.
    """

    def __init__(self, root: DatasetPath) -> None:
        self.root = root
        self.state = FeedState()
        self._kept: list[FeedCommit] = []
        for name in (COMMITS, STAGING):
            (root / name).mkdir(parents=True, exist_ok=True)
        self._lock = _locked(root) if isinstance(root, Path) else None
        try:
            self._recover()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let another process write."""
        if self._lock is not None:
            self._lock.close()

    @property
    def next_number(self) -> int:
        return self.state.last.number + 1 if self.state.last is not None else 1

    def staged(self, name: str) -> DatasetPath:
        """Where to write a file of the next commit; its name is the end of its path in the dataset."""
        return self.root / STAGING / name

    def commit(self, commit: FeedCommit) -> None:
        """Make a change of the dataset, whose new files are staged and synced.

        Raises:
            FeedDatasetError: another process has committed meanwhile.

        """
        if self.state.last is not None and len(self._kept) >= CHECKPOINT_COMMITS:
            self._checkpoint(self.state.last)
            commit = msgspec.structs.replace(commit, number=self.next_number)
        sync_folder(self.root / STAGING)
        self._write(commit)
        self.state.apply(commit)
        self._kept.append(commit)
        self._publish(commit)

    def _write(self, commit: FeedCommit) -> None:
        path = self.root / COMMITS / f"{commit.number:012d}.json"
        try:
            create(path, msgspec.json.encode(commit))
        except FileExistsError as error:
            raise FeedDatasetError(f"{path}: another process has written this commit; end it") from error

    def _publish(self, commit: FeedCommit) -> None:
        """Repeatable: a staged file that is gone has been published, or published and removed."""
        for file in commit.added:
            staged = self.staged(file.staged_name)
            if staged.exists():
                path = self.root / file.path
                path.parent.mkdir(parents=True, exist_ok=True)
                rename(staged, path)
        for name in commit.removed:
            unlink(self.root / name)

    def _recover(self) -> None:
        commits = read_commits(self.root)
        for commit in commits:
            self.state.apply(commit)
            self._publish(commit)
        self._kept = commits
        for folder in (self.root / STAGING, self.root / COMMITS):
            for path in children(folder):
                is_staged = path.parent.name == STAGING and _is_left_over(path)
                if is_staged or path.name.endswith(".partial"):
                    unlink(path)
        for path in children(self.root / COMMITS, COMMIT_NAMES):
            if commits and int(path.stem) < commits[0].number:
                unlink(path)

    def _checkpoint(self, last: FeedCommit) -> None:
        for folder in {(self.root / each.path).parent for commit in self._kept for each in commit.added}:
            with contextlib.suppress(FileNotFoundError):  # retention has removed it
                sync_folder(folder)
        sync_folder(self.root / STAGING)
        files = tuple(self.state.files[path] for path in sorted(self.state.files))
        made = msgspec.structs.replace(last, number=last.number + 1, added=(), removed=(), files=files, gaps=())
        self._write(made)
        self.state.apply(made)
        for commit in self._kept:
            unlink(self.root / COMMITS / f"{commit.number:012d}.json")
        self._kept = [made]


class KnownCommits:
    """Commits of a dataset in a store that were read before, for readers that come again: each is a request.

    A commit is known by its name and the version that the store tells, so a dataset that is made again is read again.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], FeedCommit] = {}

    def decoded(self, commit: ListedObject) -> FeedCommit:
        """A commit, read if it is not known."""
        key = (str(commit.path), commit.version)
        if key not in self._known:
            self._known[key] = _decoded(commit.path)
        return self._known[key]

    def keep(self, commits: Iterable[ListedObject]) -> None:
        """Forget all but these."""
        present = {(str(each.path), each.version) for each in commits}
        self._known = {key: found for key, found in self._known.items() if key in present}


CommitReader = Callable[[], FeedCommit]


def _commit_readers(root: DatasetPath, known: KnownCommits | None) -> list[CommitReader]:
    """How to read each commit that there is, in order. `known`: as in `read_commits`."""
    if known is None or isinstance(root, Path):
        return [partial(_decoded, path) for path in children(root / COMMITS, COMMIT_NAMES)]
    found = [each for each in (root / COMMITS).objects() if fnmatchcase(each.name, COMMIT_NAMES)]
    known.keep(found)
    return [partial(known.decoded, each) for each in found]


def read_state(root: DatasetPath, known: KnownCommits | None = None) -> FeedState:
    """What a dataset consists of now, for readers; takes no lock. `known`: as in `read_commits`.

    Raises:
        FeedDatasetError: there is no dataset, or it cannot be read.

    """
    state = FeedState()
    for commit in read_commits(root, known):
        state.apply(commit)
    if state.last is None:
        raise FeedDatasetError(f"{root}: there is no dataset here: {COMMITS}/ holds no commit")
    return state


def read_commits(root: DatasetPath, known: KnownCommits | None = None, attempts: int = 5) -> list[FeedCommit]:
    """The commits since the last checkpoint, in order. A writer may make a checkpoint meanwhile: then read again.

    `known`: those that the caller has read before.
    """
    for _ in range(attempts):
        try:
            commits = _since_checkpoint(_commit_readers(root, known))
        except FileNotFoundError:
            continue  # a checkpoint has replaced it
        _check(root, commits)
        return commits
    raise FeedDatasetError(f"{root}: its commits change too fast to be read; try again")


def read_last_commit(root: DatasetPath, known: KnownCommits | None = None, attempts: int = 5) -> FeedCommit | None:
    """The newest commit alone, for who looks often; None if there is no dataset yet. Raises FeedDatasetError."""
    for _ in range(attempts):
        readers = _commit_readers(root, known)
        try:
            return readers[-1]() if readers else None
        except FileNotFoundError:
            continue  # a checkpoint has replaced it
    raise FeedDatasetError(f"{root}: its commits change too fast to be read; try again")


def _since_checkpoint(readers: Sequence[CommitReader]) -> list[FeedCommit]:
    """From the last checkpoint, or the first commit, to the newest."""
    found = []
    for reader in reversed(readers):
        found.append(reader())
        if found[-1].files is not None:
            break
    return found[::-1]


def _decoded(path: DatasetPath) -> FeedCommit:
    text = path.read_bytes()
    try:
        commit = msgspec.json.decode(text, type=FeedCommit)
    except msgspec.MsgspecError as error:
        raise FeedDatasetError(f"{path}: this is not a commit of a feed: {error}") from error
    if commit.format != FORMAT:
        raise FeedDatasetError(f"{path}: has format {commit.format}; this version reads {FORMAT}: use a newer version")
    return commit


def _check(root: DatasetPath, commits: Iterable[FeedCommit]) -> None:
    """Commits without a gap: one that is missing would lose its rows without a word."""
    expected = None
    for commit in commits:
        first = 1 if commit.files is None else commit.number
        if commit.number != (first if expected is None else expected):
            raise FeedDatasetError(f"{root / COMMITS}: commit {expected or first} is missing: restore it from a copy")
        expected = commit.number + 1


def _locked(root: Path) -> BinaryIO:
    lock = (root / COMMITS / LOCK).open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise FeedDatasetError(f"{root}: another recorder writes this dataset; end it or use another path") from error
    return lock


def _is_left_over(path: DatasetPath) -> bool:
    """Whether no process can be about to commit a staged file: in a folder the lock says so, in a store its age."""
    return isinstance(path, Path) or path.age_seconds > STAGED_SECONDS


def create(path: DatasetPath, content: bytes) -> None:
    """Make a file appear whole, so that it survives a loss of power. Raises FileExistsError if it exists."""
    if not isinstance(path, Path):
        path.create(content)
        return
    partial = path.with_name(f".{path.name}.partial")
    write_synced(partial, content)
    link(partial, path)
    sync_folder(path.parent)
    unlink(partial)


# -- the steps that touch the disk, each of which a crash may precede


def write_synced(path: Path, content: bytes) -> None:
    """Write a file that survives a loss of power."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_file(path: Path) -> None:
    """Make the content of a file survive a loss of power."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def link(source: Path, target: Path) -> None:
    """Make `target` appear whole; raises FileExistsError if it exists."""
    os.link(source, target)


def rename(source: DatasetPath, target: DatasetPath) -> None:
    """Move a file."""
    source.replace(target)  # type: ignore[arg-type]  # both are in one dataset, so of one kind


def unlink(path: DatasetPath) -> None:
    """Delete a file, if it is there."""
    path.unlink(missing_ok=True)


def sync_folder(folder: DatasetPath) -> None:
    """Make the names in a folder survive a loss of power, which those in a store do anyway."""
    if not isinstance(folder, Path):
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
