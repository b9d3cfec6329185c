"""How much each publisher of a head publishes, for its load reports."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from plimsoll.core.head.open_publisher import OpenPublisher

REPORTED_AT_MOST = 32
"""Publishers named in a load report."""


class PublisherRates:
    """Counts publications since the last load report, by publisher."""

    def __init__(self, by_name: Mapping[str, OpenPublisher]) -> None:
        self._by_name = by_name
        self._counted: list[OpenPublisher] = []

    def count(self, publisher: OpenPublisher, size: int) -> None:
        """It has published this many bytes at once."""
        if not publisher.publications:
            self._counted.append(publisher)
        publisher.publications += 1
        publisher.published_bytes += size
        publisher.total_publications += 1
        publisher.total_bytes += size

    def report(self, seconds: float) -> dict[str, int | dict[str, float]]:
        """The publishers of a load report: how many are remembered, and how many of them have not left; and the rates
        of those that sent most in these `seconds`.

        Counting starts over.
        """
        counted, self._counted = self._counted, []
        most = heapq.nsmallest(REPORTED_AT_MOST, counted, key=lambda each: (-each.publications, each.name))
        found: dict[str, int | dict[str, float]] = {
            "publishers": len(self._by_name),
            "publishers_open": sum(not each.left for each in self._by_name.values()),
            "publisher_rates": {each.name: each.publications / seconds for each in most},
            "publisher_bytes_per_second": {each.name: each.published_bytes / seconds for each in most},
        }
        for each in counted:
            each.publications = each.published_bytes = 0
        return found
