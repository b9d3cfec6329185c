"""Finds the counts of a topic by the topic itself, for some short topics; the others need its hash."""

from __future__ import annotations

from typing import Final, TypeVar

from plimsoll.core.predicates import Value

REMEMBERED_TOPICS: Final = 4096
REMEMBERED_CHARACTERS: Final = 64
"""Of longer topics the hash is computed each time, rather than to keep them."""

Counts = TypeVar("Counts")


def remember(remembered: dict[Value, Counts], topic: Value, counts: Counts) -> Counts:
    """Remember the counts of a topic, if it is short; all others are forgotten once they are too many.

    `True == 1`, and they are two topics: booleans are never remembered.
    """
    if not isinstance(topic, bool) and (not isinstance(topic, str) or len(topic) <= REMEMBERED_CHARACTERS):
        if len(remembered) >= REMEMBERED_TOPICS:
            remembered.clear()
        remembered[topic] = counts
    return counts
