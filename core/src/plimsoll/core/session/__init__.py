"""The session engine of the mediator: it takes LoadBalancingSessions through their phases to an end.

`MediatorEngine.handle(event, now)` returns effects, in order. It is pure and deterministic: it has no clock and no
randomness, and knows neither the store nor the sockets; the local supervisor and the operator run the same engine. A
`Session` is saved before the commands that follow from it. After a restart a new engine, with a higher epoch, takes the
stored sessions and queries the heads for the state of their batches.

Before the cut of its first batch any failure rolls a session back; after it a session rolls forward. Each phase and
each session has a deadline, and one way out.
"""

from plimsoll.core.session.engine import MediatorEngine
from plimsoll.core.session.events import (
    CreateSession,
    DeleteSession,
    Deposed,
    Effect,
    EmitEvent,
    Event,
    FleetObserved,
    HeadMessage,
    SaveMemory,
    SaveSession,
    SendMessage,
    SessionDeleted,
    SessionUpserted,
    Tick,
)
from plimsoll.core.session.inputs import (
    ClusterComparison,
    EdgeView,
    EngineSettings,
    FleetView,
    HeadView,
    SessionRequest,
    Timings,
)
from plimsoll.core.session.state import Session
from plimsoll.core.session.status import moves, observed_session, status
from plimsoll.core.session.stored_session import decode, encode

__all__ = [
    "ClusterComparison",
    "CreateSession",
    "DeleteSession",
    "Deposed",
    "EdgeView",
    "Effect",
    "EmitEvent",
    "EngineSettings",
    "Event",
    "FleetObserved",
    "FleetView",
    "HeadMessage",
    "HeadView",
    "MediatorEngine",
    "SaveMemory",
    "SaveSession",
    "SendMessage",
    "Session",
    "SessionDeleted",
    "SessionRequest",
    "SessionUpserted",
    "Tick",
    "Timings",
    "decode",
    "encode",
    "moves",
    "observed_session",
    "status",
]
