"""`plimsoll fetch`: a copy of a feed's dataset, from its recorder, which grows with every call."""

from __future__ import annotations

import argparse
import time
from datetime import datetime, timedelta
from pathlib import Path

from plimsoll.cli.exit_codes import BAD_INPUT, FAILED, NOT_FOUND, OK, CommandError
from plimsoll.cli.fleet_connection import feed_settings
from plimsoll.cli.output import print_error, print_line
from plimsoll.cli.stop_signals import stop_signals
from plimsoll.client import errors
from plimsoll.client.feed_connection import FeedConnection
from plimsoll.core.spec.problems import suggestion
from plimsoll.feeds.object_path import is_object_url
from plimsoll.local.head_access import HeadAccessError


def fetch(options: argparse.Namespace) -> int:
    """Copy what the feed has committed and the copy lacks; with `--follow` until SIGINT or SIGTERM."""
    from plimsoll.feeds.commit_log import FeedDatasetError
    from plimsoll.feeds.reading.dataset_copy import DatasetCopy
    from plimsoll.feeds.reading.fetch_run import FetchRun
    from plimsoll.feeds.reading.table_reader import FeedReadError

    if options.to is not None and is_object_url(options.to):
        raise CommandError(BAD_INPUT, f"{options.to} is in an object store: a copy is in a folder")
    _connect(options).close()  # a feed that is not there is refused before there is a folder
    folder = Path(options.to or options.feed)
    from_row, since_us = _since(options.since)

    def look_up() -> FeedConnection:
        try:
            return _connect(options)
        except CommandError as error:
            raise FeedReadError(str(error)) from error

    try:
        copy = DatasetCopy(folder, options.feed, since_us)
        try:
            with stop_signals() as interrupted:
                run = FetchRun(
                    copy, copy.readers(from_row), look_up, print_error, time.monotonic,
                    lambda: time.time_ns() // 1000, options.follow,
                )  # fmt: skip
                before = copy.counts
                counts = run.run(interrupted)
        finally:
            copy.close()
    except (FeedDatasetError, FeedReadError) as error:
        raise CommandError(FAILED, str(error)) from error
    rows, dead = counts.rows - before.rows, counts.dead_letters - before.dead_letters
    print_line(f"{rows} rows and {dead} dead letters fetched; {folder} has {counts.rows} and {counts.dead_letters}")
    return OK


def _since(since: int | datetime | timedelta | None) -> tuple[int, int]:
    """The row to begin at, and the time of recording in microseconds since 1970."""
    if isinstance(since, int):
        return since, 0
    if isinstance(since, timedelta):
        return 1, max(0, time.time_ns() // 1000 - round(since.total_seconds() * 1e6))
    return 1, 0 if since is None else max(0, round(since.timestamp() * 1e6))


def _connect(options: argparse.Namespace) -> FeedConnection:
    """Look the recorder up, and connect."""
    try:
        settings = feed_settings(options)
        address = settings.feeds.get(options.feed)
        if address is None:
            hint = suggestion(options.feed, list(settings.feeds), "feed")
            raise CommandError(NOT_FOUND, f'no recorder serves a feed "{options.feed}" to this client. {hint}')
        return FeedConnection(address, settings.security)
    except HeadAccessError as error:
        raise CommandError(NOT_FOUND, str(error)) from error
    except errors.ClientError as error:
        raise CommandError(FAILED, str(error)) from error
