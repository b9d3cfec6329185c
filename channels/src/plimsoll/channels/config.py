"""What a driver of channels is given, and the figures that it writes for its supervisor: two JSON files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from plimsoll.core.config import PeerBroker
from plimsoll.core.spec import Resource
from plimsoll.core.spec.kinds import ChannelSpec, FeedSpec
from plimsoll.core.spec.types.feed import ColumnType
from plimsoll.feeds.config import dataset_path
from plimsoll.feeds.object_path import is_object_url


class ChannelParameter(Struct, frozen=True):
    """A column of the view `parameters`, and an attribute of every result."""

    name: str
    type: ColumnType


class FeedView(Struct, frozen=True):
    """A feed as a view. `path`: of its dataset. `is_new`: the view has the rows since the batch before."""

    name: str
    feed: str
    path: str
    is_new: bool = True
    within_seconds: float | None = None


class TableView(Struct, frozen=True):
    """A stored table as a view."""

    name: str
    path: str
    format: Literal["Parquet", "Csv", "Json"] = "Parquet"


class ChannelDefinition(Struct, frozen=True):
    """One channel. `every_seconds`: its period; None: a batch as soon as there are new rows."""

    name: str
    parameters: tuple[ChannelParameter, ...]
    feeds: tuple[FeedView, ...]
    query: str
    tables: tuple[TableView, ...] = ()
    every_seconds: float | None = None
    allows_unkeyed: bool = False

    @property
    def new_feeds(self) -> dict[str, FeedView]:
        """The feeds whose new rows it reads, by the name of the feed."""
        return {each.feed: each for each in self.feeds if each.is_new}


class DriverConfig(Struct, frozen=True):
    """The configuration of a driver. It is read again when it changes.

    `folder`: of the ledgers, which may be in an object store. `scratch`: a folder for copies of what queries read from
    stores; it is emptied. `connection`: a connection file. `edges`: their control sockets. `name` and `key`: the
    name and the secret key file with which these are asked; an empty key: links are plain. `figures`: the file that it
    writes its figures to; `http`: tcp://HOST:PORT of a page with them; empty: none. `role`: a file whose lock the
    driver that runs the channels has; empty: there is no other driver.
    """

    name: str
    folder: str
    scratch: str
    connection: str
    edges: tuple[PeerBroker, ...]
    channels: tuple[ChannelDefinition, ...]
    key: str = ""
    figures: str = ""
    http: str = ""
    role: str = ""


class ChannelFigures(Struct, frozen=True):
    """What one channel has done. `state`: a reason of the condition `Running`; times in microseconds since 1970.

    `delay_milliseconds`: of the last batch with rows, from the sending of its oldest publication to its commit.
    `late_milliseconds`: of the last batch, from the beginning of its period to its own. `failures`: batches that failed
    in this life. `period_seconds`: 0 for a channel without a period; its periods in this life are those whose batch
    began in time, began late, and that had none.
    """

    state: str
    message: str
    subscriptions: int = 0
    open_subscriptions: int = 0
    invalid_subscriptions: int = 0
    batch: int = 0
    batch_us: int = 0
    batch_milliseconds: int = 0
    rows_in: int = 0
    rows_used: int = 0
    late_rows: int = 0
    invalid_rows: int = 0
    results: int = 0
    accepted_results: int = 0
    unknown_results: int = 0
    refused_results: int = 0
    unasked_results: int = 0
    invalid_results: int = 0
    failures: int = 0
    delay_milliseconds: int = 0
    late_milliseconds: int = 0
    period_seconds: float = 0.0
    periods_kept: int = 0
    periods_late: int = 0
    periods_missed: int = 0


class DriverFigures(Struct, frozen=True):
    """The figures of all channels of a driver."""

    pid: int
    at_us: int
    channels: dict[str, ChannelFigures]


class DriverConfigError(ValueError):
    """A configuration that cannot be used; says which file, and why."""


def channel_definition(
    channel: Resource[ChannelSpec], feeds: Mapping[str, Resource[FeedSpec]], root: Path
) -> ChannelDefinition:
    """A channel as its driver gets it. `root`: the folder of the fleet, or its volume, with feeds and tables."""
    spec = channel.spec
    return ChannelDefinition(
        name=channel.name,
        parameters=tuple(ChannelParameter(each.name, each.type) for each in spec.parameters),
        feeds=tuple(
            FeedView(
                each.name, each.feed, dataset_path(root, feeds[each.feed]), each.rows == "New",
                None if each.within is None else each.within.seconds,
            )
            for each in spec.feeds
        ),
        query=spec.query,
        tables=tuple(
            TableView(each.name, each.path if is_object_url(each.path) else str(root / each.path), each.format)
            for each in spec.tables
        ),
        every_seconds=None if spec.every is None else spec.every.seconds,
        allows_unkeyed=spec.unkeyed_joins == "Allow",
    )  # fmt: skip


def read_config(path: Path) -> DriverConfig:
    """Raises DriverConfigError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=DriverConfig)
    except OSError as error:
        raise DriverConfigError(f"cannot read {path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise DriverConfigError(f"{path} is not the configuration of a driver of channels: {error}") from error


def write_figures(path: Path, figures: DriverFigures) -> None:
    """Replace the file as a whole. Raises OSError."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(msgspec.json.encode(figures))
    partial.replace(path)


def read_figures(path: Path) -> DriverFigures | None:
    """The figures in a file; None if there are none yet."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=DriverFigures)
    except (FileNotFoundError, msgspec.MsgspecError):  # a driver of another version writes its own soon
        return None
