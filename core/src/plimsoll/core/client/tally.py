"""What a subscriber is given while it moves, counted beside what gives it: so a hand-over can be held against its word.

Laws of the place:
- It sees what the application is given, after all has been decided, and asks nobody who decided it.
- It counts from one place in the stream (a token and watermarks) to another (an offset per origin), and says nothing of
  anything else. What has been due between the two the head says, from its log.
- What cannot be counted is not guessed: then there is no answer. A list of subscriptions that has changed meanwhile, an
  attachment that was lost, and more than `ITEMS_AT_MOST` deliveries end it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from plimsoll.core import records as r
from plimsoll.core.wire import Token

Origin = tuple[str, int]

ITEMS_AT_MOST = 10_000
"""So many deliveries of one move are remembered."""


class Found(NamedTuple):
    """What came of the deliveries that were due. `lost`: not given to the application, whether it was told or not."""

    lost: int
    duplicated: int
    reordered: int


class Tally:
    """The deliveries of one move, by origin. `version`: of the list that they answer to."""

    __slots__ = ("_given", "_marks", "duplicated", "items", "marks", "reordered", "session", "since", "version")

    def __init__(self, session: str, since: Token, marks: Iterable[Token], version: int) -> None:
        self.session, self.since, self.version = session, since, version
        self.marks = list(marks)
        self.items = self.duplicated = self.reordered = 0
        self._marks: dict[Origin, int] = {(head, epoch): offset for head, epoch, offset in self.marks}
        self._given: dict[Origin, dict[int, None]] = {}

    def saw(self, pub: r.PubOpen) -> bool:
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

    def against(self, due: Iterable[r.Due]) -> Found | None:
        """What came of what was due; None if there has been more than that: then the two have not counted the same."""
        lost = 0
        for head, epoch, through, count in due:
            had = sum(offset <= through for offset in self._given.get((head, epoch), ()))
            if had > count:
                return None
            lost += count - had
        return Found(lost, self.duplicated, self.reordered)
