"""The order in which publishers leave an overloaded head. Tao, Poslad, Bigham 2013, IV.C.2.

Publishers of one topic are a bundle: they leave together, or stay together, and go singly only where no head can take
any bundle. Of a group, those whose messages may wait longest go first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad

PublisherGroup = Literal["Pn", "Pr", "Pr-l", "Pl"]
"""By who takes what they publish: no subscriber, only remote ones, remote and local ones, only local ones."""

HeadMetric = Literal["downlink", "uplink"]
"""What of a head is overloaded: what comes in, or what goes out."""

ORDER: Final[Mapping[HeadMetric, tuple[PublisherGroup, ...]]] = {
    "downlink": ("Pn", "Pr", "Pr-l", "Pl"),
    "uplink": ("Pr", "Pr-l", "Pl", "Pn"),
}


@dataclass(frozen=True, slots=True)
class HeadPublisher:
    """A publisher with all of its topics.

    `topic`: the one that brings most of its bytes, None if that is of no topic; it is the bundle that the publisher
    belongs to. `allowed_seconds`: how long its messages may wait, by the strictest of its topics; infinity without a
    deadline.
    """

    publisher: str
    topic: int | None
    topics: frozenset[int]
    group: PublisherGroup
    allowed_seconds: float
    input_rate: float
    input_bytes: float
    local_bytes: float
    remote_bytes: float

    @property
    def output_bytes(self) -> float:
        """What goes out for it, to edges and to neighbouring heads, in bytes per second."""
        return self.local_bytes + self.remote_bytes

    def bytes_of(self, metric: HeadMetric) -> float:
        """What it brings the overloaded metric, in bytes per second."""
        return self.input_bytes if metric == "downlink" else self.output_bytes


@dataclass(frozen=True, slots=True)
class PublisherBundle:
    """All publishers of a topic, in the order in which they would leave singly. Its group is that of all of them
    together, its `allowed_seconds` the least."""

    topic: int | None
    group: PublisherGroup
    allowed_seconds: float
    publishers: tuple[HeadPublisher, ...]


def group_of(*, is_local: bool, is_remote: bool) -> PublisherGroup:
    """The group, by whether subscribers of this cluster and of other clusters take what is published."""
    if is_remote:
        return "Pr-l" if is_local else "Pr"
    return "Pl" if is_local else "Pn"


def publishers_to_offload(
    loads: Iterable[PublisherTopicLoad], metric: HeadMetric, allowed_seconds: Mapping[int, float]
) -> tuple[HeadPublisher, ...]:
    """The publishers of a head one by one, the first to leave first.

    Within a group the larger allowed waiting time goes first, then publishers of one topic together, then what brings
    the overloaded metric most. `allowed_seconds`: by topic; one that is not named has no deadline.
    """
    return tuple(sorted(_publishers(loads, allowed_seconds), key=lambda one: _place(one, metric)))


def bundles_to_offload(
    loads: Iterable[PublisherTopicLoad], metric: HeadMetric, allowed_seconds: Mapping[int, float]
) -> tuple[PublisherBundle, ...]:
    """The bundles of a head, the first to leave first; those without a topic are one each.

    A bundle of which some publishers have local and some remote subscribers is in the group of both.
    """
    by_topic: dict[tuple[int | None, str], list[HeadPublisher]] = {}
    for one in publishers_to_offload(loads, metric, allowed_seconds):
        by_topic.setdefault((one.topic, one.publisher if one.topic is None else ""), []).append(one)
    bundles = [_bundle(topic, some) for (topic, _), some in by_topic.items()]
    return tuple(sorted(bundles, key=lambda bundle: _bundle_place(bundle, metric)))


def _publishers(loads: Iterable[PublisherTopicLoad], allowed_seconds: Mapping[int, float]) -> Iterable[HeadPublisher]:
    by_name: dict[str, list[PublisherTopicLoad]] = {}
    for load in loads:
        by_name.setdefault(load.publisher, []).append(load)
    for name, rows in by_name.items():
        yield _publisher(name, rows, allowed_seconds)


def _publisher(name: str, rows: list[PublisherTopicLoad], allowed_seconds: Mapping[int, float]) -> HeadPublisher:
    topics = frozenset(row.topic for row in rows if row.topic is not None)
    main = min(rows, key=lambda row: (-row.input_bytes, _topic_order(row.topic)))
    return HeadPublisher(
        name,
        main.topic,
        topics,
        group_of(is_local=any(row.local_rate for row in rows), is_remote=any(row.remote_rate for row in rows)),
        min((allowed_seconds.get(topic, math.inf) for topic in topics), default=math.inf),
        sum(row.input_rate for row in rows),
        sum(row.input_bytes for row in rows),
        sum(row.local_bytes for row in rows),
        sum(row.remote_bytes for row in rows),
    )


def _bundle(topic: int | None, some: list[HeadPublisher]) -> PublisherBundle:
    groups = {one.group for one in some}
    group = group_of(is_local=bool(groups & {"Pl", "Pr-l"}), is_remote=bool(groups & {"Pr", "Pr-l"}))
    return PublisherBundle(topic, group, min(one.allowed_seconds for one in some), tuple(some))


def _place(one: HeadPublisher, metric: HeadMetric) -> tuple[int, float, int, float, str]:
    rank = ORDER[metric].index(one.group)
    return rank, -one.allowed_seconds, _topic_order(one.topic), -one.bytes_of(metric), one.publisher


def _bundle_place(bundle: PublisherBundle, metric: HeadMetric) -> tuple[int, float, int, str]:
    rank = ORDER[metric].index(bundle.group)
    return rank, -bundle.allowed_seconds, _topic_order(bundle.topic), bundle.publishers[0].publisher


def _topic_order(topic: int | None) -> int:
    """Publications without a topic come first: nothing ties them to others."""
    return -1 if topic is None else topic
