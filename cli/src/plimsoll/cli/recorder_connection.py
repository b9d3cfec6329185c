"""How a command reads a feed: connected to its recorder, with the keys of a client, from a row or a time on."""

from __future__ import annotations

import argparse
import time
from datetime import datetime, timedelta

from plimsoll.cli.exit_codes import FAILED, NOT_FOUND, CommandError
from plimsoll.cli.fleet_connection import feed_settings
from plimsoll.client import errors
from plimsoll.client.feed_connection import FeedConnection
from plimsoll.core.spec.problems import suggestion
from plimsoll.local.head_access import HeadAccessError


def connect_recorder(options: argparse.Namespace, feed: str) -> FeedConnection:
    """Look the recorder of a feed up, and connect. Raises CommandError."""
    try:
        settings = feed_settings(options)
        address = settings.feeds.get(feed)
        if address is None:
            hint = suggestion(feed, list(settings.feeds), "feed")
            raise CommandError(NOT_FOUND, f'no recorder serves a feed "{feed}" to this client. {hint}')
        return FeedConnection(address, settings.security)
    except HeadAccessError as error:
        raise CommandError(NOT_FOUND, str(error)) from error
    except errors.ClientError as error:
        raise CommandError(FAILED, str(error)) from error


def reconnect_recorder(options: argparse.Namespace, feed: str) -> FeedConnection:
    """As `connect_recorder`, for a run of a fetch, which tries again. Raises FeedReadError."""
    from plimsoll.feeds.reading.table_reader import FeedReadError

    try:
        return connect_recorder(options, feed)
    except CommandError as error:
        raise FeedReadError(str(error)) from error


def first_wanted(since: int | datetime | timedelta | None) -> tuple[int, int]:
    """The row to begin at, and the time of recording in microseconds since 1970."""
    if isinstance(since, int):
        return since, 0
    if isinstance(since, timedelta):
        return 1, max(0, time.time_ns() // 1000 - round(since.total_seconds() * 1e6))
    return 1, 0 if since is None else max(0, round(since.timestamp() * 1e6))
