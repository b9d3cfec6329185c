"""The mediator: what is asked of a fleet as LoadBalancingSessions, taken through its phases to an end.

`Mediator.handle(event, now)` gives effects, in order. It is pure and deterministic: it has no clock, no randomness, and
knows neither the store nor the sockets; the local supervisor and the operator run the same one. What must outlive it is
in `Session`, stored before the commands that rest on it. After a restart a new mediator, with a higher epoch, takes the
stored sessions and asks the heads what they have.

Before the cut of its first batch, whatever fails rolls a session back; behind it everything rolls forward. Each phase
and each session has a deadline, and one way out.
"""

from plimsoll.core.session.events import (
    Asked,
    Create,
    Deleted,
    Deposed,
    Effect,
    Event,
    Forget,
    Heard,
    Save,
    Send,
    Tell,
    Ticked,
    Viewed,
)
from plimsoll.core.session.mediator import Mediator
from plimsoll.core.session.record import Session, decode, encode
from plimsoll.core.session.status import moves, seen, status
from plimsoll.core.session.values import EdgeView, HeadView, Overview, Request, Settings, Timings, View

__all__ = [
    "Asked",
    "Create",
    "Deleted",
    "Deposed",
    "EdgeView",
    "Effect",
    "Event",
    "Forget",
    "HeadView",
    "Heard",
    "Mediator",
    "Overview",
    "Request",
    "Save",
    "Send",
    "Session",
    "Settings",
    "Tell",
    "Ticked",
    "Timings",
    "View",
    "Viewed",
    "decode",
    "encode",
    "moves",
    "seen",
    "status",
]
