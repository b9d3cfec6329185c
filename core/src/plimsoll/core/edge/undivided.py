"""Subscribers that were here before the cluster had bundles: whole, although they ask for topics.

Clients divide a subscriber when it looks for an edge. So these are asked to look again, a few at each report, each
once: one whose client knows nothing of units comes back whole, and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from plimsoll.core.edge.attachment import SERVED, EdgeAttachment
from plimsoll.core.predicates.topics import topics_of
from plimsoll.core.protocol.topic_units import hash_of_unit

AT_ONCE = 16
"""Subscribers that are asked at one report: not all clients of an edge are to join in the same moment."""


class UndividedSubscribers:
    """`attribute`: whose values are topics."""

    def __init__(self) -> None:
        self._attribute = ""
        self._waiting: list[str] = []

    def begin(self, attribute: str, subscribers: Iterable[str]) -> None:
        """The cluster has bundles from now on, by this attribute; these subscribers are here. Empty: it has none."""
        self._attribute = attribute
        self._waiting = sorted((name for name in subscribers if hash_of_unit(name) is None), reverse=True)

    def some(self, here: Mapping[str, EdgeAttachment]) -> Iterator[EdgeAttachment]:
        """A few of those that are still here and ask for topics."""
        for _ in range(min(AT_ONCE, len(self._waiting))):
            attachment = here.get(self._waiting.pop())
            if attachment is not None and attachment.state in SERVED and self._asks_for_topics(attachment):
                yield attachment

    def _asks_for_topics(self, attachment: EdgeAttachment) -> bool:
        return any(topics_of(each, self._attribute) for each, _ in attachment.subscriptions.values())
