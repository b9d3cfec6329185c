"""What sessions have moved in the crisis world: how many subscribers of which topic, from where to where, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from plimsoll.core.protocol.topic_units import hash_of_unit, topic_hash
from plimsoll.core.session import Session
from plimsoll.demo import crisis_tables as tables

NUMBERS: Final = {topic_hash(tables.topic_name(number)): number for number in tables.TOPICS}
"""Rows of Table VI by the hash of the topic."""


@dataclass(frozen=True)
class TopicMove:
    """A session that has moved some: when it began and ended, and what went from where to where.

    `topics`: how many subscribers of each, by row of Table VI.
    """

    at: float
    ended_at: float
    source: str
    target: str
    topics: Mapping[int, int]

    def text(self) -> str:
        """Its moves, in words."""
        return "; ".join(
            f"{count} of topic {number} from {self.source} to {self.target}" for number, count in self.topics.items()
        )


def topic_moves(sessions: Iterable[Session], now: float) -> list[TopicMove]:
    """The sessions of pairs that have moved some, in their order. A parent has no members of its own.

    `now`: when a session that has not ended is taken to end.
    """
    found = []
    for one in sessions:
        if one.is_parent or one.plan is None or not one.counts()["moved"]:
            continue
        ends = one.ended_at if one.ended_at is not None else now
        for pair in one.plan.pairs:
            topics = Counter(topic_number(member) for member in pair.members)
            found.append(TopicMove(one.started_at or 0.0, ends, pair.source, pair.target, dict(topics)))
    return sorted(found, key=lambda each: (each.at, each.source, each.target))


def topic_number(subscriber: str) -> int:
    """The row of Table VI that a subscriber, or a unit of one, asks for."""
    hashed = hash_of_unit(subscriber)
    return NUMBERS[hashed] if hashed is not None else int(subscriber[1:].partition("-")[0])
