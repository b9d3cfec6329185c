"""Publishers and subscribers of a World from statuses alone: made up, so that the measured loads come out.

A cluster has one publisher, whose publications differ in one number. Each subscriber of an edge asks for an interval
of it, as long as the share of the publications that one subscriber of that edge is delivered on average; the intervals
of an edge together are the share that the edge takes in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.core.protocol.messages.delivery_prefix import PREFIX_BYTES
from plimsoll.mediator.world.surveyed_traffic import Entry, WorldTraffic, rate_text

CONTENTS = 1000
"""Publications of a cluster: the finest share of them that a subscriber can ask for is one of these."""
STEP = 617
"""Shares no divisor with CONTENTS: publications that follow each other are far apart."""
ENVELOPE_BYTES = 120
"""What a publication takes on a link beside its payload, about."""
NOTE = (
    "assumed: publications and subscriptions are made up, so that rates, deliveries and subscriptions of each edge are "
    "as measured: all subscribers of an edge are alike, and what subscribers of several edges have in common is by "
    "chance. A policy that chooses subscribers by what they match has nothing to choose by"
)


@dataclass(frozen=True, slots=True)
class EdgeRates:
    """What the status of an edge says, as amounts a second."""

    name: str
    cluster: str
    subscribers: int
    subscriptions: int
    publications: float
    deliveries: float
    bytes: float


def assumed_traffic(heads: Mapping[str, float], edges: Sequence[EdgeRates]) -> WorldTraffic:
    """The traffic of clusters whose heads accept `heads` publications a second, by cluster."""
    publishers = [_publisher(name, rate, edges) for name, rate in sorted(heads.items()) if rate > 0]
    subscribers: list[Entry] = []
    notes = [
        f"measured: {rate:g} publications per second at the head of {name}" for name, rate in sorted(heads.items())
    ]
    for edge in edges:
        notes.append(
            f"measured: {edge.name} serves {edge.subscribers:,} subscribers with {edge.subscriptions:,} subscriptions, "
            f"takes in {edge.publications:g} publications and delivers {edge.deliveries:g} per second"
        )
        subscribers += _subscribers(edge, heads[edge.cluster])
    return WorldTraffic(publishers, subscribers, [*notes, NOTE])


def _publisher(cluster: str, rate: float, edges: Sequence[EdgeRates]) -> Entry:
    delivered = sum(each.deliveries for each in edges if each.cluster == cluster)
    size = sum(each.bytes for each in edges if each.cluster == cluster) / delivered if delivered else 0.0
    return {
        "name": f"all-of-{cluster}"[:63].rstrip("-"), "cluster": cluster, "rates": [{"perSecond": rate_text(rate)}],
        "publications": [
            f'{{"cluster": "{cluster}", "draw": {number * STEP % CONTENTS / CONTENTS}}}' for number in range(CONTENTS)
        ],
        "payload": max(0, round(size - PREFIX_BYTES - ENVELOPE_BYTES)),
    }  # fmt: skip


def _subscribers(edge: EdgeRates, rate: float) -> Iterator[Entry]:
    if not edge.subscribers:
        return
    taken = min(1.0, edge.publications / rate) if rate else 0.0
    share = min(taken, edge.deliveries / edge.subscribers / rate) if rate else 0.0
    room = (taken - share) / max(edge.subscribers - 1, 1)
    for number in range(edge.subscribers):
        count = (
            edge.subscriptions * (number + 1)
        ) // edge.subscribers - edge.subscriptions * number // edge.subscribers
        low = number * room
        yield {
            "name": f"{edge.name}-{number + 1}", "cluster": edge.cluster, "edge": edge.name,
            "subscriptions": list(_pieces(edge.cluster, low, share, max(1, count))),
        }  # fmt: skip


def _pieces(cluster: str, low: float, share: float, count: int) -> Iterator[str]:
    for number in range(count):
        begin, end = low + share * number / count, low + share * (number + 1) / count
        yield f"[cluster,=,'{cluster}'],[draw,>=,{begin:.6f}],[draw,<,{end:.6f}]"


def measured_edge(item: Mapping[str, Any]) -> EdgeRates:
    """An edge from its EdgeBroker, whose status has been checked."""
    status, load = item["status"], item["status"]["load"]
    return EdgeRates(
        item["metadata"]["name"], item["spec"]["clusterRef"]["name"], int(status.get("subscribers", 0)),
        int(load.get("subscriptions", 0)), float(load.get("publicationsPerSecond", 0)),
        float(load.get("deliveriesPerSecond", 0)), float(load.get("outputBytesPerSecond", 0)),
    )  # fmt: skip
