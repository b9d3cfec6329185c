"""Counts a moving subscriber's deliveries independently of the code that delivers them, to audit hand-overs.

Rules of the place:
- It sees the deliveries to the application, after all decisions, and calls none of the code that decides.
- It counts from one place in the stream (a token and watermarks) to another (an offset per origin), and nothing else.
  The head reads from its log what was due between the two.
- It never guesses: without a full count there is no answer. A changed list of subscriptions, a lost attachment, and
  more than `ITEMS_AT_MOST` deliveries end it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.origins import Origin
from plimsoll.core.protocol.wire import Token

ITEMS_AT_MOST = 10_000
"""Deliveries of one move that are remembered."""


class TallyResult(NamedTuple):
    """Due deliveries by outcome. `lost`: not given to the application, whether or not a gap reported it."""

    lost: int
    duplicated: int
    reordered: int


class DeliveryTally:
    """The deliveries of one move, by origin. `version`: of the list of subscriptions that they match."""

    __slots__ = ("_given", "_marks", "duplicated", "items", "marks", "reordered", "session", "since", "version")

    def __init__(self, session: str, since: Token, marks: Iterable[Token], version: int) -> None:
        self.session, self.since, self.version = session, since, version
        self.marks = list(marks)
        self.items = self.duplicated = self.reordered = 0
        self._marks: dict[Origin, int] = {(head, epoch): offset for head, epoch, offset in self.marks}
        self._given: dict[Origin, dict[int, None]] = {}

    def saw(self, pub: msg.PubOpen) -> bool:
        """A publication that the application was given; False if there have been too many to go on."""
        origin, offset = (pub.head, pub.epoch), pub.offset
        given = self._given.setdefault(origin, {})
        if offset <= self._marks.get(origin, 0) or offset in given:
            self.duplicated += 1
        else:
            self.reordered += bool(given) and offset < next(reversed(given))
            given[offset] = None
        self.items += 1
        return self.items <= ITEMS_AT_MOST

    def against(self, due: Iterable[msg.ExpectedCount]) -> TallyResult | None:
        """The outcome of the due deliveries; None if more came than were due, since then the two counts differ."""
        lost = 0
        for head, epoch, through, count in due:
            had = sum(offset <= through for offset in self._given.get((head, epoch), ()))
            if had > count:
                return None
            lost += count - had
        return TallyResult(lost, self.duplicated, self.reordered)


class PublisherTally(DeliveryTally):
    """The deliveries of some publishers that move to another head, which have numbers of their own.

    Offsets begin again at the other head, so copies and order are judged by the publishers' numbers, losses by offsets
    as ever. `suppressed`: copies that the application was not given.
    """

    __slots__ = ("_above", "_numbers", "suppressed")

    def __init__(self, asked: msg.CountPublishers, since: Token, marks: Iterable[Token], version: int) -> None:
        super().__init__(asked.session, since, marks, version)
        self.suppressed = 0
        self._above = {(each.publisher, each.incarnation): each.last_seq for each in asked.publishers}
        self._numbers: dict[tuple[str, int], dict[int, None]] = {}

    def saw(self, pub: msg.PubOpen) -> bool:
        publisher, origin = (pub.publisher, pub.incarnation), (pub.head, pub.epoch)
        if pub.seq <= self._above.get(publisher, pub.seq):
            return True  # of another publisher, or published before
        numbers = self._numbers.setdefault(publisher, {})
        if pub.seq in numbers or pub.offset <= self._marks.get(origin, 0):
            self.duplicated += 1
        else:
            self.reordered += bool(numbers) and pub.seq < next(reversed(numbers))
            numbers[pub.seq] = self._given.setdefault(origin, {})[pub.offset] = None
        self.items += 1
        return self.items <= ITEMS_AT_MOST

    def passed_over(self, pub: msg.PubOpen) -> None:
        """A copy that the application was not given."""
        self.suppressed += pub.seq > self._above.get((pub.publisher, pub.incarnation), pub.seq)
