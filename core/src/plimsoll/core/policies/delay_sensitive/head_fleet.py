"""The heads that plans of publishers are made in, and what a move changes at each of them. Frozen values.

Between two heads there is one path. A publisher that goes along it takes its publications to the head at the other end;
what subscribers on this side ask for comes back over every link of the path. So a publisher all of whose subscribers
are at its own head relieves that head of nothing, and one whose subscribers are at the end of the path of everything.
Where a report does not say who takes what, the less favourable is taken. By the letter of the text a publisher takes
with it all that it brings a head.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from plimsoll.core.policies.model.load import BrokerLoad
from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad
from plimsoll.core.policies.rebalancer import Step

RECORD_BYTES: Final = 56
"""What a link carries of a publication beside its body: its position, its identity, its part of a frame."""

Rows = Sequence[PublisherTopicLoad]


@dataclass(frozen=True, slots=True)
class TrafficChange:
    """What comes to a head and what leaves it more than before, in bytes per second."""

    bytes_in: float
    bytes_out: float


@dataclass(frozen=True)
class HeadFleet:
    """`heads`: the load of each, reported or predicted; whom it serves are publishers. `neighbors`: linked to each.

    `publishers`: by name, those at `source`, the head that they may leave. `takes`: heads that may take some. `fixed`:
    publishers that may not move, each with the reason.
    """

    source: str
    heads: Mapping[str, BrokerLoad]
    neighbors: Mapping[str, frozenset[str]]
    publishers: Mapping[str, Rows]
    takes: frozenset[str]
    fixed: Mapping[str, str] = field(default_factory=dict)
    is_letter: bool = False

    @property
    def loads(self) -> tuple[BrokerLoad, ...]:
        """What each head would report."""
        return tuple(load for _, load in sorted(self.heads.items()))

    @property
    def rows(self) -> Iterable[PublisherTopicLoad]:
        """All rows of the publishers that are at the source."""
        return (row for rows in self.publishers.values() for row in rows)

    def after(self, step: Step) -> HeadFleet:
        """The fleet after publishers have gone."""
        heads, publishers = dict(self.heads), dict(self.publishers)
        for move in step.moves:
            way = path(self.neighbors, self.source, move.target)
            for name in move.subscribers:
                for head, change in self._changes(publishers.pop(name), way):
                    if head in heads:
                        heads[head] = _changed(heads[head], change)
            heads[self.source] = _serving(heads[self.source], -len(move.subscribers))
            heads[move.target] = _serving(heads[move.target], len(move.subscribers))
        return replace(self, heads=heads, publishers=publishers)

    def _changes(self, rows: Rows, way: Sequence[str]) -> Iterable[tuple[str, TrafficChange]]:
        for row in rows:
            own = _by_letter(row, way) if self.is_letter else _by_path(row, way, len(self.neighbors[self.source]))
            yield from own.items()


def path(neighbors: Mapping[str, frozenset[str]], start: str, end: str) -> tuple[str, ...]:
    """The heads from one to another, both included; empty if no link leads there."""
    ways: list[tuple[str, ...]] = [(start,)]
    seen = {start}
    while ways:
        way = ways.pop()
        if way[-1] == end:
            return way
        ahead = sorted(neighbors.get(way[-1], frozenset()) - seen)
        seen.update(ahead)
        ways += [(*way, head) for head in ahead]
    return ()


def _by_letter(row: PublisherTopicLoad, way: Sequence[str]) -> dict[str, TrafficChange]:
    bytes_in = _bytes_in(row)
    bytes_out = bytes_in * row.output_bytes / row.input_bytes if row.input_bytes else 0.0
    return {way[0]: TrafficChange(-bytes_in, -bytes_out), way[-1]: TrafficChange(bytes_in, bytes_out)}


def _by_path(row: PublisherTopicLoad, way: Sequence[str], links: int) -> dict[str, TrafficChange]:
    """`links`: how many neighbours the source has."""
    size = _bytes_in(row)
    ahead, back = _share_ahead(row, way[1], links), _share_back(row, way[1])
    either = min(1.0, ahead + back)  # subscribers ahead may be beside the way, and then it comes back for them
    found = {way[0]: TrafficChange(-size * (1.0 - back), -size * ahead)}
    for number, head in enumerate(way[1:], 1):
        known, returned = (ahead, back) if number == 1 else (0.0, either)
        needed = 1.0 if head == way[-1] else either
        found[head] = TrafficChange(size * (needed - known), size * returned)
    return found


def _bytes_in(row: PublisherTopicLoad) -> float:
    return row.input_bytes + RECORD_BYTES * row.input_rate


def _share_ahead(row: PublisherTopicLoad, first: str, links: int) -> float:
    """The share of its publications that the link to a neighbour takes now; 0 if that is not known."""
    if row.toward:
        return _share(row.remote_rate, row) if row.toward == first else 0.0
    is_every = row.input_bytes > 0.0 and row.remote_bytes >= (links - 0.01) * row.input_bytes
    return _share(row.remote_rate, row) if is_every else 0.0


def _share_back(row: PublisherTopicLoad, first: str) -> float:
    """The share that subscribers on this side of the link to a neighbour ask for, at most."""
    behind_others = 0.0 if row.toward == first else row.remote_rate
    return _share(max(row.local_rate, behind_others), row)


def _share(rate: float, row: PublisherTopicLoad) -> float:
    return min(1.0, rate / row.input_rate) if row.input_rate else 0.0


def _serving(load: BrokerLoad, more: int) -> BrokerLoad:
    return replace(load, subscribers=max(0, load.subscribers + more))


def _changed(load: BrokerLoad, change: TrafficChange) -> BrokerLoad:
    into = max(0.0, load.input_bytes_per_second + change.bytes_in)
    out = max(0.0, load.output_bytes_per_second + change.bytes_out)
    downlink = into / load.downlink_bandwidth if load.downlink_bandwidth else load.downlink_utilization
    return replace(
        load,
        input_bytes_per_second=into,
        input_utilization=downlink,
        downlink_utilization=downlink,
        output_bytes_per_second=out,
        output_utilization=out / load.bandwidth if load.bandwidth else load.output_utilization,
    )
