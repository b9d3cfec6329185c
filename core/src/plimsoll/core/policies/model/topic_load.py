"""The load of a topic at an edge, and how long its messages may wait there: what a deadline is defended by.

Of all subscribers of a topic the one with the least time left stands for them: its deadline is missed first. The edge
chooses it, since only the edge knows every queue. Tao, Poslad, Bigham 2013, IV.B and IV.C.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import msgspec

TOPICS_AT_MOST: Final = 256
"""Topics of one load report: those with a deadline first, the ones with the least time left before others."""

TOPIC_CHARACTERS: Final = 64
"""Characters of a topic that a report shows. Its hash is what counts."""

ROW_CHARACTERS: Final = 2048
"""Characters of a row in a report; more cannot come from a topic of `TOPIC_CHARACTERS`."""

UNKNOWN_WAIT_SECONDS: Final = 86_400.0

MEASURE_AT_MOST: Final = 1e15
"""Of any column. More is no measure, and sums and products of fewer are finite."""

REPORT_FIELD: Final = "topics"


@dataclass(frozen=True, slots=True)
class TopicLoad:
    """One topic at one edge. Rates are per second, times in seconds, sizes in bytes.

    `topic`: the hash of its value, which is written in `text`, shortened. `subscribers`: its units at the edge;
    `waiting`: those of them for which messages wait. `input_rate`: publications in, `remote_rate`: those of them that
    other clusters have accepted. `output_rate`: deliveries to all of its subscribers.

    Of the subscriber with the least time left: `depth`, messages that wait for it; `arrival_rate`, those that come into
    its queue; `delivery_rate`, those that leave it, as many as come while none waits; `required_seconds`, within which
    it wants them, 0 if it does not say; `transmission_seconds`, on all links, the longest over the publishers;
    `broker_seconds`, in all brokers, without the wait in its queue.

    What could leave an empty queue is not known, and not needed: a rate that falls from what could leave to what does
    would be taken for a queue that comes to a stop.

    `late`: deliveries of the last interval that came later than required, as far as brokers can tell.
    """

    topic: int
    text: str = ""
    subscribers: int = 0
    waiting: int = 0
    input_rate: float = 0.0
    remote_rate: float = 0.0
    input_bytes: float = 0.0
    output_rate: float = 0.0
    output_bytes: float = 0.0
    depth: int = 0
    arrival_rate: float = 0.0
    delivery_rate: float = 0.0
    required_seconds: float = 0.0
    transmission_seconds: float = 0.0
    broker_seconds: float = 0.0
    late: int = 0

    @property
    def allowed_seconds(self) -> float:
        """How long a message may wait in the queue, t_e; infinity without a deadline, below 0 if no path keeps it."""
        if not self.required_seconds:
            return math.inf
        return self.required_seconds - self.transmission_seconds - self.broker_seconds

    @property
    def wait_seconds(self) -> float:
        """How long the message that comes now will wait, at the present delivery rate.

        With messages that wait and none that leaves it is not known; a day stands for it.
        """
        if not self.depth:
            return 0.0
        known = self.depth / self.delivery_rate if self.delivery_rate else UNKNOWN_WAIT_SECONDS
        return min(UNKNOWN_WAIT_SECONDS, known)

    def depth_threshold(
        self,
        balancing_seconds: float,
        *,
        arrival_rate: float | None = None,
        delivery_rate: float | None = None,
        step_seconds: float = 1.0,
    ) -> float:
        """The depth above which the deadline is in danger. Tao, Poslad, Bigham 2013, eq. 2.

        `balancing_seconds`: what a balancing takes on average, t_LB. The rates are those predicted for the next look,
        the measured ones if they are left out. `step_seconds`: until that look, by which the queue has grown. The text
        subtracts rates from a number of messages: its looks are a second apart.
        """
        if not self.required_seconds:
            return math.inf
        comes = self.arrival_rate if arrival_rate is None else arrival_rate
        goes = self.delivery_rate if delivery_rate is None else delivery_rate
        return (self.allowed_seconds - balancing_seconds) * goes - (comes - goes) * step_seconds


def topic_key(load: TopicLoad) -> str:
    """A topic as plans and messages name it: its text, `#`, and its hash."""
    return f"{load.text}#{load.topic:08x}"


def topic_of_key(key: str) -> int:
    """The hash of the topic that plans name so."""
    return int(key.rpartition("#")[2], 16)


_COLUMNS: Final = tuple(item.name for item in fields(TopicLoad) if item.name not in ("topic", "text"))
_COUNTS: Final = frozenset({"subscribers", "waiting", "depth", "late"})


def topic_report(topics: Iterable[TopicLoad]) -> dict[str, list[str]]:
    """The field of a load report: a row of JSON for each topic, since reports hold no lists but those of strings."""
    rows = sorted(topics, key=_urgency)[:TOPICS_AT_MOST]
    return {REPORT_FIELD: [_row(one) for one in rows]}


def _row(one: TopicLoad) -> str:
    return json.dumps([one.topic, one.text, *(getattr(one, name) for name in _COLUMNS)], separators=(",", ":"))


def reported_topics(report: Mapping[str, Any]) -> tuple[TopicLoad, ...]:
    """The topics of a load report, by hash; rows that cannot be read are left out."""
    rows = report.get(REPORT_FIELD)
    some = rows[:TOPICS_AT_MOST] if isinstance(rows, list) else []
    found = {one.topic: one for row in some if (one := _read(row)) is not None}
    return tuple(found[topic] for topic in sorted(found))


def _urgency(load: TopicLoad) -> tuple[float, int]:
    wait = load.depth / load.delivery_rate if load.delivery_rate else (math.inf if load.depth else 0.0)
    left = load.allowed_seconds
    return (left if wait == math.inf and left == math.inf else left - wait, load.topic)


def _read(row: object) -> TopicLoad | None:
    """One row. Columns that a later version adds are ignored; with fewer it is none."""
    if not isinstance(row, str) or len(row) > ROW_CHARACTERS:
        return None
    try:
        found = msgspec.json.decode(row)  # unlike `json`, it reads neither NaN nor Infinity nor 1e400
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or len(found) < len(_COLUMNS) + 2:
        return None
    topic, text, *values = found[: len(_COLUMNS) + 2]
    if not isinstance(topic, int) or isinstance(topic, bool) or not 0 <= topic < 2**32 or not isinstance(text, str):
        return None
    if not all(_is_measure(value) for value in values):
        return None
    named = dict(zip(_COLUMNS, values, strict=True))
    measures = {name: int(value) if name in _COUNTS else float(value) for name, value in named.items()}
    return TopicLoad(topic, text[:TOPIC_CHARACTERS], **measures)  # type: ignore[arg-type]  # names are those of fields


def _is_measure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value <= MEASURE_AT_MOST
