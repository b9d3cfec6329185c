"""`plimsoll fetch`: a copy of a feed's dataset, from its recorder, which grows with every call."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from plimsoll.cli.exit_codes import BAD_INPUT, FAILED, OK, CommandError
from plimsoll.cli.output import print_error, print_line
from plimsoll.cli.recorder_connection import connect_recorder, first_wanted, reconnect_recorder
from plimsoll.cli.stop_signals import stop_signals
from plimsoll.feeds.object_path import is_object_url


def fetch(options: argparse.Namespace) -> int:
    """Copy what the feed has committed and the copy lacks; with `--follow` until SIGINT or SIGTERM."""
    from plimsoll.feeds.commit_log import FeedDatasetError
    from plimsoll.feeds.reading.dataset_copy import DatasetCopy
    from plimsoll.feeds.reading.fetch_run import FetchRun
    from plimsoll.feeds.reading.table_reader import FeedReadError

    if options.cluster is not None:
        remedy = "leave --cluster out; another fleet is named by --fleet, --namespace or --context"
        raise CommandError(BAD_INPUT, f"a feed is recorded for all clusters of its fleet, by one recorder: {remedy}")
    if options.to is not None and is_object_url(options.to):
        raise CommandError(BAD_INPUT, f"{options.to} is in an object store: a copy is in a folder")
    connect_recorder(options, options.feed).close()  # a feed that is not there is refused before there is a folder
    folder = Path(options.to or options.feed)
    from_row, since_us = first_wanted(options.since)
    try:
        copy = DatasetCopy(folder, options.feed, since_us)
        before = copy.counts
        run = FetchRun(
            copy, copy.readers(from_row), lambda: reconnect_recorder(options, options.feed), print_error,
            time.monotonic, lambda: time.time_ns() // 1000, options.follow,
        )  # fmt: skip
        try:
            with stop_signals() as interrupted:
                run.run(interrupted)
        finally:
            run.close()
            copy.close()
    except (FeedDatasetError, FeedReadError) as error:
        raise CommandError(FAILED, str(error)) from error
    counts = copy.counts
    rows, dead = counts.rows - before.rows, counts.dead_letters - before.dead_letters
    print_line(f"{rows} rows and {dead} dead letters fetched; {folder} has {counts.rows} and {counts.dead_letters}")
    return OK
