"""Faults of the network between two processes: connections that break, ways that hold what is sent, long distances."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterable
from typing import Protocol

from plimsoll.simulator.engine.network import SimulatedConnection, SimulatedNetwork


class ConnectionFaultHost(Protocol):
    """The injector, to a fault of a connection. `draw` changes from one fault to the next."""

    network: SimulatedNetwork
    spared: frozenset[str]
    draw: random.Random

    def lasting(self, text: str, end: Callable[[], None]) -> bool: ...


class ConnectionFaults:
    """Each returns whether it has found a victim."""

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
            connection = self.host.draw.choice(found)
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
        connection = self.host.draw.choice(found)
        assert connection.host is not None  # noqa: S101 - chosen so
        ends = [connection.dialler.name, connection.host.name]
        self.host.draw.shuffle(ends)
        return ends[0], ends[1]

    def wall(self) -> bool:
        pair = self._pair()
        return pair is not None and self.wall_off(f"no way between {pair[0]} and {pair[1]}", [pair, pair[::-1]])

    def one_way(self) -> bool:
        pair = self._pair()
        return pair is not None and self.wall_off(f"no way from {pair[0]} to {pair[1]}", [pair])

    def wall_off(self, text: str, ways: list[tuple[str, str]]) -> bool:
        """Hold what goes these ways; when it ends, the connections may have broken meanwhile."""
        network = self.host.network
        breaks = self.host.draw.random() < 0.5
        for way in ways:
            network.wall(*way)

        def end() -> None:
            if breaks:
                for connection in self.candidates():
                    if connection.host and {connection.dialler.name, connection.host.name} == set(ways[0]):
                        network.reconnect(connection)
            for way in ways:
                network.unwall(*way)

        return self.host.lasting(text, end)

    def slow(self) -> bool:
        network, draw = self.host.network, self.host.draw
        pair = self._pair()
        if pair is None or frozenset(pair) in network.weathers:
            return False
        ends = frozenset(pair)
        slow = dataclasses.replace(
            network.weather,
            delay_seconds=draw.uniform(0.02, 0.5),
            jitter_seconds=draw.uniform(0.0, 0.3),
            bytes_per_second=draw.choice([2_000.0, 20_000.0, float("inf")]),
        )
        network.weathers[ends] = slow

        def end() -> None:
            network.weathers.pop(ends, None)

        return self.host.lasting(f"{pair[0]} and {pair[1]} are far apart", end)
