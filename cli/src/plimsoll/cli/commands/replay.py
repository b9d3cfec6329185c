"""`plimsoll replay`: the publications of a dataset again, from its files or from the recorder that serves them."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from plimsoll.cli.exit_codes import BAD_INPUT, FAILED, OK, CommandError
from plimsoll.cli.fleet_connection import open_connection
from plimsoll.cli.output import print_error, print_line
from plimsoll.cli.recorder_connection import connect_recorder, first_wanted, reconnect_recorder
from plimsoll.cli.stop_signals import stop_signals
from plimsoll.client import Publisher
from plimsoll.feeds.object_path import ObjectStoreError, dataset_root

if TYPE_CHECKING:
    from plimsoll.feeds.replay import RecordedPublication

SERVED: Final = "feed/"
"""How a feed is named that its recorder serves; `./feed/NAME` is a folder."""


def replay(options: argparse.Namespace) -> int:
    """Publish a dataset again; ends when every publication has its answer."""
    from plimsoll.feeds.commit_log import FeedDatasetError
    from plimsoll.feeds.reading.table_reader import FeedReadError
    from plimsoll.feeds.replay import DatasetReplay

    fault = ""
    with (
        stop_signals() as interrupted,
        _publications(options, interrupted) as publications,
        open_connection(options) as connection,
    ):
        publisher = Publisher(connection, name=options.name)
        try:
            run = DatasetReplay(publisher, options.speed, time.monotonic, time.sleep)
            try:
                run.run(publications, interrupted)
            except (FeedDatasetError, FeedReadError, FileNotFoundError, ObjectStoreError) as error:
                fault = str(error)
            answers = publisher.flush()
        finally:
            publisher.close()
    late = f", the last one {run.late_seconds:.1f} s late" if run.late_seconds >= 1.0 else ""
    ended = run.published and answers.accepted == run.published and (fault or run.is_stopped)
    rest = f"; go on with --since {run.last_row + 1}" if ended else ""
    if run.published or not fault:
        print_line(f"{run.published} published, {answers.accepted} accepted{late}{rest}")
    if fault:
        raise CommandError(FAILED, fault)
    return FAILED if answers.not_accepted else OK


@contextmanager
def _publications(
    options: argparse.Namespace, interrupted: Callable[[], bool]
) -> Iterator[Iterator[RecordedPublication]]:
    """What is to be published; a file that is being read is deleted in the end."""
    from_row, since_us = first_wanted(options.since)
    if not options.dataset.startswith(SERVED):
        from plimsoll.feeds.replay import recorded_publications

        try:
            root = dataset_root(options.dataset)
        except ObjectStoreError as error:
            raise CommandError(FAILED, str(error)) from error
        yield recorded_publications(root, from_row, since_us)
        return
    from plimsoll.feeds.reading.fetch_run import FetchRun
    from plimsoll.feeds.reading.served_publications import ServedPublications

    feed = options.dataset.removeprefix(SERVED)
    if not feed or "/" in feed:
        remedy = f"write feed/NAME for a feed that is served, or ./{options.dataset} for a folder"
        raise CommandError(BAD_INPUT, f'"{options.dataset}" names no feed: {remedy}')
    connect_recorder(options, feed).close()  # a feed that is not there is refused before a head is asked for
    with tempfile.TemporaryDirectory(prefix="plimsoll-replay-") as folder:
        source = ServedPublications(feed, Path(folder), from_row, since_us)
        run = FetchRun(
            source, [source.reader], lambda: reconnect_recorder(options, feed), print_error, time.monotonic,
            lambda: time.time_ns() // 1000,
        )  # fmt: skip
        try:
            yield source.read(run, interrupted)
        finally:
            run.close()
