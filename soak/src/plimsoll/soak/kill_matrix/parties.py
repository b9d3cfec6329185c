"""The processes of a cell, by the name that the cell gives them, and the signals that are sent to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from plimsoll.core.verify import Observation
from plimsoll.core.verify import observations as seen
from plimsoll.soak.harness.clients import SoakClients
from plimsoll.soak.harness.fleet_harness import FleetHarness
from plimsoll.soak.harness.mediator_worker import SoakMediatorProcess

_CLIENT_PROCESSES: Final = {"first": 0, "second": 1}


class CellParties:
    """`mediator`, the client processes `first` and `second`, and `brokers` by role. `ends`: of killed heads."""

    def __init__(
        self, harness: FleetHarness, clients: SoakClients, mediator: SoakMediatorProcess, brokers: Mapping[str, str]
    ) -> None:
        self._harness, self._clients, self._mediator, self._brokers = harness, clients, mediator, brokers
        self.ends: list[Observation] = []

    def kill(self, process: str) -> None:
        if process in ("head", "far head"):
            broker = self._brokers[process]
            self.ends.append(seen.HeadEndObserved(broker, self._harness.epoch_of(broker), time.monotonic()))
        self._signal(process, self._mediator.kill, self._clients.kill, self._harness.kill)

    def start(self, process: str) -> None:
        self._signal(process, self._mediator.start, self._clients.start, self._harness.start)

    def freeze(self, processes: Iterable[str]) -> None:
        for process in processes:
            self._signal(process, self._mediator.freeze, self._clients.freeze, self._harness.freeze)

    def thaw(self, process: str) -> None:
        self._signal(process, self._mediator.thaw, self._clients.thaw, self._harness.thaw)

    def _signal(
        self,
        process: str,
        to_mediator: Callable[[], None],
        to_clients: Callable[[int], None],
        to_broker: Callable[[str], None],
    ) -> None:
        if process == "mediator":
            to_mediator()
        elif process in _CLIENT_PROCESSES:
            to_clients(_CLIENT_PROCESSES[process])
        else:
            to_broker(self._brokers[process])
