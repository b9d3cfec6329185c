"""The shuffle of BAD by the letter: all brokers begin empty, the heaviest subscriber first goes to the lowest load.

`policies/shuffle` is another algorithm, which leaves most subscribers where they are. Subscribers that may not move are
where they are from the beginning, and a broker that takes no one keeps its own (ours). Of brokers with equal loads the
subscriber's own comes first (ours), since each move costs a hand-over.
"""

from __future__ import annotations

import heapq

from plimsoll.core.policies.bad.dynamic_moves import heaviest_first
from plimsoll.core.policies.bad.fleet import BadBroker, BadFleet, BadSubscriber
from plimsoll.core.policies.model.plan import PlanMove
from plimsoll.core.policies.rebalancer import Step


class _FilledBroker:
    """A broker while it is filled: counts and F change in place."""

    __slots__ = ("broker", "counts", "load")

    def __init__(self, broker: BadBroker, fixed: list[BadSubscriber]) -> None:
        self.broker = broker
        self.counts: set[str] = set()
        self.load = 0.0
        for subscriber in fixed:
            self.add(subscriber)

    def add(self, subscriber: BadSubscriber) -> None:
        new = sum(self.broker.rates[text] for text in subscriber.subscriptions if text not in self.counts)
        self.counts.update(subscriber.subscriptions)
        self.load += (new + subscriber.load) / self.broker.capacity


def greedy_shuffle(fleet: BadFleet) -> Step:
    """All moves of a shuffle, as one step: it is carried out whole or not at all."""
    home = {name: broker.name for broker in fleet.brokers.values() for name in broker.subscribers}
    everybody = heaviest_first(one for broker in fleet.brokers.values() for one in broker.subscribers.values())
    filled = {
        name: _FilledBroker(broker, [one for one in heaviest_first(broker.subscribers.values()) if one.fixed])
        for name, broker in fleet.brokers.items()
    }
    lowest = [(filled[name].load, name) for name in sorted(filled) if filled[name].broker.takes]
    heapq.heapify(lowest)
    moves: list[PlanMove] = []
    for subscriber in (one for one in everybody if not one.fixed):
        own = filled[home[subscriber.name]]
        chosen = _lowest(lowest, filled)
        if chosen is None or own.load <= chosen.load:
            chosen = own
        before = chosen.load
        chosen.add(subscriber)
        if chosen.broker.takes:
            heapq.heappush(lowest, (chosen.load, chosen.broker.name))
        if chosen is not own:
            moves.append(_move(subscriber, own.broker.name, chosen.broker.name, before, chosen.load))
    return Step(tuple(moves))


def _lowest(lowest: list[tuple[float, str]], filled: dict[str, _FilledBroker]) -> _FilledBroker | None:
    """The broker of the lowest load. Entries of earlier loads are dropped on the way."""
    while lowest and lowest[0][0] != filled[lowest[0][1]].load:
        heapq.heappop(lowest)
    return filled[lowest[0][1]] if lowest else None


def _move(subscriber: BadSubscriber, source: str, target: str, before: float, after: float) -> PlanMove:
    why = f"shuffled, u = {subscriber.load:.4g}: {target} has least by then, F = {before:.4g}, and comes to {after:.4g}"
    return PlanMove(subscriber.key, (subscriber.name,), source, target, why)
