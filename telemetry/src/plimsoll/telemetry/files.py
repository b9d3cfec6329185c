"""The folder of telemetry: one file per collector and interval, whole or absent; what is old goes.

`raw/v1/incoming/<collector>-<t0>-<t1>-<n>.parquet`: load reports that came in [t0, t1], in milliseconds since 1970. The
folder may be shared by collectors and jobs. A write that fails leaves nothing behind and is told to the caller, who
keeps the rows; nothing here stops a collector.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from plimsoll.telemetry import arrow
from plimsoll.telemetry.schema import EXPECTED, INCOMING, LATEST, SESSIONS, Expected, Table

_NAME: Final = re.compile(r"(?P<collector>.+)-(?P<first>\d+)-(?P<last>\d+)-(?P<number>\d+)\.parquet")


@dataclass(frozen=True)
class Stored:
    """A file by what its name says; times in milliseconds since 1970."""

    path: Path
    collector: str
    first_ms: int
    last_ms: int


@dataclass
class Files:
    """The folder `root`, as one collector writes to it. Raises OSError where nothing else is said."""

    root: Path
    collector: str
    written: int = 0
    rows: int = 0
    size_bytes: int = 0
    failures: int = 0
    fault: str = ""
    removed: int = 0
    _number: int = field(default=0, repr=False)

    def make(self) -> None:
        """Make the folders, and clear away what an earlier start of this collector had begun to write."""
        for name in (INCOMING, SESSIONS):
            folder = self.root / name
            folder.mkdir(parents=True, exist_ok=True)
            for partial in folder.glob(f".{self.collector}-*{arrow.PARTIAL}"):
                partial.unlink(missing_ok=True)
        (self.root / LATEST).parent.mkdir(parents=True, exist_ok=True)

    def write(self, folder: str, table: Table, rows: Sequence[tuple[Any, ...]], first_us: int, last_us: int) -> bool:
        """Write one file; false if that failed: `fault` says why, and there is no file."""
        self._number += 1
        name = f"{self.collector}-{first_us // 1000}-{last_us // 1000}-{self._number}.parquet"
        try:
            self.size_bytes += arrow.write_values(self.root / folder / name, table, rows)
        except OSError as error:
            self.failures += 1
            self.fault = f"{self.root / folder}: {error.strerror or error}"
            return False
        self.written += 1
        self.rows += len(rows)
        self.fault = ""
        return True

    def say_expected(self, expected: Expected) -> bool:
        """Tell jobs whom reports are expected from; false if it could not be written."""
        path = self.root / EXPECTED
        partial = path.with_name(f".{path.name}.{self.collector}{arrow.PARTIAL}")
        try:
            partial.write_bytes(msgspec.json.encode(expected))
            partial.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            self.failures += 1
            self.fault = f"{path}: {error.strerror or error}"
            return False
        return True

    def latest(self) -> bytes | None:
        """What Spark has written last; None if there is nothing."""
        try:
            return (self.root / LATEST).read_bytes()
        except FileNotFoundError:
            return None

    def recent(self, folder: str, since_us: int) -> Iterator[Stored]:
        """The files of this collector that end after a time, oldest first."""
        found = [each for each in self._stored(folder) if each.collector == self.collector]
        yield from sorted((s for s in found if s.last_ms * 1000 >= since_us), key=lambda s: (s.last_ms, s.path.name))

    def expire(self, before_us: int) -> int:
        """Remove files of any collector that end before a time; how many. Jobs may have removed them already."""
        count = 0
        for folder in (INCOMING, SESSIONS):
            for stored in self._stored(folder):
                if stored.last_ms * 1000 < before_us:
                    stored.path.unlink(missing_ok=True)
                    count += 1
        self.removed += count
        return count

    def _stored(self, folder: str) -> Iterator[Stored]:
        for path in (self.root / folder).iterdir():
            named = _NAME.fullmatch(path.name)
            if named is not None and not path.name.startswith("."):
                yield Stored(path, named["collector"], int(named["first"]), int(named["last"]))


def expected_of(path: Path) -> Expected:
    """The brokers that reports are expected from.

    Raises:
        OSError: there is no such file. msgspec.MsgspecError: it is something else.

    """
    return msgspec.json.decode(path.read_bytes(), type=Expected)
