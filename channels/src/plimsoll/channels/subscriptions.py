"""Which parameters of a channel are in force: read from the edges' pages, without a subscriber's name or number.

A subscription gives a value to each parameter, or to some of them: then it is open, and gets what others ask for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from plimsoll.channels.config import ChannelDefinition
from plimsoll.core.predicates import parse
from plimsoll.core.predicates.topics import topics_of
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Scalar
from plimsoll.core.spec.types.channel import CHANNEL_ATTRIBUTE
from plimsoll.core.spec.types.feed import ColumnType

COMBINATIONS_AT_MOST: Final = 10_000
"""Of the lists of values of one subscription."""

ParameterRow = tuple[Scalar, ...]
"""The values of all parameters of a channel, in the order of their declaration."""


@dataclass(frozen=True)
class ChannelSubscriptions:
    """The rows of the view `parameters`, and how many lists of equalities are open or have a value of a wrong type."""

    rows: frozenset[ParameterRow] = frozenset()
    open: int = 0
    invalid: int = 0


@dataclass
class _EdgePages:
    """What one edge has said. `texts`: the last complete list; `coming`: one that is still being read."""

    epoch: int = 0
    revision: int = 0
    texts: dict[str, int] = field(default_factory=dict)
    coming: dict[str, int] | None = None
    is_complete: bool = False


class SubscribedParameters:
    """The parameters in force at a changing set of edges."""

    def __init__(self) -> None:
        self._edges: dict[str, _EdgePages] = {}
        self._channels: dict[str, dict[str, Mapping[str, tuple[Scalar, ...]]]] = {}  # parsed, by channel and text
        self._holders: dict[str, int] = {}  # by text: at how many edges
        self.version = 0

    def set_edges(self, names: Iterable[str]) -> None:
        """Follow these edges. What one has said that is gone does not count any more."""
        wanted = set(names)
        for name in self._edges.keys() - wanted:
            self._replace(self._edges.pop(name), {})
        for name in wanted - self._edges.keys():
            self._edges[name] = _EdgePages()

    @property
    def is_complete(self) -> bool:
        """Whether every edge has told all of its parameters once."""
        return all(each.is_complete for each in self._edges.values())

    def request(self, edge: str, number: int) -> msg.ListParameters:
        """What to ask an edge next."""
        known = self._edges[edge]
        return msg.ListParameters(number, known.epoch, known.revision)

    def take(self, edge: str, page: msg.ParameterPage) -> bool:
        """Take an edge's page; whether there is more to ask for at once."""
        known = self._edges.get(edge)
        if known is None or (not page.whole and (page.epoch, page.revision) < (known.epoch, known.revision)):
            return False  # an edge that is gone, or an answer that was overtaken
        if not (page.parameters or page.whole or page.more or known.coming):
            known.revision = page.revision
            return False
        if page.whole:
            known.coming = {}
        found = known.coming if known.coming is not None else dict(known.texts)
        for item in page.parameters:
            if item.subscriptions:
                found[item.text] = item.subscriptions
            else:
                found.pop(item.text, None)
        known.epoch, known.revision = page.epoch, page.revision
        if page.more:
            known.coming = found
            return True
        known.coming, known.is_complete = None, True
        self._replace(known, found)
        return False

    def _replace(self, known: _EdgePages, texts: dict[str, int]) -> None:
        gone, come = known.texts.keys() - texts.keys(), texts.keys() - known.texts.keys()
        known.texts = texts
        for text in come:
            self._holders[text] = self._holders.get(text, 0) + 1
            if self._holders[text] == 1:
                self._add(text)
        for text in gone:
            self._holders[text] -= 1
            if not self._holders[text]:
                del self._holders[text]
                self._drop(text)
        self.version += bool(gone or come)

    def _add(self, text: str) -> None:
        subscription = parse(text)
        values = {name: topics_of(subscription, name) for name, _ in subscription.constraints}
        for channel in values.get(CHANNEL_ATTRIBUTE, ()):
            self._channels.setdefault(str(channel), {})[text] = values

    def _drop(self, text: str) -> None:
        for channel in topics_of(parse(text), CHANNEL_ATTRIBUTE):
            of_channel = self._channels[str(channel)]
            del of_channel[text]
            if not of_channel:
                del self._channels[str(channel)]

    def of(self, channel: ChannelDefinition) -> ChannelSubscriptions:
        """The parameters of one channel that are in force."""
        rows: set[ParameterRow] = set()
        is_open = invalid = 0
        for values in self._channels.get(channel.name, {}).values():
            lists = [values.get(parameter.name, ()) for parameter in channel.parameters]
            if not all(lists):
                is_open += 1
                continue
            typed = [
                [typed_value(each, parameter.type) for each in some]
                for some, parameter in zip(lists, channel.parameters, strict=True)
            ]
            if math.prod(map(len, typed)) > COMBINATIONS_AT_MOST or any(None in some for some in typed):
                invalid += 1
                continue
            rows.update(product(*([each for each in some if each is not None] for some in typed)))
        return ChannelSubscriptions(frozenset(rows), is_open, invalid)


def typed_value(value: object, type_: ColumnType) -> Scalar | None:
    """A value as its parameter has it; None if it is of another type. Whole numbers are Numbers, too."""
    if type_ == "String":
        return value if isinstance(value, str) else None
    if type_ == "Boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if type_ == "Number":
        return float(value)
    return int(value) if float(value).is_integer() else None
