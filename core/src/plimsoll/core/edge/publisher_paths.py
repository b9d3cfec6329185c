"""How far the publishers of a topic are, as the head of an edge says: the longest way over all of them.

Tao, Poslad, Bigham 2013, IV.B: of the transmission times of different publishers the maximum is taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from plimsoll.core.protocol.messages import OriginPath, PublisherPaths


class PublisherPath(NamedTuple):
    """From a publisher to the head of this edge: one way on all links, and in all heads."""

    links_seconds: float = 0.0
    brokers_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        return self.links_seconds + self.brokers_seconds


class PathTable:
    """The last that the head has said. What it says no more is kept: no path is shorter for that."""

    def __init__(self) -> None:
        self._paths: dict[str, tuple[OriginPath, dict[int, float]]] = {}

    def take(self, said: PublisherPaths, attribute: str) -> None:
        """Replace all paths, but for those that cannot be. Topics of another attribute are not those of this edge."""
        same = said.attribute == attribute
        self._paths = {
            path.head: (path, dict(path.topics) if same else {}) for path in said.origins if path.is_possible
        }

    def longest(self, topic: int, origins: Iterable[str] | None, own: str) -> PublisherPath:
        """The longest way of a topic that these heads have accepted; None: any head may have.

        Without an origin, as long as nothing has been published, the way from publishers of the own head counts.
        """
        heads = self._paths if origins is None else list(origins) or [own]
        known = (self._paths[head] for head in heads if head in self._paths)
        ways = [
            PublisherPath(topics.get(topic, path.publisher_seconds) + path.links_seconds, path.brokers_seconds)
            for path, topics in known
        ]
        return max(ways, key=lambda way: (way.seconds, way), default=PublisherPath())
