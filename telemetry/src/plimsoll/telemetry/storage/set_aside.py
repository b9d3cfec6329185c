"""Files of load reports that cannot be read: found, and moved out of the folder that jobs read, with their reason.

A file that is half written, damaged, or of other columns would stop a job at every start. It is moved to
`raw/v1/set-aside`; `NAME.json` beside it says where it was, why it was moved, and when. Nothing is deleted.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from plimsoll.telemetry.schema import SET_ASIDE, SetAsideFile, TelemetryTable
from plimsoll.telemetry.storage.parquet import arrow_schema

_OF_THIS_FILE: Final = {None, errno.EACCES, errno.EISDIR}
"""The system's error numbers that concern one file; others, such as EIO, concern its volume."""


def file_fault(path: Path, table: TelemetryTable) -> str:
    """Why a file cannot be read as this table; empty if it can, or if it is gone. Reads the whole file.

    Raises:
        OSError: the volume cannot be read.

    """
    try:
        with pq.ParquetFile(path) as file:
            if wrong := _wrong_columns(file.schema_arrow, table):
                return f"other columns than those of the table {table.name}: {'; '.join(wrong)}"
            for _ in file.iter_batches(columns=[name for name in table.names if name in file.schema_arrow.names]):
                pass
    except FileNotFoundError:
        return ""
    except pa.ArrowException as error:
        return f"not Parquet, or damaged: {_first_line(error)}"
    except OSError as error:
        if error.errno not in _OF_THIS_FILE:
            raise
        return f"not Parquet, or damaged: {_first_line(error)}" if error.errno is None else str(error.strerror)
    return ""


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0][:300] if str(error) else type(error).__name__


def _wrong_columns(found: pa.Schema, table: TelemetryTable) -> list[str]:
    """Columns of types that a reader of the table cannot convert. A missing column is read as null."""
    wrong = []
    for wanted in arrow_schema(table):
        if wanted.name in found.names and not _is_readable(found.field(wanted.name).type, wanted.type):
            wrong.append(f"{wanted.name} is {found.field(wanted.name).type}, expected {wanted.type}")
    return wrong


def _is_readable(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_signed_integer(found) and found.bit_width <= wanted.bit_width)
    if pa.types.is_floating(wanted):
        return bool(pa.types.is_floating(found) and found.bit_width <= wanted.bit_width)
    if pa.types.is_string(wanted):
        plain = found.value_type if pa.types.is_dictionary(found) else found
        return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain))
    if pa.types.is_list(wanted):
        return bool(pa.types.is_list(found) or pa.types.is_large_list(found))
    return bool(found == wanted)


def set_aside_unreadable(
    root: Path, files: Iterable[Path], table: TelemetryTable, by: str, now_us: int
) -> list[SetAsideFile]:
    """Set aside those of these files that cannot be read; returns them.

    Raises:
        OSError: the volume cannot be read or written.

    """
    found = []
    for path in files:
        if reason := file_fault(path, table):
            found.append(_set_aside(root, path, reason, by, now_us))
    return found


def _set_aside(root: Path, path: Path, reason: str, by: str, now_us: int) -> SetAsideFile:
    folder = root / SET_ASIDE
    folder.mkdir(parents=True, exist_ok=True)
    about = SetAsideFile(
        file=path.name, folder=str(path.parent.relative_to(root)), reason=reason, size_bytes=path.stat().st_size,
        at_us=now_us, by=by,
    )  # fmt: skip
    # The reason first: no file is set aside without one, and a reason without its file counts for nothing.
    beside = folder / f".{path.name}.json"
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(about), indent=1))
    beside.replace(folder / f"{path.name}.json")
    path.replace(folder / path.name)
    return about


def files_set_aside(root: Path) -> list[SetAsideFile]:
    """The files that are set aside, oldest first. A file without a readable reason has an empty one."""
    folder = root / SET_ASIDE
    try:
        paths = sorted(folder.glob("[!.]*.parquet"))
    except FileNotFoundError:
        return []
    return sorted((_described(path) for path in paths), key=lambda each: (each.at_us, each.file))


def _described(path: Path) -> SetAsideFile:
    try:
        return msgspec.json.decode(path.with_name(f"{path.name}.json").read_bytes(), type=SetAsideFile)
    except (OSError, msgspec.MsgspecError):  # somebody has put it here, or is removing it
        return SetAsideFile(file=path.name, folder="", reason="", size_bytes=0, at_us=0, by="")


def remove_set_aside(root: Path, before_us: int) -> int:
    """Delete files set aside before a time, and their reasons; returns how many."""
    count = 0
    for each in files_set_aside(root):
        if 0 < each.at_us < before_us:
            for name in (each.file, f"{each.file}.json"):
                (root / SET_ASIDE / name).unlink(missing_ok=True)
            count += 1
    return count
