"""What happens to slices when consumers join, leave or have gone, whatever the policy: every slice has a consumer.

DPSLB 2014, 3.4: a new node is announced and gets slices; an idle one gives all of them, then leaves. The number of
slices bounds the number of consumers with any: the rest stay idle.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, Shares, SliceLoad, SliceMove, SlicePlan, owners

NO_GIVER = ""


def settle(consumers: Sequence[ConsumerLoad], unowned: Iterable[int] = ()) -> SlicePlan:
    """Give slices without a consumer and those of consumers that leave to others, and some to each newcomer.

    A newcomer, which is one without slices, gets as many as its even share; those that cost least to their giver come
    last, so that what it takes relieves the others.
    """
    staying = sorted(c.name for c in consumers if c.stays)
    if not staying:
        return SlicePlan(reason="there is no consumer that stays")
    shares = Shares.of(consumers)
    homeless = Shares({NO_GIVER: {number: SliceLoad(number) for number in sorted(unowned)}, **shares.slices})
    room = _Room(homeless, staying)
    for giver in (NO_GIVER, *sorted(c.name for c in consumers if c.is_leaving)):
        for number in sorted(homeless.slices[giver]):
            room.give(number, giver)
    idle = _greet(homeless, staying)
    return SlicePlan(homeless.sessions(), "every slice has a consumer that stays", idle)


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


def _greet(shares: Shares, staying: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Consumers without a slice get their even share; returns those for which none is left."""
    total = sum(len(shares.slices[name]) for name in staying)
    wanted = max(total // len(staying), 1)
    newcomers = [name for name in staying if not shares.slices[name]]
    givers = _Givers(shares, [name for name in staying if shares.slices[name]])
    for newcomer in newcomers:
        while len(shares.slices[newcomer]) < wanted and givers.give(newcomer):
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

    def give(self, newcomer: str) -> bool:
        """One slice to a newcomer; False if none has two."""
        if not self._most or self._most[0][0] > -2:
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
