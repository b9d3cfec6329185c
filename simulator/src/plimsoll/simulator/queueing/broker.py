"""What heads and edges of the queueing model share: counters, the meter, load reports and the control socket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol

from plimsoll.core.config import BrokerConfig
from plimsoll.core.metering.meter import FrameCounts, LoadMeter
from plimsoll.core.transport.load_reporter import LoadReporter

EPOCH = 1
"""Of every broker: none is ever restarted here."""


class ControlWorld(Protocol):
    """What a broker needs of its world to speak on its control socket."""

    def say(self, sender: str, receiver: str, /, *said: Any) -> None: ...


class QueueingBroker:
    """A broker of the model, as its load reporter sees it."""

    def __init__(self, control: ControlWorld, config: BrokerConfig) -> None:
        self.control, self.config, self.name, self.epoch = control, config, config.name, EPOCH
        self.counters: Counter[str] = Counter()
        self.sealed, self.meter = FrameCounts(), LoadMeter()
        self.reporter = LoadReporter(self, config, EPOCH, self.meter)

    def status(self) -> dict[str, Any]:
        """It is not used here."""
        return {}

    def say_control(self, peer: Any, /, *said: Any) -> None:
        """Send on the control socket."""
        self.count_sent(said)
        self.control.say(self.name, str(peer), *said)

    def count_sent(self, said: Iterable[object]) -> None:
        """Count messages by kind, as brokers do; a class stands for a message of it that the model does not make."""
        for each in said:
            kind = each if isinstance(each, type) else type(each)
            self.counters[f"said_{kind.__name__}"] += 1
