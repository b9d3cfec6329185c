"""The load of publishers at a head, by topic, and how that travels in a load report.

A head tells where a publication goes: to edges of its own cluster, to neighbouring heads, to both, or to none. So the
groups of publishers of Tao, Poslad, Bigham 2013, IV.C.2 can be told from a report. The name of a row is the publisher,
`#`, and the hash of the topic as 8 hexadecimal digits, or `-` for publications without one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from plimsoll.core.protocol.topic_units import HASH_END

ROWS_AT_MOST: Final = 128
"""Rows of one load report: those that bring most bytes, in and out."""

REPORT_FIELD: Final = "publisher_topic_"

_SEPARATOR: Final = "#"
_NO_TOPIC: Final = "-"


@dataclass(frozen=True, slots=True)
class PublisherTopicLoad:
    """What one publisher brings a head with one topic. Rates are publications per second, bytes are of bodies, per
    second.

    `topic`: its hash; None for publications without one. `input_rate`, `input_bytes`: what comes in. `local_rate`:
    those publications that an edge of the cluster takes; `remote_rate`: those that a neighbouring head takes.
    `local_bytes`, `remote_bytes`: what goes out for it to edges and to neighbouring heads, once for each of them.
    `toward`: the neighbouring head that takes them, if it is always the same one.
    """

    publisher: str
    topic: int | None = None
    input_rate: float = 0.0
    input_bytes: float = 0.0
    local_rate: float = 0.0
    remote_rate: float = 0.0
    local_bytes: float = 0.0
    remote_bytes: float = 0.0
    toward: str = ""

    @property
    def row(self) -> str:
        """The name of the row."""
        return f"{self.publisher}{_SEPARATOR}{_NO_TOPIC if self.topic is None else format(self.topic, '08x')}"

    @property
    def output_bytes(self) -> float:
        """What goes out for it, to edges and to neighbouring heads."""
        return self.local_bytes + self.remote_bytes


_NAMES: Final = ("publisher", "topic", "toward")
_MEASURES: Final = tuple(item.name for item in fields(PublisherTopicLoad) if item.name not in _NAMES)


def publisher_report(loads: Iterable[PublisherTopicLoad]) -> dict[str, Any]:
    """The fields of a load report: for each measure, its value by row. Of too many rows the largest are reported."""
    some = sorted(loads, key=lambda each: (-each.input_bytes - each.output_bytes, each.row))[:ROWS_AT_MOST]
    found: dict[str, Any] = {
        f"{REPORT_FIELD}{name}": {each.row: getattr(each, name) for each in some} for name in _MEASURES
    }
    return {**found, f"{REPORT_FIELD}toward": {each.row: each.toward for each in some if each.toward}}


def reported_publishers(report: Mapping[str, Any]) -> tuple[PublisherTopicLoad, ...]:
    """The rows of a load report, by name; values that cannot be read count as 0."""
    found: dict[str, dict[str, float]] = {}
    for name in _MEASURES:
        values = report.get(f"{REPORT_FIELD}{name}")
        for row, value in values.items() if isinstance(values, Mapping) else ():
            if isinstance(row, str) and _is_measure(value):
                found.setdefault(row, {})[name] = float(value)
    named = [(pair, found[row]) for row in sorted(found)[:ROWS_AT_MOST] if (pair := _read(row)) is not None]
    return tuple(replace(_measured(*pair, values), toward=_toward(report, *pair)) for pair, values in named)


def _measured(publisher: str, topic: int | None, values: Mapping[str, float]) -> PublisherTopicLoad:
    measures: dict[str, Any] = {name: values.get(name, 0.0) for name in _MEASURES}
    return PublisherTopicLoad(publisher, topic, **measures)


def _toward(report: Mapping[str, Any], publisher: str, topic: int | None) -> str:
    found = report.get(f"{REPORT_FIELD}toward")
    head = found.get(PublisherTopicLoad(publisher, topic).row) if isinstance(found, Mapping) else None
    return head if isinstance(head, str) else ""


def _read(row: str) -> tuple[str, int | None] | None:
    """The publisher and the topic that a row is named by; None if it is written in another way."""
    publisher, _, topic = row.rpartition(_SEPARATOR)
    if topic == _NO_TOPIC:
        return publisher, None
    try:
        number = int(topic, 16)
    except ValueError:
        return None
    return (publisher, number) if publisher and 0 <= number <= HASH_END else None


def _is_measure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < math.inf
