"""Faults of the network between two processes: broken connections, partitions and slow connections."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterable
from typing import Protocol

from plimsoll.simulator.engine.network import SimulatedConnection, SimulatedNetwork


class ConnectionFaultHost(Protocol):
    """The injector, as faults of connections use it. `rng` changes from one fault to the next."""

    network: SimulatedNetwork
    spared: frozenset[str]
    rng: random.Random

    def end_later(self, text: str, end: Callable[[], None]) -> bool: ...


class ConnectionFaults:
    """Each fault returns whether it has found a victim."""

    def __init__(self, host: ConnectionFaultHost) -> None:
        self.host = host

    def candidates(self) -> list[SimulatedConnection]:
        return [
            connection
            for connection in self.host.network.connections()
            if connection.host is not None and not {connection.dialler.name, connection.host.name} & self.host.spared
        ]

    def reconnect(self) -> bool:
        found = self.candidates()
        if found:
            connection = self.host.rng.choice(found)
            self.host.network.trace_line(f"! {connection} breaks")
            self.host.network.reconnect(connection)
        return bool(found)

    def storm(self, clients: Iterable[str]) -> bool:
        """All these clients lose their connections at once."""
        self.host.network.trace_line("! all connections of clients break")
        names = set(clients)
        for connection in self.candidates():
            if connection.dialler.name in names:
                self.host.network.reconnect(connection)
        return True

    def _pair(self) -> tuple[str, str] | None:
        found = self.candidates()
        if not found:
            return None
        connection = self.host.rng.choice(found)
        assert connection.host is not None  # noqa: S101  # candidates() has only those that are up
        ends = [connection.dialler.name, connection.host.name]
        self.host.rng.shuffle(ends)
        return ends[0], ends[1]

    def wall(self) -> bool:
        pair = self._pair()
        return pair is not None and self.partition([pair, pair[::-1]])

    def one_way(self) -> bool:
        pair = self._pair()
        return pair is not None and self.partition([pair])

    def partition(self, ways: list[tuple[str, str]]) -> bool:
        """Partition two processes in these directions; half of the time their connections break before it ends."""
        (one, other), is_both = ways[0], len(ways) > 1
        network = self.host.network
        breaks = self.host.rng.random() < 0.5
        for way in ways:
            network.partition(*way)

        def end() -> None:
            if breaks:
                for connection in self.candidates():
                    if connection.host and {connection.dialler.name, connection.host.name} == {one, other}:
                        network.reconnect(connection)
            for way in ways:
                network.rejoin(*way)

        text = f"between {one} and {other}" if is_both else f"from {one} to {other}"
        return self.host.end_later(f"partition {text}", end)

    def slow(self) -> bool:
        network, rng = self.host.network, self.host.rng
        pair = self._pair()
        if pair is None or frozenset(pair) in network.pair_qualities:
            return False
        ends = frozenset(pair)
        slow = dataclasses.replace(
            network.quality,
            delay_seconds=rng.uniform(0.02, 0.5),
            jitter_seconds=rng.uniform(0.0, 0.3),
            bytes_per_second=rng.choice([2_000.0, 20_000.0, float("inf")]),
        )
        network.pair_qualities[ends] = slow

        def end() -> None:
            network.pair_qualities.pop(ends, None)

        return self.host.end_later(f"slow network between {pair[0]} and {pair[1]}", end)
