"""Resident memory of an edge by subscribers and subscriptions: `python -m bench.broker.edge_memory`.

A head and an edge are started as processes for each number of subscribers; the queueing model takes what comes out
(`simulator/queueing/memory.py`). Two lines through the measured points give the bytes of an edge, of a subscriber and
of a subscription.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression

from bench.broker.memory import MIB, brokers, resident_bytes

from plimsoll import client

COUNTS = (250, 500, 1_000, 2_000)
DEPTHS = (1, 5)
PER_CONNECTION = 250
JOIN_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Point:
    """One fleet: `subscribers` with `depth` subscriptions each, over connections of 250."""

    subscribers: int
    depth: int
    edge_bytes: int


def measure(subscribers: int, depth: int, memory: int) -> Point:
    """The resident memory of an edge once all have joined."""
    with brokers(memory) as (address, _, edge), contextlib.ExitStack() as stack:
        for first in range(0, subscribers, PER_CONNECTION):
            connection = stack.enter_context(client.Connection(address, security="plain", name=f"c{first}"))
            for number in range(first, min(first + PER_CONNECTION, subscribers)):
                subscriber = stack.enter_context(client.Subscriber(connection, name=f"s{number}"))
                asked = [f"[symbol,=,'S{number}-{each}'],[high,>,{each}.5]" for each in range(depth)]
                for text in asked[:-1]:
                    subscriber.subscribe(text, wait=False)
                subscriber.subscribe(asked[-1], timeout=JOIN_SECONDS)
        return Point(subscribers, depth, resident_bytes(edge))


def line(points: Sequence[Point]) -> tuple[float, float]:
    """A line through the points: the bytes of a subscriber, and those of an edge without any."""
    slope, start = linear_regression([each.subscribers for each in points], [each.edge_bytes for each in points])
    return slope, start


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table of docs/queueing-model.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.broker.edge_memory", description=__doc__)
    parser.add_argument("--memory-mib", type=int, default=512, help="limit of the edge's profile (default %(default)s)")
    given = parser.parse_args(argv)
    print("| subscribers | subscriptions each | resident |")
    print("|---|---|---|")
    lines: dict[int, tuple[float, float]] = {}
    for depth in DEPTHS:
        points = [measure(count, depth, given.memory_mib * MIB) for count in COUNTS]
        for each in points:
            print(f"| {each.subscribers:,} | {each.depth} | {each.edge_bytes / MIB:.1f} MiB |", flush=True)
        lines[depth] = line(points)
    one, many = DEPTHS
    (alone, empty), (several, _) = lines[one], lines[many]
    more = (several - alone) / (many - one)
    print(f"an edge {empty / MIB:.1f} MiB; a subscriber {alone - more:,.0f} bytes, and each subscription {more:,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
