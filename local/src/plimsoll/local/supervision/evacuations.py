"""Brokers that are no longer wanted: an edge that serves subscribers is evacuated before its process is stopped."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.core.spec import Resources
from plimsoll.local.storage.object_store import Object, ObjectConflictError, ObjectMissingError, ObjectStore
from plimsoll.local.supervision.fleet_events import FleetEvents
from plimsoll.local.supervision.supervised_broker import SupervisedBroker
from plimsoll.local.timestamps import rfc3339_now
from plimsoll.mediator import evacuation
from plimsoll.mediator.session_objects import SESSION_KIND as SESSION
from plimsoll.mediator.session_objects import is_over


@dataclass
class _Evacuation:
    """One session. Its time limit restarts when the mediator takes it and when it begins to run."""

    session: str
    longest_seconds: float
    since: float
    stage: tuple[str, str] = ("", "")

    def takes_too_long(self, session: Mapping[str, Any], now: float) -> bool:
        status = session.get("status", {})
        stage = status.get("requestedAt", ""), status.get("startedAt", "")
        if stage != self.stage:
            self.stage, self.since = stage, now
        return now - self.since >= self.longest_seconds


class Evacuations:
    """Evacuations under way, each by the name of its edge."""

    def __init__(self, store: ObjectStore, brokers: Mapping[str, SupervisedBroker], events: FleetEvents) -> None:
        self._store, self._brokers, self._events = store, brokers, events
        self._sessions: dict[str, _Evacuation] = {}

    def __contains__(self, edge: object) -> bool:
        return edge in self._sessions

    def remove(self, broker: SupervisedBroker, resources: Resources, now: float) -> None:
        """Stop a broker, at once or when its subscribers have been moved away."""
        if broker.name in self._sessions:
            return
        config = broker.config
        if not (
            config.role == "edge" and broker.observed(now).ready
            and evacuation.has_drain_target(resources, broker.name, config.cluster)
        ):  # fmt: skip
            broker.begin_drain(now)
            return
        try:
            name = self._begin(self._store.mark_deleted("EdgeBroker", broker.name, rfc3339_now()))
        except ObjectMissingError:  # its object was deleted with its cluster
            broker.begin_drain(now)
            return
        longest = evacuation.LONGEST_SECONDS * resources.fleet.spec.time_scale_percent / 100
        self._sessions[broker.name] = _Evacuation(name, longest, now)
        self._events.record_broker_event(broker.name, "Normal", "Evacuating", f"session {name}")

    def _begin(self, edge: Object) -> str:
        """Create the session that empties an edge, unless it exists; its name."""
        session = evacuation.evacuation_session(edge)
        with contextlib.suppress(ObjectConflictError):  # made before this supervisor was started again
            self._store.create(session, rfc3339_now())
        return str(session["metadata"]["name"])

    def finish(self, now: float) -> None:
        """Stop edges whose evacuation has ended, successfully or not, or takes too long."""
        for name, one in list(self._sessions.items()):
            broker = self._brokers[name]
            try:
                session = self._store.get(SESSION, one.session)
                over = is_over(session) or one.takes_too_long(session, now)
            except ObjectMissingError:
                over = True
            if over or not broker.running:
                del self._sessions[name]
                broker.begin_drain(now)
