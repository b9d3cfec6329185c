"""Events about brokers: ready, gone, unable to run. A pure function of two looks at the fleet, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plimsoll.mediator.log_condition import log_events
from plimsoll.mediator.resource_status import ObservedBroker
from plimsoll.operator import names
from plimsoll.operator.reconcile.fleet_client import EventType


@dataclass(frozen=True)
class BrokerEvent:
    """An Event to write about a broker."""

    broker: str
    type: EventType
    reason: str
    message: str


class BrokerEvents:
    """What was last seen of each broker of a fleet. The first look of an operator gives no events."""

    def __init__(self) -> None:
        self._last: Mapping[str, ObservedBroker] | None = None

    def since_last_look(self, seen: Mapping[str, ObservedBroker]) -> list[BrokerEvent]:
        """What has happened since the last look."""
        before, self._last = self._last, dict(seen)
        return [] if before is None else list(_events(before, seen))


def _events(before: Mapping[str, ObservedBroker], after: Mapping[str, ObservedBroker]) -> Iterator[BrokerEvent]:
    for name, broker in after.items():
        old = before.get(name)
        pod = names.pod_of(name)
        if broker.ready and (old is None or not old.ready):
            yield BrokerEvent(name, "Normal", "Ready", f"{name} is ready: {broker.runs_as} answers on {broker.control}")
        if broker.trouble[0] and (old is None or old.trouble[0] != broker.trouble[0]):
            yield BrokerEvent(name, "Warning", broker.trouble[0], f"pod {pod} does not run: {broker.trouble[1]}")
        if old is not None and old.pod == broker.pod != "" and broker.restarts > old.restarts:
            told = f"its process{_did(broker)} and was started again in pod {pod}; restarts there: {broker.restarts}"
            yield BrokerEvent(name, "Warning", "Exited", told)
        for event in log_events(old, broker):
            yield BrokerEvent(*event)
        if old is not None and old.pod and not broker.pod:
            yield BrokerEvent(name, "Normal", "PodGone", f"pod {pod} is gone{_ended(broker)}")
    for name in before.keys() - after.keys():
        if before[name].pod:
            yield BrokerEvent(name, "Normal", "PodGone", f"pod {names.pod_of(name)} is gone, and {name} with it")


def _did(broker: ObservedBroker) -> str:
    return f" {broker.last_end}" if broker.last_end else " has ended"


def _ended(broker: ObservedBroker) -> str:
    return f": it {broker.last_end}" if broker.last_end else ""
