"""Checks of channels over several fields: names, feeds, modes. What only Spark can check, the driver checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from plimsoll.core.spec.problems import Path, ResourceProblem, suggestion
from plimsoll.core.spec.resources import Resource, Resources
from plimsoll.core.spec.types.channel import PARAMETERS_VIEW, RESULT_ATTRIBUTES, ChannelSpec
from plimsoll.core.spec.types.feed import STORE_PLACE, STORE_PLACE_FORM


def check_channels(resources: Resources) -> Iterator[ResourceProblem]:
    """All checks of all channels of a fleet."""
    for _, channel in sorted(resources.channels.items()):
        yield from _parameters(channel)
        yield from _views(channel)
        yield from _feeds(channel, list(resources.feeds))
        yield from _mode(channel)


def _parameters(channel: Resource[ChannelSpec]) -> Iterator[ResourceProblem]:
    if not channel.spec.parameters:
        yield channel.problem(
            ("spec", "parameters"),
            "this list is empty",
            "Name what subscriptions choose by, as in {name: kind, type: String}.",
        )
    for index, parameter in enumerate(channel.spec.parameters):
        if parameter.name in RESULT_ATTRIBUTES:
            path: Path = ("spec", "parameters", index, "name")
            yield channel.problem(path, f'every result has an attribute "{parameter.name}" of its own', "Rename it.")


def _views(channel: Resource[ChannelSpec]) -> Iterator[ResourceProblem]:
    """Spark does not tell upper case from lower case in names of views."""
    spec = channel.spec
    known = {PARAMETERS_VIEW}
    views = [("feeds", index, each.name) for index, each in enumerate(spec.feeds)]
    views += [("tables", index, each.name) for index, each in enumerate(spec.tables)]
    for field, index, name in views:
        if name.casefold() in known:
            path: Path = ("spec", field, index, "name")
            yield channel.problem(path, f'the query has a view "{name}" already', "Choose another name.")
        known.add(name.casefold())
    for index, table in enumerate(spec.tables):
        yield from store_problems(channel, ("spec", "tables", index, "path"), table.path)


def store_problems(owner: Resource[Any], path: Path, place: str) -> Iterator[ResourceProblem]:
    """A place in a store that has another form. Other paths are those of a file system."""
    if "://" in place and not re.fullmatch(STORE_PLACE, place):
        yield owner.problem(path, f"{place} is no place in an object store", f"Write {STORE_PLACE_FORM}.")


def _feeds(channel: Resource[ChannelSpec], feeds: list[str]) -> Iterator[ResourceProblem]:
    new = [each.feed for each in channel.spec.feeds if each.rows == "New"]
    if not new:
        found = "no feed of the query has `rows: New`, so it has nothing to begin a batch with"
        if channel.spec.mode == "Continuous" or not channel.spec.feeds:
            yield channel.problem(("spec", "feeds"), found, "Name a feed whose new rows the query is about.")
    for index, each in enumerate(channel.spec.feeds):
        path: Path = ("spec", "feeds", index)
        if each.feed not in feeds:
            remedy = suggestion(each.feed, feeds, "Feed")
            yield channel.problem((*path, "feed"), f'there is no Feed "{each.feed}"', remedy)
        if each.rows == "New" and each.within is not None:
            found = "new rows are seen once, however old they are"
            yield channel.problem((*path, "within"), found, "Remove it, or write `rows: All`.")
        if each.rows == "New" and new.count(each.feed) > 1:
            found = f'another view has the new rows of Feed "{each.feed}", too'
            yield channel.problem((*path, "feed"), found, "Use one view for both, or write `rows: All`.")


def _mode(channel: Resource[ChannelSpec]) -> Iterator[ResourceProblem]:
    spec = channel.spec
    if spec.mode == "Repetitive" and spec.every is None:
        yield channel.problem(
            ("spec", "every"), "a Repetitive channel needs a period", "Write one, such as `every: 10s`."
        )
    elif spec.mode == "Continuous" and spec.every is not None:
        found = "a Continuous channel has no period"
        yield channel.problem(("spec", "every"), found, "Remove it, or write `mode: Repetitive`.")
