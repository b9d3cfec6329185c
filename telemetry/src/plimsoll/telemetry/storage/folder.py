"""The folder of telemetry: one file per collector and interval, whole or absent; old files are removed.

`raw/v1/incoming/<collector>-<t0>-<t1>-<n>.parquet`: load reports that came in [t0, t1], in milliseconds since 1970. The
folder may be shared by collectors and jobs. A write that fails leaves nothing behind and is reported to the caller,
which keeps the rows; nothing here stops a collector.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from plimsoll.telemetry.schema import (
    EXPECTED,
    INCOMING,
    LATEST,
    OWNER,
    SESSIONS,
    ExpectedBrokers,
    SetAsideFile,
    TableRow,
    TelemetryTable,
)
from plimsoll.telemetry.storage import parquet
from plimsoll.telemetry.storage.set_aside import files_set_aside, remove_set_aside


class _LiveJobOwner(msgspec.Struct):
    """The part of the record of a checkpoint's owner that is counted."""

    drivers: int


_NAME: Final = re.compile(r"(?P<collector>.+)-\d+-(?P<last>\d+)-\d+\.parquet")


@dataclass(frozen=True)
class TelemetryFile:
    """A file as its name describes it. `last_ms`: in milliseconds since 1970."""

    path: Path
    collector: str
    last_ms: int


@dataclass
class TelemetryFolder:
    """The folder `root`, as one collector writes to it. Raises OSError unless stated otherwise."""

    root: Path
    collector: str
    written: int = 0
    rows: int = 0
    size_bytes: int = 0
    failures: int = 0
    fault: str = ""
    removed: int = 0
    _number: int = field(default=0, repr=False)

    def prepare(self) -> None:
        """Make the folders, and remove partial files of an earlier start of this collector."""
        for name in (INCOMING, SESSIONS):
            folder = self.root / name
            folder.mkdir(parents=True, exist_ok=True)
            for partial in folder.glob(f".{self.collector}-*{parquet.PARTIAL}"):
                partial.unlink(missing_ok=True)
        (self.root / LATEST).parent.mkdir(parents=True, exist_ok=True)

    def write(self, folder: str, table: TelemetryTable, rows: Sequence[TableRow], first_us: int, last_us: int) -> bool:
        """Write one file; false if that failed: then `fault` says why, and there is no file."""
        self._number += 1
        name = f"{self.collector}-{first_us // 1000}-{last_us // 1000}-{self._number}.parquet"
        try:
            self.size_bytes += parquet.write_values(self.root / folder / name, table, rows)
        except OSError as error:
            self.failures += 1
            self.fault = f"{self.root / folder}: {error.strerror or error}"
            return False
        self.written += 1
        self.rows += len(rows)
        self.fault = ""
        return True

    def write_expected(self, expected: ExpectedBrokers) -> bool:
        """Write which brokers should report, for jobs; false if that failed."""
        path = self.root / EXPECTED
        partial = path.with_name(f".{path.name}.{self.collector}{parquet.PARTIAL}")
        try:
            partial.write_bytes(msgspec.json.encode(expected))
            partial.replace(path)
        except OSError as error:
            with contextlib.suppress(OSError):  # the disk that fails; what is reported is its first fault
                partial.unlink(missing_ok=True)
            self.failures += 1
            self.fault = f"{path}: {error.strerror or error}"
            return False
        return True

    def latest(self) -> bytes | None:
        """Spark's last snapshot as bytes; None without any."""
        try:
            return (self.root / LATEST).read_bytes()
        except FileNotFoundError:
            return None

    def recent_files(self, folder: str, since_us: int) -> Iterator[TelemetryFile]:
        """The files of this collector that end after a time, oldest first."""
        found = [each for each in self._stored(folder) if each.collector == self.collector]
        yield from sorted((s for s in found if s.last_ms * 1000 >= since_us), key=lambda s: (s.last_ms, s.path.name))

    def remove_before(self, before_us: int) -> int:
        """Remove files of any collector that end before a time; how many. Jobs may have removed them already."""
        count = 0
        for folder in (INCOMING, SESSIONS):
            for stored in self._stored(folder):
                if stored.last_ms * 1000 < before_us:
                    stored.path.unlink(missing_ok=True)
                    count += 1
        count += remove_set_aside(self.root, before_us)
        self.removed += count
        return count

    def set_aside(self) -> list[SetAsideFile]:
        """The files that jobs could not read, oldest first."""
        return files_set_aside(self.root)

    def live_drivers(self) -> int:
        """How many drivers of the live job have worked on its checkpoint, one after the other."""
        try:
            return msgspec.json.decode((self.root / OWNER).read_bytes(), type=_LiveJobOwner).drivers
        except (FileNotFoundError, msgspec.MsgspecError):  # none has yet, or the next one replaces the record
            return 0

    def _stored(self, folder: str) -> Iterator[TelemetryFile]:
        for path in (self.root / folder).iterdir():
            named = _NAME.fullmatch(path.name)
            if named is not None and not path.name.startswith("."):
                yield TelemetryFile(path, named["collector"], int(named["last"]))
