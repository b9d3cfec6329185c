"""The journal's evidence about publishers, heads and subscribers, kept as compact histories until the audit's end.

A journal merges the files of several processes, so an observation may refer to one that has not been read yet. Only
faults that no later observation can resolve are reported here; all others wait for the checks over whole histories.
"""

from __future__ import annotations

from array import array

from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.histories import (
    GapPlace,
    PublicationHistories,
    PublicationHistory,
    StreamNumbers,
    SubscriberHistory,
    SubscriptionHistory,
)
from plimsoll.core.verify.invariants import AuditFindings
from plimsoll.core.verify.oracle import FilterTable


class PublisherEvidence:
    """Publications with their answers, origins and positions in the logs of heads."""

    def __init__(self) -> None:
        self.publications = PublicationHistories()
        self.by_origin: dict[seen.LogPosition, set[seen.PublicationIdentity]] = {}
        self.logging_heads: set[str] = set()
        self.heads_ended: dict[tuple[str, int], float] = {}

    def on_publication(self, one: seen.PublicationObserved) -> None:
        self.publications.published(one)

    def on_answer(self, one: seen.AnswerObserved) -> None:
        publication = self.publications.of((one.publisher, one.incarnation, one.seq))
        publication.answer, publication.answered_at = one.answer, one.at
        publication.answers += 1

    def on_log_entry(self, one: seen.LogEntryObserved) -> None:
        publication = self.publications.logged(one)
        self.logging_heads.add(one.head)
        self.add_origin(publication, one.origin)

    def on_head_end(self, one: seen.HeadEndObserved) -> None:
        self.heads_ended[one.head, one.epoch] = one.at

    def add_origin(self, publication: PublicationHistory, origin: seen.LogPosition) -> None:
        """Note where a publication was accepted. A second origin is kept beside the first: it breaks I2."""
        if publication.origin is None:
            publication.origin = origin
            self.by_origin.setdefault(origin, set()).add(publication.identity)
        elif publication.origin != origin:
            self.by_origin.setdefault(origin, set()).add(publication.identity)
            publication.other_origins.add(origin)


class SubscriberEvidence:
    """Subscriptions and streams, by incarnation of a subscriber."""

    def __init__(self, publishers: PublisherEvidence, found: AuditFindings) -> None:
        self._publishers, self._found = publishers, found
        self.filters = FilterTable()
        self.streams = StreamNumbers()
        self.readers: dict[tuple[str, int], SubscriberHistory] = {}

    def reader(self, name: str, incarnation: int) -> SubscriberHistory:
        key = (name, incarnation)
        if key not in self.readers:
            self.readers[key] = SubscriberHistory(name, incarnation)
        return self.readers[key]

    def matched(self) -> list[array[int]]:
        """For each filter, the ascending numbers of the publications that it matches."""
        matched = [array("l") for _ in range(len(self.filters))]
        for number, publication in enumerate(self._publishers.publications.all):
            if publication.attributes is not None:
                for one in self.filters.matching(publication.attributes):
                    matched[one].append(number)
        return matched

    def on_subscription(self, one: seen.SubscriptionObserved) -> None:
        lives = self.reader(one.subscriber, one.incarnation).lives.setdefault(one.id, [])
        lives.append(SubscriptionHistory(self.filters.number(one.predicates), one.at))

    def on_acknowledgement(self, one: seen.AcknowledgementObserved) -> None:
        self.reader(one.subscriber, one.incarnation).heads.add(one.head)
        for life in self._lives(one):
            life.acknowledged.append((one.at, one.head, tuple(one.unreached)))

    def on_withdrawal(self, one: seen.WithdrawalObserved) -> None:
        for life in self._lives(one):
            life.withdrawn_at = min(life.withdrawn_at, one.at)

    def on_removal(self, one: seen.RemovalObserved) -> None:
        for life in self._lives(one):
            life.withdrawn_at = min(life.withdrawn_at, one.at)
            life.forgotten_at = min(life.forgotten_at, one.at)

    def on_lease_end(self, one: seen.LeaseEndObserved) -> None:
        for lives in self.reader(one.subscriber, one.incarnation).lives.values():
            lives[-1].void_at.append(one.at)

    def on_delivery(self, one: seen.DeliveryObserved) -> None:
        reader = self.reader(one.subscriber, one.incarnation)
        number = self._publishers.publications.number(one.publication)
        publication = self._publishers.publications.all[number]
        self._publishers.add_origin(publication, one.origin)
        if one.place is not None:
            head, epoch, position = one.place
            publication.positions.setdefault((head, epoch), position)
        reader.streams.append(self.streams.number(one.place))
        reader.positions.append(one.place[2] if one.place is not None else 0)
        reader.items.append(number)
        reader.times.append(one.at)

    def on_gap(self, one: seen.GapObserved) -> None:
        reader = self.reader(one.subscriber, one.incarnation)
        reader.gaps.append(GapPlace(one, len(reader.items)))

    def _lives(
        self, one: seen.AcknowledgementObserved | seen.WithdrawalObserved | seen.RemovalObserved
    ) -> list[SubscriptionHistory]:
        """The latest life of each named subscription."""
        reader = self.reader(one.subscriber, one.incarnation)
        unknown = [number for number in one.ids if number not in reader.lives]
        if unknown:
            self._found.add("I8", reader.subject, f"{type(one).__name__} names {unknown}, never subscribed", one.at)
        return [reader.lives[number][-1] for number in one.ids if number in reader.lives]
