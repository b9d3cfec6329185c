"""Lines of a log file that grows and is replaced when it is full: `broker.log`, and `broker.log.1` before it."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Final, TextIO

POLL_SECONDS: Final = 0.2
_STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}")


def log_lines(log: Path, tail: int | None, since_seconds: float | None, *, follow: bool) -> Generator[str, None, None]:
    """The lines of a log and of its predecessor, oldest first; the last `tail` of them, those of the last seconds."""
    begin = None if since_seconds is None else datetime.fromtimestamp(time.time() - since_seconds)  # noqa: DTZ006  # logs have local time without a zone
    file = log.open(encoding="utf-8", errors="replace", newline="\n")
    try:
        lines = since(_existing(log, file), begin)
        yield from lines if tail is None else deque(lines, maxlen=tail)
        while follow:
            is_replaced = _is_replaced(log, file)
            yield from _new_lines(file)
            if is_replaced:
                file.close()
                file = log.open(encoding="utf-8", errors="replace", newline="\n")
            else:
                time.sleep(POLL_SECONDS)
    finally:
        file.close()


def since(lines: Iterable[str], begin: datetime | None) -> Iterator[str]:
    """The lines from a time on; one without a time belongs to the line before."""
    is_wanted = begin is None
    for line in lines:
        if not is_wanted and begin is not None and (stamp := _STAMP.match(line)) is not None:
            is_wanted = datetime.strptime(stamp.group(), "%Y-%m-%d %H:%M:%S,%f") >= begin  # noqa: DTZ007  # as in the log
        if is_wanted:
            yield line


def _existing(log: Path, file: TextIO) -> Iterator[str]:
    earlier = log.with_suffix(".log.1")
    if earlier.exists():
        with earlier.open(encoding="utf-8", errors="replace", newline="\n") as old:
            yield from (line.rstrip("\n") for line in old)
    yield from _new_lines(file)


def _new_lines(file: TextIO) -> Iterator[str]:
    """Whole lines from where the file was read to; a line that is still being written stays for the next time."""
    while True:
        place = file.tell()
        line = file.readline()
        if not line.endswith("\n"):
            file.seek(place)
            return
        yield line.rstrip("\n")


def _is_replaced(log: Path, file: TextIO) -> bool:
    try:
        return log.stat().st_ino != os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False  # it is being replaced
