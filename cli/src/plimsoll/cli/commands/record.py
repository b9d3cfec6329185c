"""`plimsoll record`: what a subscription delivers, as a dataset."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

from plimsoll.cli.exit_codes import BAD_INPUT, FAILED, OK, CommandError
from plimsoll.cli.fleet_connection import open_connection
from plimsoll.cli.output import print_error, print_line
from plimsoll.cli.stop_signals import stop_signals
from plimsoll.core.predicates import ParseError, parse
from plimsoll.core.spec.kinds import FeedSpec
from plimsoll.core.spec.parser import parse_each
from plimsoll.core.spec.problems import InvalidResourcesError
from plimsoll.core.spec.resources import Resource
from plimsoll.feeds.names import subscriber_name
from plimsoll.feeds.object_path import ObjectStoreError, dataset_root, is_object_url
from plimsoll.local import manifests

ACK_SECONDS = 30.0
DEFAULT_COMMIT_SECONDS = 10.0


@dataclass(frozen=True)
class _Wanted:
    """What to record, and where."""

    spec: FeedSpec
    path: str


def record(options: argparse.Namespace) -> int:
    """Record until `--count`, `--seconds`, SIGINT or SIGTERM; what waits is committed first."""
    from plimsoll.feeds.commit_log import FeedDatasetError
    from plimsoll.feeds.dataset import FeedDataset, Retention
    from plimsoll.feeds.recorder import CommitLimits, FeedRecorder, resumed_subscriber
    from plimsoll.feeds.schema import declared

    wanted = _wanted(options)
    spec, retain = wanted.spec, wanted.spec.retain
    commit_seconds = options.commit or spec.commit_interval.seconds
    kept = Retention(
        None if retain.age is None else retain.age.seconds, None if retain.size is None else int(retain.size.value)
    )
    until = None if options.seconds is None else time.monotonic() + options.seconds
    try:
        dataset = FeedDataset(dataset_root(wanted.path), spec.subscription, declared(spec.schema))
    except (FeedDatasetError, ObjectStoreError) as error:
        raise CommandError(FAILED, str(error)) from error
    name = options.name or subscriber_name(wanted.path)
    try:
        with (
            stop_signals() as interrupted,
            open_connection(options) as connection,
            resumed_subscriber(connection, name, dataset, ACK_SECONDS) as subscriber,
        ):
            recorder = FeedRecorder(subscriber, dataset, CommitLimits(commit_seconds), kept)
            recorder.start()
            print_error(f"recording to {wanted.path} as {name}")
            while not interrupted() and (until is None or time.monotonic() < until):
                recorder.step()
                if options.count is not None and dataset.counts.received + dataset.pending >= options.count:
                    break
            recorder.finish()
    except (FeedDatasetError, ObjectStoreError) as error:
        raise CommandError(FAILED, str(error)) from error
    finally:
        dataset.close()
    counts = dataset.counts
    print_line(f"{counts.rows} rows, {counts.dead_letters} dead letters, {counts.gaps} gaps")
    return OK


def _wanted(options: argparse.Namespace) -> _Wanted:
    if options.file is None:
        if options.path is None:
            raise CommandError(BAD_INPUT, "say where to: --path DIR")
        return _Wanted(FeedSpec(subscription=_checked(options.subscription)), _absolute(options.path))
    feed = _feed_of(options.file, options.feed)
    _checked(feed.spec.subscription, f"{options.file}: {feed.subject}: spec.subscription: ")
    if options.path is None and not (Path(feed.spec.path).is_absolute() or is_object_url(feed.spec.path)):
        raise CommandError(BAD_INPUT, f"{feed.subject} names no absolute path: say where to with --path DIR")
    return _Wanted(feed.spec, _absolute(options.path or feed.spec.path))


def _absolute(path: str) -> str:
    return path if is_object_url(path) else str(Path(path).absolute())


def _checked(text: str, where: str = "") -> str:
    try:
        parse(text)
    except ParseError as error:
        raise CommandError(BAD_INPUT, f"{where}{error}") from error
    return text


def _feed_of(file: Path, name: str | None) -> Resource[FeedSpec]:
    resources, problems = parse_each(manifests.load([str(file)]))
    if problems:
        raise InvalidResourcesError(problems)
    feeds = [each for each in resources if isinstance(each.spec, FeedSpec) and name in (None, each.name)]
    if len(feeds) != 1:
        names = ", ".join(each.name for each in resources if each.kind == "Feed") or "none"
        raise CommandError(BAD_INPUT, f"{file} has the feeds {names}: name one of them with --feed")
    [found] = feeds
    return found  # type: ignore[return-value]  # its spec is a FeedSpec, as the line above asks
