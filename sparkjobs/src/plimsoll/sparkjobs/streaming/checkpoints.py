"""The checkpoint of the live job beside Spark's own state: its run, its owner, and the files that a batch has read.

A run lasts as long as its checkpoint: a restarted driver continues the same run with the next batch. The start of the
run is stored inside the checkpoint, so that neither can be lost without the other.

One driver works on a checkpoint. On one node a lock refuses a second one. The lock ends with its process, but not every
volume shares locks between nodes, and a frozen Java virtual machine can outlive the process that held it. So the one
who has the lock also writes a token into the checkpoint, and checks it before it commits a batch: a driver that finds
another token there commits nothing and ends.
"""

from __future__ import annotations

import fcntl
import os
import platform
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

import msgspec

from plimsoll.sparkjobs.job_errors import JobInputError
from plimsoll.telemetry.schema import OWNER

OWNER_FILE: Final = Path(OWNER).name
RUN_FILE: Final = "plimsoll-run.json"
LOCK_FILE: Final = "plimsoll.lock"
POLL_SECONDS: Final = 0.1


class CheckpointBusyError(JobInputError):
    """Another driver works on this checkpoint; two would corrupt it."""


class CheckpointLostError(JobInputError):
    """Another driver has taken this checkpoint over; this one must not commit any more."""


class OwnerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The driver that owns a checkpoint. `drivers`: how many have owned it so far, this one included."""

    token: str
    host: str
    pid: int
    since_us: int
    drivers: int

    def describe(self) -> str:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(self.since_us / 1e6))
        return f"process {self.pid} on {self.host}, since {since} UTC"


class _CheckpointRun(msgspec.Struct, frozen=True):
    """When the run of a checkpoint began."""

    run_us: int


class _LoggedFile(msgspec.Struct, frozen=True, rename={"batch": "batchId"}):
    """A line of the log of Spark's file source."""

    path: str
    batch: int


class _SourceOffset(msgspec.Struct, frozen=True, rename="camel"):
    """How far in that log a batch has read."""

    log_offset: int


@dataclass(frozen=True, slots=True)
class CheckpointClaim:
    """A driver's right to a checkpoint."""

    checkpoint: Path
    token: str

    def check(self) -> None:
        """Called before a batch is committed.

        Raises:
            CheckpointLostError: the checkpoint belongs to another driver, or to none.

        """
        owner = read_owner(self.checkpoint)
        if owner is None or owner.token != self.token:
            who = "no driver: its owner was removed" if owner is None else f"another driver: {owner.describe()}"
            raise CheckpointLostError(
                f"the checkpoint {self.checkpoint} now belongs to {who}; this driver commits nothing more and ends"
            )


def read_owner(checkpoint: Path) -> OwnerRecord | None:
    """The last owner of a checkpoint; None if there is none, or its record cannot be read."""
    try:
        return msgspec.json.decode((checkpoint / OWNER_FILE).read_bytes(), type=OwnerRecord)
    except (FileNotFoundError, msgspec.MsgspecError):  # the next owner replaces it
        return None


def take_checkpoint(checkpoint: Path, now_us: int) -> CheckpointClaim:
    """Make this process the owner. A driver that owned it before finds that at its next batch and ends."""
    before = read_owner(checkpoint)
    owner = OwnerRecord(
        token=secrets.token_hex(16), host=platform.node(), pid=os.getpid(), since_us=now_us,
        drivers=1 + (before.drivers if before is not None else 0),
    )  # fmt: skip
    _replace(checkpoint / OWNER_FILE, msgspec.json.encode(owner))
    return CheckpointClaim(checkpoint, owner.token)


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_bytes(data)
    beside.replace(path)


def run_start_us(checkpoint: Path, now_us: int) -> int:
    """When the run of this checkpoint began; a new checkpoint gets `now_us`."""
    path = checkpoint / RUN_FILE
    if path.exists():
        return msgspec.json.decode(path.read_bytes(), type=_CheckpointRun).run_us
    _replace(path, msgspec.json.encode(_CheckpointRun(now_us)))
    return now_us


@contextmanager
def checkpoint_lock(checkpoint: Path, wait_seconds: float = 0.0) -> Iterator[CheckpointClaim]:
    """Lock the checkpoint for this process and own it. The lock ends with the process, even if that is killed.

    Raises:
        CheckpointBusyError: another process still holds the lock after `wait_seconds`.

    """
    checkpoint.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + wait_seconds
    with (checkpoint / LOCK_FILE).open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if time.monotonic() >= until:
                    owner = read_owner(checkpoint)
                    who = f" ({owner.describe()})" if owner is not None else ""
                    raise CheckpointBusyError(
                        f"another live job works on {checkpoint}{who}: end that process first"
                    ) from error
            time.sleep(POLL_SECONDS)
        yield take_checkpoint(checkpoint, time.time_ns() // 1000)


def files_until(checkpoint: Path, batch: int) -> list[Path]:
    """The files that all batches up to this one have read, from the log of the file source.

    Raises:
        JobInputError: the checkpoint has no log of this batch.

    """
    folder = checkpoint / "sources" / "0"
    found: dict[str, int] = {}
    try:
        offsets = _log_offset(checkpoint, batch)
        for path in sorted(path for path in folder.iterdir() if not path.name.startswith(".")):
            for line in path.read_text().splitlines()[1:]:  # the first line is the version of the log
                entry = msgspec.json.decode(line, type=_LoggedFile)
                found[entry.path] = entry.batch
    except (OSError, ValueError, msgspec.MsgspecError, IndexError) as error:
        raise JobInputError(
            f"the checkpoint {checkpoint} has no usable log of batch {batch} ({error}): name the checkpoint of the live"
            " job that wrote the snapshot"
        ) from error
    return sorted(Path(unquote(urlparse(name).path)) for name, number in found.items() if number <= offsets)


def committed_files(checkpoint: Path) -> list[Path]:
    """The files of all batches that are committed; none in a checkpoint without a commit."""
    try:
        batches = [int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdecimal()]
    except FileNotFoundError:
        return []
    return files_until(checkpoint, max(batches)) if batches else []


def _log_offset(checkpoint: Path, batch: int) -> int:
    """The entry of the source's log up to which a batch has read; a batch without files repeats the last one."""
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    return -1 if lines[-1] == "-" else msgspec.json.decode(lines[-1], type=_SourceOffset).log_offset
