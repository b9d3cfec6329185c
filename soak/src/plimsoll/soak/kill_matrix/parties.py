"""The processes of a cell by the part that they play, and the signals that they are sent."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Final

from plimsoll.core.verify import Observation
from plimsoll.core.verify import observations as seen
from plimsoll.soak.harness.clients import SoakClients
from plimsoll.soak.harness.fleet_harness import FleetHarness
from plimsoll.soak.harness.mediator_worker import SoakMediatorProcess

_CLIENT_PROCESSES: Final = {"first": 0, "second": 1}


class CellParties:
    """The mediator, the client processes `first` and `second`, and `brokers` by part. `ends`: of killed heads."""

    def __init__(
        self, fleet: FleetHarness, clients: SoakClients, mediator: SoakMediatorProcess, brokers: Mapping[str, str]
    ) -> None:
        self._fleet, self._clients, self._mediator, self._brokers = fleet, clients, mediator, brokers
        self.ends: list[Observation] = []

    def kill(self, who: str) -> None:
        if who == "mediator":
            self._mediator.kill()
        elif who in _CLIENT_PROCESSES:
            self._clients.kill(_CLIENT_PROCESSES[who])
        else:
            broker = self._brokers[who]
            if who in ("head", "far head"):
                self.ends.append(seen.HeadEndObserved(broker, self._fleet.epoch_of(broker), time.monotonic()))
            self._fleet.kill(broker)

    def start(self, who: str) -> None:
        if who == "mediator":
            self._mediator.start()
        elif who in _CLIENT_PROCESSES:
            self._clients.start(_CLIENT_PROCESSES[who])
        else:
            self._fleet.start(self._brokers[who])

    def freeze(self, parties: Iterable[str]) -> None:
        for who in parties:
            if who == "mediator":
                self._mediator.freeze()
            elif who in _CLIENT_PROCESSES:
                self._clients.freeze(_CLIENT_PROCESSES[who])
            else:
                self._fleet.freeze(self._brokers[who])

    def thaw(self, who: str) -> None:
        if who == "mediator":
            self._mediator.thaw()
        elif who in _CLIENT_PROCESSES:
            self._clients.thaw(_CLIENT_PROCESSES[who])
        else:
            self._fleet.thaw(self._brokers[who])
