"""What happens to a mediator, and what it wants done.

Effects are carried out in the order in which they come. Each `Save` stands before all that rests on it: if it cannot be
stored, nothing behind it may be done, and the mediator goes: a new one, with a new epoch, starts from what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from plimsoll.core.records import (
    Command,
    CoverQuery,
    CoverTold,
    Joined,
    Outcome,
    ProfileQuery,
    ProfileReply,
    Served,
    Serving,
    State,
    Stated,
    Trigger,
)
from plimsoll.core.session.record import Session
from plimsoll.core.session.values import Request, View

# ---------------------------------------------------------------- events


@dataclass(frozen=True)
class Asked:
    """An object is there, new, changed or as it was: approval, stop, retries and deletion are fields of it."""

    request: Request


@dataclass(frozen=True)
class Deleted:
    """An object is gone for good, without having waited for its session's end."""

    uid: str


@dataclass(frozen=True)
class Heard:
    """A head has spoken, for itself or for one of its edges."""

    head: str
    said: Outcome | Served | Stated | Trigger | ProfileReply | CoverTold


@dataclass(frozen=True)
class Viewed:
    """The fleet as it is now. Wanted every few seconds, changed or not."""

    view: View


@dataclass(frozen=True)
class Ticked:
    """Time has passed. Wanted a few times within `Timings.repeat`."""


Event = Asked | Deleted | Heard | Viewed | Ticked

# ---------------------------------------------------------------- effects


@dataclass(frozen=True)
class Save:
    """Store this as the status of its object: `status(session, now)` for people, `encode(session)` to go on from."""

    session: Session


@dataclass(frozen=True)
class Send:
    """Say this to a head, on its control socket. It may be lost; it is said again."""

    head: str
    record: Command | Serving | State | ProfileQuery | CoverQuery | Joined


@dataclass(frozen=True)
class Tell:
    """An event for people, about a session."""

    uid: str
    name: str
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True)
class Create:
    """Make a LoadBalancingSession of this name, unless there is one, owned by `parent` if that is not empty.

    `spec` is a mapping as in YAML. It is wanted again until the object has been `Asked` for.
    """

    name: str
    parent: str
    parent_name: str
    spec: Mapping[str, Any]


@dataclass(frozen=True)
class Forget:
    """Delete the object: its time to live is over, or its deletion was asked for and its session has ended."""

    uid: str
    name: str


@dataclass(frozen=True)
class Deposed:
    """A head obeys a mediator of this higher epoch. This one says nothing more, whatever it is told."""

    epoch: int


Effect = Save | Send | Tell | Create | Forget | Deposed
