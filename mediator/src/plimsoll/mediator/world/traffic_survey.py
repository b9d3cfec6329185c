"""A survey of a fleet's load: what is published, how fast and by whom, and who asks for what at which edge.

Heads are asked for pages of their logs, edges for pages of their subscribers' lists. Both may be lost, so what is left
unanswered is asked for again. This decides what to ask and what the answers come to; it owns no socket and no clock.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from msgspec import Meta

from plimsoll.core.predicates import Attributes
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.mediator.control_plane import ListingPage

ASK_AGAIN_SECONDS = 0.5
PAGE_POSITIONS = 256
"""Positions of a log that a page looks at."""

PAGES_AT_MOST = 64
"""Pages of a log. Of one that has more in the time of the survey, parts are read that lie evenly over it."""

SUBSCRIPTIONS_AT_MOST = 1_000_000
END = 2**62
"""A position behind every log: the answer says where the log begins and ends."""

QUIET_INTERVALS = 3.0
"""A publisher that has been silent for this many of its intervals has stopped."""

_Amount = Annotated[float, Meta(ge=0.0, le=wire.NUMBER_AT_MOST)]
"""Finite, as NaN is not within bounds either."""

Listing = msg.ListPublications | msg.ListSubscriptions


class SurveyError(ValueError):
    """The survey cannot be completed; the message says why."""


@dataclass(frozen=True, slots=True)
class SurveyedPublisher:
    """`contents`: the attributes of its publications as far as they were read, the oldest first."""

    name: str
    per_second: _Amount
    contents: tuple[Attributes, ...]
    payload_bytes: wire.Count


@dataclass(frozen=True, slots=True)
class SurveyedHead:
    """`seconds`: the time that the publications are from. `is_sampled`: some of that time were left out."""

    publishers: tuple[SurveyedPublisher, ...]
    publications: wire.Count
    seconds: _Amount
    is_sampled: bool = False


@dataclass(frozen=True, slots=True)
class TrafficSurvey:
    """Heads by name; what the subscribers of each edge ask for, by edge and name.

    `clients`: connections of clients to the edge that has most of them; 0 if that is not known.
    `round_trip_seconds`: the median time from a small question to its answer, at heads; None if that is not known.
    """

    heads: Mapping[str, SurveyedHead]
    subscribers: Mapping[str, Mapping[str, tuple[str, ...]]]
    round_trip_seconds: _Amount | None = None
    clients: wire.Count = 0


def encode_survey(survey: TrafficSurvey) -> bytes:
    """A survey as JSON in ASCII, from a process that is nearer to the brokers than its user."""
    return json.dumps(msgspec.to_builtins(survey)).encode("ascii")  # of an attribute that is no number, too: NaN


def decode_survey(data: bytes) -> TrafficSurvey:
    """The survey in this JSON; SurveyError if there is none."""
    try:
        return msgspec.convert(json.loads(data), TrafficSurvey)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise SurveyError(f"what came is not a survey ({error}): the operator may be of another version") from error


class SurveyReader:
    """Asks for pages until it has `over_seconds` of every log, and all lists of every edge."""

    def __init__(self, heads: Iterable[str], edges: Iterable[str], over_seconds: float) -> None:
        self._logs = {name: _LogReading(over_seconds) for name in heads}
        self._lists = {name: _ListReading() for name in edges}
        self._asked: dict[str, tuple[int, float]] = {}
        self._number = 0

    @property
    def waiting(self) -> list[str]:
        """The brokers that have not answered everything."""
        logs = (name for name, each in self._logs.items() if not each.is_done)
        lists = (name for name, each in self._lists.items() if not each.is_done)
        return sorted((*logs, *lists))

    def requests(self, now: float) -> Iterator[tuple[str, Listing]]:
        """What to send now: a new request, or one that has not been answered for a while."""
        for name in self.waiting:
            number, at = self._asked.get(name, (0, float("-inf")))
            if now >= at + ASK_AGAIN_SECONDS:
                if not number:
                    self._number += 1
                    number = self._number
                self._asked[name] = number, now
                yield (
                    name,
                    self._logs[name].request(number) if name in self._logs else self._lists[name].request(number),
                )

    def take(self, broker: str, page: ListingPage) -> None:
        """Take a page. One that was not asked for, or has come before, changes nothing.

        Raises:
            SurveyError: there is more than can be taken.

        """
        if self._asked.get(broker, (0, 0.0))[0] != page.id or not page.id:
            return
        if isinstance(page, msg.PublicationPage) and broker in self._logs:
            self._logs[broker].take(page)
        elif isinstance(page, msg.SubscriptionPage) and broker in self._lists:
            self._lists[broker].take(page)
        else:
            return
        del self._asked[broker]
        if sum(each.count for each in self._lists.values()) > SUBSCRIPTIONS_AT_MOST:
            raise SurveyError(f"the fleet has more than {SUBSCRIPTIONS_AT_MOST:,} subscriptions: name one --cluster")

    def survey(self) -> TrafficSurvey:
        """What was found."""
        return TrafficSurvey(
            {name: each.surveyed() for name, each in sorted(self._logs.items())},
            {name: each.surveyed() for name, each in sorted(self._lists.items())},
            clients=max((len(each.links) for each in self._lists.values()), default=0),
        )


@dataclass(slots=True)
class _LogReading:
    """Reads a log from its end backwards, until it has the seconds wanted or the log begins."""

    over_seconds: float
    after: int = END
    epoch: int = 0
    pages: int = 0
    stride: int = 1
    is_done: bool = False
    found: dict[tuple[str, int, int], msg.PublicationItem] = field(default_factory=dict)

    def request(self, number: int) -> msg.ListPublications:
        return msg.ListPublications(number, self.after)

    def take(self, page: msg.PublicationPage) -> None:
        if page.head_epoch != self.epoch:  # the first answer, or the head has restarted, and its log with it
            self.epoch, self.pages, self.stride, self.found = page.head_epoch, 0, 1, {}
            self.is_done = page.last < page.first
            self.after = max(page.last - PAGE_POSITIONS, page.first - 1)
            return
        self.pages += 1
        self.found |= {(each.publisher, each.incarnation, each.seq): each for each in page.publications}
        if self.pages == 1:
            self.stride = self._stride(page)
        is_enough = _seconds(self.found.values()) >= self.over_seconds
        self.is_done = self.after < page.first or self.pages >= PAGES_AT_MOST or is_enough
        self.after = max(self.after - PAGE_POSITIONS * self.stride, page.first - 1)

    def _stride(self, page: msg.PublicationPage) -> int:
        """How far apart pages lie, in pages, so that PAGES_AT_MOST of them reach over the seconds wanted."""
        seconds = _seconds(page.publications)
        if seconds <= 0.0:
            return 1
        positions = self.over_seconds * (page.through - self.after) / seconds
        return max(1, -(-int(min(positions, page.last)) // (PAGE_POSITIONS * PAGES_AT_MOST)))

    def surveyed(self) -> SurveyedHead:
        newest = max((each.sent_us for each in self.found.values()), default=0)
        recent = [each for each in self.found.values() if each.sent_us > newest - self.over_seconds * 1e6]
        seconds = _seconds(recent)
        by_publisher = defaultdict[str, list[msg.PublicationItem]](list)
        for each in sorted(recent, key=lambda one: (one.incarnation, one.seq)):
            by_publisher[each.publisher].append(each)
        publishers = (_publisher(name, items, newest, seconds) for name, items in sorted(by_publisher.items()))
        return SurveyedHead(tuple(publishers), len(recent), seconds, self.stride > 1)


@dataclass(slots=True)
class _ListReading:
    """Reads the lists of an edge from the first subscriber to the last."""

    start: str = ""
    skip: int = 0
    epoch: int = 0
    count: int = 0
    is_done: bool = False
    found: dict[str, list[str]] = field(default_factory=dict)
    links: set[int] = field(default_factory=set)

    def request(self, number: int) -> msg.ListSubscriptions:
        return msg.ListSubscriptions(number, self.start, self.skip)

    def take(self, page: msg.SubscriptionPage) -> None:
        if self.epoch and page.epoch != self.epoch:  # it has restarted: its subscribers come back one by one
            self.start, self.skip, self.count, self.found, self.links = "", 0, 0, {}, set()
            self.epoch = page.epoch
            return
        self.epoch = page.epoch
        for each in page.subscribers:
            known = self.found.setdefault(each.subscriber, [])
            known += each.subscriptions
            self.count += len(each.subscriptions)
            self.links |= {each.link} - {0}
        self.is_done, self.start, self.skip = not page.next, page.next, page.skip

    def surveyed(self) -> dict[str, tuple[str, ...]]:
        return {name: tuple(texts) for name, texts in sorted(self.found.items()) if texts}


def _seconds(found: Iterable[msg.PublicationItem]) -> float:
    """The time between the first and the last, by the clocks of their publishers."""
    times = [each.sent_us for each in found]
    return (max(times) - min(times)) / 1e6 if times else 0.0


def _publisher(name: str, items: list[msg.PublicationItem], newest_us: int, seconds: float) -> SurveyedPublisher:
    size = round(sum(each.payload_bytes for each in items) / len(items))
    return SurveyedPublisher(name, _rate(items, newest_us, seconds), tuple(each.attributes for each in items), size)


def _rate(items: list[msg.PublicationItem], newest_us: int, seconds: float) -> float:
    """Publications per second: by the publisher's own numbers, which count those too that were not read."""
    last = items[-1]
    first = next(each for each in items if each.incarnation == last.incarnation)
    numbers, took = last.seq - first.seq, (last.sent_us - first.sent_us) / 1e6
    silent = (newest_us - last.sent_us) / 1e6
    if numbers > 0 and took > 0.0 and silent <= QUIET_INTERVALS * took / numbers:
        return min(numbers / took, wire.NUMBER_AT_MOST)
    return min((max(numbers, 0) + 1) / seconds, wire.NUMBER_AT_MOST) if seconds > 0.0 else 0.0
