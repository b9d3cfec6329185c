"""What happens to slices when consumers join, leave or have gone, whatever the policy: every slice has a consumer.

DPSLB 2014, 3.4: a new node is announced and gets slices; an idle one gives all of them, then leaves. The number of
slices bounds the number of consumers with any: the rest stay idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, Shares, SliceLoad, SliceMove, SlicePlan

NO_GIVER = ""


def settle(consumers: Sequence[ConsumerLoad], unowned: Iterable[int] = ()) -> SlicePlan:
    """Give slices without a consumer and those of consumers that leave to others, and some to each newcomer.

    A newcomer, which is one without slices, gets as many as its even share; those that cost least to their giver come
    last, so that what it takes relieves the others.
    """
    staying = sorted(c.name for c in consumers if not c.is_leaving)
    if not staying:
        return SlicePlan(reason="there is no consumer that stays")
    shares = Shares.of(consumers)
    homeless = Shares({NO_GIVER: {number: SliceLoad(number) for number in sorted(unowned)}, **shares.slices})
    _adopt(homeless, staying)
    for leaving in sorted(c.name for c in consumers if c.is_leaving):
        for number in sorted(homeless.slices[leaving]):
            homeless.move(number, leaving, _least(homeless, staying))
    idle = _greet(homeless, staying)
    return SlicePlan(homeless.sessions(), "every slice has a consumer that stays", idle)


def _adopt(shares: Shares, staying: Sequence[str]) -> None:
    for number in sorted(shares.slices[NO_GIVER]):
        shares.move(number, NO_GIVER, _least(shares, staying))


def _least(shares: Shares, staying: Sequence[str]) -> str:
    return min(staying, key=lambda name: (shares.cost(name), len(shares.slices[name]), name))


def _greet(shares: Shares, staying: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Consumers without a slice get their even share; returns those for which none is left."""
    total = sum(len(shares.slices[name]) for name in staying)
    even = total // len(staying)
    idle: list[tuple[str, str]] = []
    for newcomer in [name for name in staying if not shares.slices[name]]:
        while len(shares.slices[newcomer]) < max(even, 1):
            giver = max(staying, key=lambda name: (len(shares.slices[name]), shares.cost(name), name))
            if len(shares.slices[giver]) < 2 or giver == newcomer:
                break
            costliest = max(shares.slices[giver].values(), key=lambda each: (each.cost, -each.number))
            shares.move(costliest.number, giver, newcomer)
        if not shares.slices[newcomer]:
            idle.append((newcomer, f"there are {total} slices and {len(staying)} consumers"))
    return tuple(idle)


def unowned(count: int, consumers: Iterable[ConsumerLoad]) -> tuple[int, ...]:
    """Slices of a group of `count` that none of these consumers has."""
    owned = {each.number for c in consumers for each in c.slices}
    return tuple(number for number in range(count) if number not in owned)


__all__ = ["NO_GIVER", "SliceMove", "settle", "unowned"]
