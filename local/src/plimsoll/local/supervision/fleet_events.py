"""Events of a fleet on this machine: kept in the store, with the notable ones announced as lines.

An event that cannot be stored now waits in memory, and is stored under its own time when that is possible again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping

from plimsoll.core.printable import printable
from plimsoll.local.storage.object_store import EVENTS_KEPT, ObjectStore
from plimsoll.local.storage.state_files import StateWriteError
from plimsoll.local.supervision.supervised_broker import SupervisedBroker
from plimsoll.local.timestamps import rfc3339_now


class FleetEvents:
    """`announce` gets a line about each notable event."""

    def __init__(
        self,
        store: ObjectStore,
        fleet: str,
        brokers: Mapping[str, SupervisedBroker],
        announce: Callable[[str], None],
    ) -> None:
        self._store, self._fleet, self._brokers, self.announce = store, fleet, brokers, announce
        self._waiting: deque[tuple[str, str, str, str, str, str]] = deque(maxlen=EVENTS_KEPT)

    def record_broker_event(self, broker: str, type_: str, reason: str, message: str) -> None:
        known = self._brokers.get(broker)
        kind, name = "EdgeBroker", broker
        if known is not None and known.config.role == "head":
            kind, name, message = "BrokerCluster", known.config.cluster, f"{broker}: {message}"
        self._record(kind, name, type_, reason, message)
        if type_ == "Warning" or reason == "Ready":
            self.announce(printable(f"{broker}: {message.removeprefix(f'{broker}: ')}"))

    def record_fleet_event(self, type_: str, reason: str, message: str) -> None:
        self._record("BrokerFleet", self._fleet, type_, reason, message)
        if type_ == "Warning":
            self.announce(printable(message))

    def record_invalid_spec(self, error: Exception) -> None:
        """Note that the stored resources cannot be used, and that the fleet runs on as it is."""
        self._record("BrokerFleet", self._fleet, "Warning", "InvalidSpec", str(error))
        self.announce(f"invalid resources, the fleet keeps running unchanged: {error}")

    def flush(self) -> bool:
        """Store the events that wait, oldest first; whether none waits any longer."""
        try:
            while self._waiting:
                self._store.record(*self._waiting[0])
                self._waiting.popleft()
        except StateWriteError:  # the supervisor reports the fault, as it writes the status to the same store
            return False
        return True

    def _record(self, kind: str, name: str, type_: str, reason: str, message: str) -> None:
        self._waiting.append((kind, name, type_, reason, message, rfc3339_now()))
        self.flush()
