"""Events and effects of the session engine.

A shell carries out effects in order. Each `SaveSession` precedes all effects that follow from it: if it cannot be
stored, none of those may be carried out and the mediator ends; a new one, with a new epoch, starts from the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from plimsoll.core.protocol.messages import (
    BundleTable,
    Command,
    CoverQuery,
    CoverReply,
    GroupTrigger,
    ListPublishers,
    ListSubscribers,
    Outcome,
    PeerClusterLoads,
    ProfileQuery,
    ProfileReply,
    PublisherCommand,
    PublisherListPage,
    PublisherOutcome,
    Reservation,
    ReservationReply,
    SliceCommand,
    SliceOutcome,
    SlicePage,
    SliceQuery,
    SubscriberPage,
    Trigger,
)
from plimsoll.core.session.inputs import FleetView, SessionRequest
from plimsoll.core.session.state import Session

# ---------------------------------------------------------------- events


@dataclass(frozen=True)
class SessionUpserted:
    """An object exists, new, changed or as before: approval, stop, retries and deletion are fields of it."""

    request: SessionRequest


@dataclass(frozen=True)
class SessionDeleted:
    """An object is gone, without having waited for the end of its session."""

    uid: str


HeadReply = (
    Outcome | SubscriberPage | ReservationReply | Trigger | ProfileReply | CoverReply | PublisherOutcome |
    PublisherListPage | SliceOutcome | SlicePage | GroupTrigger
)  # fmt: skip
"""What heads send to a mediator."""


@dataclass(frozen=True)
class HeadMessage:
    """A head has sent a message, for itself or for one of its edges."""

    head: str
    message: HeadReply


@dataclass(frozen=True)
class FleetObserved:
    """The fleet as it is now. Due every few seconds, changed or not."""

    view: FleetView


@dataclass(frozen=True)
class Tick:
    """Time has passed. Due a few times within `Timings.repeat`."""


Event = SessionUpserted | SessionDeleted | HeadMessage | FleetObserved | Tick

# ---------------------------------------------------------------- effects

HeadQuery = (
    BundleTable | Command | ListSubscribers | Reservation | ProfileQuery | CoverQuery | PeerClusterLoads |
    PublisherCommand | ListPublishers | SliceCommand | SliceQuery
)  # fmt: skip
"""What a mediator sends to heads."""


@dataclass(frozen=True)
class SaveSession:
    """Store this as the status of its object: `status(session, now)` for people, `encode(session)` to resume from."""

    session: Session


@dataclass(frozen=True)
class SendMessage:
    """Send this to a head, on its control socket. It may be lost; the mediator repeats what it still wants."""

    head: str
    message: HeadQuery


@dataclass(frozen=True)
class EmitEvent:
    """An event for people, about a session."""

    uid: str
    name: str
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True)
class CreateSession:
    """Make a LoadBalancingSession of this name, unless there is one, owned by `parent` if that is not empty.

    `spec` is a mapping as in YAML. It is repeated until the object has come as `SessionUpserted`.
    """

    name: str
    parent: str
    parent_name: str
    spec: Mapping[str, Any]


@dataclass(frozen=True)
class SaveMemory:
    """Store this in the status of a cluster: what its policy remembers, as JSON. It replaces the last one.

    The view of the fleet has it again (`FleetView.memories`), for the next life of a mediator.
    """

    cluster: str
    policy: str
    memory: Mapping[str, Any]


@dataclass(frozen=True)
class DeleteSession:
    """Delete the object: its time to live is over, or its deletion was requested and its session has ended."""

    uid: str
    name: str


@dataclass(frozen=True)
class Deposed:
    """A head obeys a mediator of this higher epoch. This engine has no further effects."""

    epoch: int


Effect = SaveSession | SaveMemory | SendMessage | EmitEvent | CreateSession | DeleteSession | Deposed
