"""The lag of slices: how many of their items a head's log has behind their last acknowledgement, held or not.

For each slice the positions of its items are kept, as long as the log keeps the items: eight bytes each. A publication
is noted when it is logged. A head that starts with a log on a disk reads that first, a bounded part in each round, and
what is logged meanwhile is read after it; until then the lag counts what has been read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final, Protocol

from plimsoll.core.head.log import Log
from plimsoll.core.head.ownership import ReplayStart, Since
from plimsoll.core.policies.consumer_groups.assignment_functions import SliceStamper
from plimsoll.core.predicates import Attributes, Subscription
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Scalar, Token

READ_ENTRIES: Final = 500
"""Entries of an earlier log that are read in one round: about a millisecond."""

DROPPED_AT_LEAST: Final = 64
"""Positions that the log no longer has are dropped once there are this many, and they are half of all."""


class ReplayStarts(Protocol):
    """Where one with a token goes on in the log: `EpochContinuation`."""

    def replay_start(self, token: Token | None, since: Since, /) -> ReplayStart: ...


class LagHost(Protocol):
    """What lags need of their head."""

    name: str
    epoch: int
    log: Log

    @property
    def continuation(self) -> ReplayStarts: ...


class SliceIndex:
    """The items of one group in the log, by slice. `read_to`: the last position that was looked at."""

    def __init__(self, stamper: SliceStamper, count: int, read_to: int) -> None:
        self.stamper, self.attribute, self.read_to = stamper, stamper.attribute, read_to
        self._positions = [array("Q") for _ in range(count)]

    def note(self, position: int, number: Scalar | None) -> None:
        """Note what is logged at a position: an item of a slice, or of none."""
        self.read_to = position
        if type(number) is int and 0 <= number < len(self._positions):
            self._positions[number].append(position)

    def read(self, log: Log) -> None:
        """Read a part of what has been logged and was not noted."""
        for position, entry in islice(log.after(self.read_to), READ_ENTRIES):
            self.read_to = position - 1
            message = None if entry.is_gap else msg.to_edge.decode(entry.record)
            attributes = message.body.attributes if isinstance(message, msg.PubOpen) else {}
            number = attributes.get(self.stamper.attribute)
            self.note(position, number if number is not None and self.stamper.asks_for(attributes) else None)
        self.read_to = max(self.read_to, log.first - 1)

    def behind(self, number: int, position: int, first: int) -> int:
        """Items of a slice after a position. `first`: the oldest position that the log has."""
        found = self._positions[number]
        gone = bisect_left(found, first)
        if gone >= DROPPED_AT_LEAST and 2 * gone >= len(found):
            del found[:gone]
            gone = 0
        return len(found) - max(gone, bisect_right(found, position))


class GroupLags:
    """The lags of a head's groups. `by_group`: their indexes."""

    def __init__(self, host: LagHost) -> None:
        self.host = host
        self.by_group: dict[str, SliceIndex] = {}

    def begin(self, group: str, stamper: SliceStamper, count: int, *, from_start: bool) -> None:
        """Count for a group. `from_start`: its items may be in the log already."""
        log = self.host.log
        self.by_group[group] = SliceIndex(stamper, count, log.first - 1 if from_start else log.last)

    def end(self, group: str) -> None:
        del self.by_group[group]

    def note(self, attributes: Attributes, position: int, slices: Mapping[str, int]) -> None:
        """A publication has been logged. `slices`: those that its head knows, by stamp.

        Of others' it has the stamps alone: a filter is looked at once for all groups that ask for the same. An index
        for which it is not the next reads it from the log later.
        """
        asked: dict[Subscription | None, bool] = {}
        before = position - 1
        for index in self.by_group.values():
            if index.read_to != before:
                continue
            number: Scalar | None = slices.get(index.attribute)
            if number is None and (number := attributes.get(index.attribute)) is not None:
                stamper = index.stamper
                if stamper.filter not in asked:
                    asked[stamper.filter] = stamper.asks_for(attributes)
                number = number if asked[stamper.filter] else None
            if number is None:
                index.read_to = position
            else:
                index.note(position, number)

    @property
    def is_reading(self) -> bool:
        """Whether some of the log has not been looked at."""
        return any(index.read_to < self.host.log.last for index in self.by_group.values())

    def has_read(self, group: str) -> bool:
        """Whether all of the log counts for the lags of this group."""
        return self.by_group[group].read_to >= self.host.log.last

    def read(self) -> None:
        """Go on reading what was logged and not noted."""
        for index in self.by_group.values():
            if index.read_to < self.host.log.last:
                index.read(self.host.log)

    def of(self, group: str, tokens: Iterable[Token | None]) -> list[int]:
        """The lag of each slice whose last acknowledgement is this token; 0 of one that no consumer has ever had.

        Such a slice begins at the end of the log when its first consumer comes.
        """
        index, first = self.by_group[group], self.host.log.first
        return [
            0 if token is None else index.behind(number, self._position(token), first)
            for number, token in enumerate(tokens)
        ]

    def _position(self, token: Token) -> int:
        if token[0] == self.host.name and token[1] == self.host.epoch:  # as nearly all are
            return token[2]
        return self.host.continuation.replay_start(token, (0, 0)).start
