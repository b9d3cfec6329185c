"""Metrics of publishers that move between heads, at the head that they leave and at the one that they come to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from plimsoll.core.head.machine import Head

PREFIX: Final = "plimsoll_broker_"
OUTCOMES: Final = ("moved", "stayed", "away", "gone", "returned", "unknown")


@dataclass(frozen=True)
class PublisherMoveCounts:
    """`moving`: publishers that are to leave, and are not decided; `arriving`: those on standby here; `sent_elsewhere`:
    new ones that a cordoned head did not take."""

    moving: int = 0
    arriving: int = 0
    sent_elsewhere: int = 0
    is_cordoned: bool = False
    outcomes: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, head: Head) -> PublisherMoveCounts:
        """The counts of a head at this moment."""
        moves = head.publisher_moves
        return cls(
            moves.under_way, len(head.publisher_arrivals.standbys), head.counters["publishers_sent_elsewhere"],
            head.head_cordon.is_cordoned, dict(sorted(moves.outcomes.items())),
        )  # fmt: skip


NO_MOVES: Final = PublisherMoveCounts()


def publisher_metrics(counts: PublisherMoveCounts) -> Iterator[Metric]:
    """All of them, at every broker; an edge has none of it."""
    yield _gauge("moving_publishers", "Publishers that are to move to another head and are not there.", counts.moving)
    yield _gauge("arriving_publishers", "Publishers on standby for their move to this head.", counts.arriving)
    yield _gauge("cordoned", "Whether a head takes no new publishers: 1 or 0.", counts.is_cordoned)
    ended = CounterMetricFamily(
        f"{PREFIX}publisher_moves",
        "Moves of publishers from this head that have ended, by outcome.",
        labels=("outcome",),
    )
    for outcome in OUTCOMES:
        ended.add_metric((outcome,), counts.outcomes.get(outcome, 0))
    yield ended
    text = "New publishers that a cordoned head has sent to another one."
    yield CounterMetricFamily(f"{PREFIX}publishers_sent_elsewhere", text, value=counts.sent_elsewhere)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(PREFIX + name, text, value=value)
