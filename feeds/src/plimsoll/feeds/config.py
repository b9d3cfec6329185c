"""What a recorder process is given, and the figures that it writes for the process that runs it: two JSON files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from plimsoll.feeds.schema import FeedSchema

if TYPE_CHECKING:
    from plimsoll.feeds.dataset import FeedDataset  # loads pyarrow, which a supervisor may lack


class RecorderConfig(Struct, frozen=True):
    """The configuration of a recorder. `connection`: its connection file. `figures`: where it writes its figures."""

    feed: str
    subscriber: str
    subscription: str
    path: str
    connection: str
    figures: str = ""
    schema: FeedSchema | None = None
    commit_seconds: float = 10.0
    retain_seconds: float | None = None
    retain_bytes: int | None = None


class RecorderFigures(Struct, frozen=True):
    """What a recorder has recorded. Times are microseconds since 1970; counts as in `FeedCounts`."""

    path: str
    pid: int
    at_us: int
    commits: int
    committed_us: int
    received: int
    rows: int
    dead_letters: int
    expired_rows: int
    gaps: int
    files: int
    size_bytes: int
    columns: tuple[str, ...] = ()


class RecorderConfigError(ValueError):
    """A configuration that cannot be used; says which file, and why."""


def read_config(path: Path) -> RecorderConfig:
    """Raises RecorderConfigError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RecorderConfig)
    except OSError as error:
        raise RecorderConfigError(f"cannot read {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise RecorderConfigError(f"{path} is not a recorder's configuration: {error}") from error


def figures_of(dataset: FeedDataset, pid: int, now_us: int) -> RecorderFigures:
    """The figures of a dataset as its last commit left it."""
    last, counts, files = dataset.state.last, dataset.counts, dataset.state.files.values()
    return RecorderFigures(
        path=str(dataset.root), pid=pid, at_us=now_us, commits=last.number if last else 0,
        committed_us=last.at_us if last else 0, received=counts.received, rows=counts.rows,
        dead_letters=counts.dead_letters, expired_rows=counts.expired_rows, gaps=counts.gaps, files=len(files),
        size_bytes=sum(each.size_bytes for each in files),
        columns=tuple(each.name for each in dataset.schema.columns) if dataset.schema else (),
    )  # fmt: skip


def write_figures(path: Path, figures: RecorderFigures) -> None:
    """Replace the file as a whole. Raises OSError."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(msgspec.json.encode(figures))
    partial.replace(path)


def read_figures(path: Path) -> RecorderFigures | None:
    """The figures in a file; None if there are none yet."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RecorderFigures)
    except (FileNotFoundError, msgspec.MsgspecError):  # a recorder of another version writes its own soon
        return None
