"""The checkpoint of the live job beside Spark's own state: the start of its run, and the files that a batch has read.

A run lasts as long as its checkpoint: a restarted driver continues the same run with the next batch. The start of the
run is stored inside the checkpoint, so that neither can be lost without the other.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlparse

RUN_FILE: Final = "plimsoll-run.json"
LOCK_FILE: Final = "plimsoll.lock"
POLL_SECONDS: Final = 0.1


class CheckpointBusyError(RuntimeError):
    """Another driver works on this checkpoint; two would corrupt it."""


def run_start_us(checkpoint: Path, now_us: int) -> int:
    """When the run of this checkpoint began; a new checkpoint gets `now_us`."""
    path = checkpoint / RUN_FILE
    if path.exists():
        return int(json.loads(path.read_bytes())["run_us"])
    checkpoint.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{RUN_FILE}.{os.getpid()}")
    beside.write_text(json.dumps({"run_us": now_us}))
    beside.replace(path)
    return now_us


@contextmanager
def checkpoint_lock(checkpoint: Path, wait_seconds: float = 0.0) -> Iterator[None]:
    """Lock the checkpoint for this process. The lock ends with the process, even if that is killed.

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
                    raise CheckpointBusyError(f"another live job works on {checkpoint}: end it first") from error
            time.sleep(POLL_SECONDS)
        yield


def files_until(checkpoint: Path, batch: int) -> list[Path]:
    """The files that all batches up to this one have read, from the log of the file source.

    Raises:
        FileNotFoundError: the checkpoint has no log of this batch.

    """
    folder = checkpoint / "sources" / "0"
    offsets = _log_offset(checkpoint, batch)
    found: dict[str, int] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        for line in path.read_text().splitlines()[1:]:  # the first line is the version of the log
            entry = json.loads(line)
            found[entry["path"]] = entry["batchId"]
    return sorted(Path(unquote(urlparse(name).path)) for name, number in found.items() if number <= offsets)


def _log_offset(checkpoint: Path, batch: int) -> int:
    """The entry of the source's log up to which a batch has read; a batch without files repeats the last one."""
    lines = (checkpoint / "offsets" / str(batch)).read_text().splitlines()
    return -1 if lines[-1] == "-" else int(json.loads(lines[-1])["logOffset"])
