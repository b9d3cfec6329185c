"""What the bundles of topics bring an edge: publications in and out, subscribers, and the ranges that it was told of.

Costs are bounded whatever applications publish: counts are kept by bundle, and the bundles of a few short topics are
remembered. A topic is known only by its hash.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from plimsoll.core.edge.remembered_topics import remember
from plimsoll.core.policies.model.bundle_load import BundleLoad, report_fields
from plimsoll.core.policies.model.hash_ranges import HashRange, Partition, partition_of
from plimsoll.core.policies.pulsar.splitting import topics_middle
from plimsoll.core.predicates import Attributes, Value
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.topic_units import hash_of_unit, topic_hash
from plimsoll.core.spec.types.policy import PulsarParameters

Version = tuple[int, int]


class BundleCounts:
    """One bundle since the last report."""

    __slots__ = ("bytes_in", "bytes_out", "deliveries", "publications")

    def __init__(self) -> None:
        self.publications = self.deliveries = self.bytes_in = self.bytes_out = 0


class BundleMeter:
    """`attribute`: whose values are the topics. `version`: how new the ranges are; (0, 0) are those of the policy."""

    def __init__(self, own: PulsarParameters, now: float) -> None:
        self.attribute = own.topic_attribute
        self.partition = Partition.of_count(own.bundles.initial)
        self.version: Version = (0, 0)
        self._counts: dict[HashRange, BundleCounts] = {}
        self._of_topic: dict[Value, BundleCounts] = {}
        self._hashes: dict[str, int | None] = {}
        self._since = now
        self._released: dict[HashRange, int] = {}

    def take_ranges(self, table: msg.BundleTable) -> None:
        """Take over ranges that are no older than the known ones. What was counted by older ones is dropped."""
        parted, version = partition_of(table.boundaries), (table.mediator, table.version)
        if parted is None or version < self.version:
            return
        self.version = version
        if parted != self.partition:
            self.partition = parted
            self._counts.clear()
            self._of_topic.clear()
            self._released = {bundle: number for bundle, number in self._released.items() if parted.has(bundle)}

    def take(self, table: msg.BundleTable, subscribers: Iterable[str]) -> list[str]:
        """Note how topics are divided; returns the units among these subscribers that are to leave now."""
        self.take_ranges(table)
        if not (bundles := self.released(table)):
            return []
        units = ((name, topic) for name in subscribers if (topic := hash_of_unit(name)) is not None)
        return [name for name, topic in units if any(each.holds(topic) for each in bundles)]

    def released(self, table: msg.BundleTable) -> list[HashRange]:
        """The bundles whose units are to leave now; each only once for a number, since messages are repeated."""
        found = []
        for item in table.released:
            bundle = self.partition.range_of(item.low)
            if self._released.get(bundle) != item.number:
                self._released[bundle] = item.number
                found.append(bundle)
        return found

    def seen_releases(self) -> list[msg.ReleasedBundle]:
        """The last release of each bundle, for a head that has begun since: it is not to release them again."""
        return [msg.ReleasedBundle(bundle.low, number) for bundle, number in sorted(self._released.items())]

    def note(self, attributes: Attributes, size: int, deliveries: int) -> None:
        """Hot path: count one publication, of this size in bytes, that was delivered so often."""
        topic = attributes.get(self.attribute)
        if topic is None:
            return
        # `True == 1`, and they are two topics: booleans are never remembered.
        counts = self._of_topic.get(topic) if topic is not True and topic is not False else None
        if counts is None:
            counts = self._find(topic)
        counts.publications += 1
        counts.deliveries += deliveries
        counts.bytes_in += size
        counts.bytes_out += size * deliveries

    def _find(self, topic: Value) -> BundleCounts:
        bundle = self.partition.range_of(topic_hash(topic))
        counts = self._counts.get(bundle)
        if counts is None:
            counts = self._counts[bundle] = BundleCounts()
        return remember(self._of_topic, topic, counts)

    def report(self, served: Iterable[str], now: float) -> Mapping[str, Any]:
        """Fields of a load report about the interval that ends now. `served`: the names of all subscribers here.

        Some microsecond for each subscriber: names are read once, and ranges are found once for each bundle.
        """
        seconds, self._since = max(now - self._since, 1e-9), now
        known = self._hashes
        self._hashes = {name: known[name] if name in known else hash_of_unit(name) for name in served}
        counted, self._counts = self._counts, {}
        self._of_topic.clear()
        sessions = Counter(topic for topic in self._hashes.values() if topic is not None)
        by_bundle = dict(self._by_bundle(sorted(sessions)))
        loads = [
            _load(bundle, by_bundle.get(bundle, ()), sessions, counted.get(bundle), seconds)
            for bundle in sorted(by_bundle.keys() | counted.keys())
        ]
        return report_fields(loads)

    def _by_bundle(self, topics: Sequence[int]) -> Iterator[tuple[HashRange, Sequence[int]]]:
        """Sorted hashes, cut where bundles begin; bundles without one are left out."""
        at = 0
        while at < len(topics):
            bundle = self.partition.range_of(topics[at])
            after = bisect_left(topics, bundle.high, at)
            if bundle.holds(topics[-1]):
                after = len(topics)
            yield bundle, topics[at:after]
            at = after


def _load(
    bundle: HashRange, topics: Sequence[int], each: Mapping[int, int], counts: BundleCounts | None, seconds: float
) -> BundleLoad:
    sessions, middle = sum(each[topic] for topic in topics), topics_middle(topics)
    if counts is None:
        return BundleLoad(bundle, len(topics), sessions, middle)
    return BundleLoad(
        bundle,
        len(topics),
        sessions,
        middle,
        counts.publications / seconds,
        counts.deliveries / seconds,
        counts.bytes_in / seconds,
        counts.bytes_out / seconds,
    )
