"""What a recorder process is given, and the figures that it writes for the process that runs it: two JSON files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from plimsoll.core.spec import Resource
from plimsoll.core.spec.kinds import FeedSpec
from plimsoll.feeds.names import recorder_name
from plimsoll.feeds.object_path import is_object_url
from plimsoll.feeds.schema import FeedSchema, declared

if TYPE_CHECKING:
    from plimsoll.feeds.dataset import FeedDataset  # loads pyarrow, which a supervisor may lack


FIGURES_PATH: Final = "/figures"
"""Where the page of a recorder, or of a driver of channels, has its figures."""


class ServingConfig(Struct, frozen=True):
    """Where a recorder serves its dataset to applications: tcp://ADDRESS:PORT, of which `*` leaves the port open.

    `advertised`: where applications find it, if that is another address; empty: the same.
    `key`: the file with its secret key; `readers`: that with the keys of clients and what they may read. Both are empty
    in a fleet without keys.
    """

    endpoint: str
    advertised: str = ""
    key: str = ""
    readers: str = ""


class RecorderConfig(Struct, frozen=True):
    """The configuration of a recorder. `connection`: its connection file, or a folder with the files of one.

    `figures`: the file that it writes its figures to; `http`: tcp://HOST:PORT of a page with them; empty: none.
    `serving`: None: it serves nothing.
    """

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
    http: str = ""
    serving: ServingConfig | None = None


REQUEST_OUTCOMES: Final = ("answered", "role", "feed", "gone", "fault", "malformed", "dropped")
"""What became of a request of a reader: four kinds of refusal, and those that have no answer.

`dropped`: its identity has too many requests or connections, or its connection did not take the answer.
"""


class ServedFigures(Struct, frozen=True):
    """What a recorder has served since it was started: bytes of files, and requests by outcome.

    `connections`: those that are open; `ended_connections`: those that it has ended, by reason.
    """

    size_bytes: int = 0
    requests: dict[str, int] = {}
    connections: int = 0
    ended_connections: dict[str, int] = {}


class RecorderFigures(Struct, frozen=True):
    """What a recorder has recorded. Times are microseconds since 1970; counts as in `FeedCounts`.

    `waiting`: received, and in no commit yet. `lag_us`: how long ago the newest publication was sent, by its
    publisher's clock, when it was received. `endpoint`: where it serves the dataset; empty: nowhere.
    """

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
    waiting: int = 0
    lag_us: int = 0
    endpoint: str = ""
    served: ServedFigures = ServedFigures()


class RecorderConfigError(ValueError):
    """A configuration that cannot be used; says which file, and why."""


def dataset_path(root: Path, feed: Resource[FeedSpec]) -> str:
    """Where a feed is recorded, which may be in an object store. `root`: the folder of the fleet, or its volume."""
    path = feed.spec.path or f"feeds/{feed.name}"
    return path if is_object_url(path) else str(root / path)


def recorder_config(
    feed: Resource[FeedSpec],
    root: Path,
    connection: str,
    *,
    figures: str = "",
    http: str = "",
    serving: ServingConfig | None = None,
) -> RecorderConfig:
    """The configuration of the recorder of a feed."""
    spec = feed.spec
    age, size, path = spec.retain.age, spec.retain.size, dataset_path(root, feed)
    return RecorderConfig(
        feed=feed.name, subscriber=recorder_name(path), subscription=spec.subscription, path=path,
        connection=connection, figures=figures, schema=declared(spec.schema),
        commit_seconds=spec.commit_interval.seconds, retain_seconds=None if age is None else age.seconds,
        retain_bytes=None if size is None else int(size.value), http=http,
        serving=serving,
    )  # fmt: skip


def read_config(path: Path) -> RecorderConfig:
    """Raises RecorderConfigError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RecorderConfig)
    except OSError as error:
        raise RecorderConfigError(f"cannot read {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise RecorderConfigError(f"{path} is not a recorder's configuration: {error}") from error


def figures_of(dataset: FeedDataset, pid: int, now_us: int, lag_us: int = 0) -> RecorderFigures:
    """The figures of a dataset as its last commit left it."""
    last, counts, files = dataset.state.last, dataset.counts, dataset.state.files.values()
    return RecorderFigures(
        path=str(dataset.root), pid=pid, at_us=now_us, commits=last.number if last else 0,
        committed_us=last.at_us if last else 0, received=counts.received, rows=counts.rows,
        dead_letters=counts.dead_letters, expired_rows=counts.expired_rows, gaps=counts.gaps, files=len(files),
        size_bytes=sum(each.size_bytes for each in files),
        columns=tuple(each.name for each in dataset.schema.columns) if dataset.schema else (),
        waiting=dataset.pending, lag_us=lag_us,
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
