"""What happens to slices when consumers join, leave or have gone, whatever the policy: every slice has a consumer.

DPSLB 2014, 3.4: a new node is announced and gets slices; an idle one gives all of them, then leaves. The number of
slices bounds the number of consumers with any: the rest stay idle.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, Shares, SliceLoad, SliceMove, SlicePlan, owners

NO_GIVER = ""


def settle(
    consumers: Sequence[ConsumerLoad], unowned: Iterable[int] = (), newcomers: Collection[str] = ()
) -> SlicePlan:
    """Give slices without a consumer and those of consumers that leave to others, and its even share to each newcomer.

    A newcomer is a consumer without slices, or one of `newcomers`: a plan for it was cut short, as by the next one
    that joined, so that it has a part of its share. The slices that cost its givers most come first, so that what it
    takes relieves them. A slice of which no cost is known is taken to cost as much as the others do on average.
    """
    staying = sorted(c.name for c in consumers if c.stays)
    if not staying:
        return SlicePlan(reason="there is no consumer that stays")
    homeless = Shares.of(_assumed([ConsumerLoad(NO_GIVER, _unknown(unowned)), *consumers]))
    room = _Room(homeless, staying)
    for giver in (NO_GIVER, *sorted(c.name for c in consumers if c.is_leaving)):
        for number in sorted(homeless.slices[giver]):
            room.give(number, giver)
    idle = _greet(homeless, staying, newcomers)
    return SlicePlan(homeless.sessions(), "every slice has a consumer that stays", idle)


def _unknown(numbers: Iterable[int]) -> tuple[SliceLoad, ...]:
    return tuple(SliceLoad(number, is_known=False) for number in sorted(numbers))


def _assumed(consumers: Sequence[ConsumerLoad]) -> list[ConsumerLoad]:
    """Consumers with the average cost of a slice for those whose own is not known: they are not for nothing."""
    known = [each.cost for c in consumers for each in c.slices if each.is_known]
    average = sum(known) / len(known) if known else 0.0
    return [
        replace(c, slices=tuple(each if each.is_known else SliceLoad(each.number, average, 1.0) for each in c.slices))
        for c in consumers
    ]


def spread(consumers: Sequence[ConsumerLoad], numbers: Iterable[int], takers: Iterable[str]) -> SlicePlan:
    """Give these slices to these consumers, each to the one with the least cost then."""
    shares = Shares.of(consumers)
    holders = owners(consumers)
    room = _Room(shares, sorted(takers))
    for number in sorted(numbers):
        room.give(number, holders[number])
    return SlicePlan(shares.sessions(), "they were asked for")


class _Room:
    """Consumers that stay, the one with the least cost first, then with the fewest slices."""

    def __init__(self, shares: Shares, staying: Sequence[str]) -> None:
        self._shares = shares
        self._least = [self._entry(name) for name in staying]
        heapq.heapify(self._least)

    def _entry(self, name: str) -> tuple[float, int, str]:
        return self._shares.cost(name), len(self._shares.slices[name]), name

    def give(self, number: int, giver: str) -> None:
        """A slice goes to the first of them."""
        taker = self._least[0][2]
        self._shares.move(number, giver, taker)
        heapq.heapreplace(self._least, self._entry(taker))


def _greet(shares: Shares, staying: Sequence[str], known: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Newcomers get their even share; returns those for which no slice is left.

    Where the slices cannot be divided evenly, it is one more as long as that evens out a giver with two more. So
    numbers that differ by one at most still do when all have come.
    """
    total = sum(len(shares.slices[name]) for name in staying)
    even = max(total // len(staying), 1)
    newcomers = [name for name in staying if name in known or not shares.slices[name]]
    givers = _Givers(shares, [name for name in staying if len(shares.slices[name]) > even])
    for wanted in (even, even + 1):
        for newcomer in newcomers:
            while len(shares.slices[newcomer]) < wanted and givers.give(newcomer, keeps=wanted):
                pass
    return tuple(
        (name, f"there are {total} slices and {len(staying)} consumers")
        for name in newcomers
        if not shares.slices[name]
    )


class _Givers:
    """Consumers with slices, the one with most first, then the costliest; each gives its costliest slices first."""

    def __init__(self, shares: Shares, names: Sequence[str]) -> None:
        self._shares = shares
        self._names = sorted(names)
        self._most = [self._entry(rank) for rank in range(len(self._names))]
        heapq.heapify(self._most)
        self._left: dict[str, list[SliceLoad]] = {}

    def _entry(self, rank: int) -> tuple[int, float, int]:
        name = self._names[rank]
        return -len(self._shares.slices[name]), -self._shares.cost(name), -rank

    def give(self, newcomer: str, keeps: int) -> bool:
        """One slice to a newcomer; False if none has more than it keeps."""
        if not self._most or self._most[0][0] >= -keeps:
            return False
        rank = -self._most[0][2]
        giver = self._names[rank]
        if giver not in self._left:
            own = self._shares.slices[giver].values()
            self._left[giver] = sorted(own, key=lambda each: (each.cost, -each.number))
        self._shares.move(self._left[giver].pop().number, giver, newcomer)
        heapq.heapreplace(self._most, self._entry(rank))
        return True


def unowned(count: int, consumers: Iterable[ConsumerLoad]) -> tuple[int, ...]:
    """Slices of a group of `count` that none of these consumers has."""
    owned = {each.number for c in consumers for each in c.slices}
    return tuple(number for number in range(count) if number not in owned)


__all__ = ["NO_GIVER", "SliceMove", "settle", "spread", "unowned"]
