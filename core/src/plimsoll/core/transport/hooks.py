"""The hooks of a machine for its links. The parts of an overlay node call them; a machine overrides them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from plimsoll.core.permissions import ALL_PERMISSIONS, NO_NAME_GRANTS, ClientPermissions
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol import wire
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import NEVER, Link, Peer

CREDIT_HELD_ABOVE_RECORDS = 4096
"""Records queued for a client above which it gets no more credit: what it asks for must not fill the memory."""


class NodeHooks:
    """The hooks of a machine, in the order of a link's life; none of them does anything by itself.

    `now` is the machine's present time, in seconds; `counters` are counts of events since the start.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.counters: Counter[str] = Counter()
        self.grant_of: Callable[[Any], ClientPermissions | None] = lambda peer: ALL_PERMISSIONS
        """What the shell knows about a peer's permissions; None if it does not know the peer at the moment."""
        self.identity_of: Callable[[Any], str] = lambda peer: ""
        """Whose key a peer has proved to hold; empty where there are no keys: then its name is its identity."""
        self.keys_of: Callable[[str], list[str]] = lambda name: []
        """The keys that the shell knows to be authorised for a broker now; none where there are no keys."""
        self.name_grants = NO_NAME_GRANTS

    def admits(self, info: Info) -> str:
        """Why this peer may not open a link here; an empty string if it may."""
        return ""

    def on_open(self, link: Link) -> None:
        """A link is new: nothing has been sent on it yet."""

    def on_refused(self, link: Link, code: str, text: str) -> None:
        """The other side refuses this link, for this reason."""

    def on_granted(self, link: Link) -> None:
        """The permissions of an open link have changed: `link.grant`."""

    def on_data(self, link: Link, frame: wire.Data, size: int) -> None:
        """A frame of records, in order. The machine calls `took` once it has dealt with it."""

    def on_room(self, link: Link) -> None:
        """The other side has acknowledged something or given credit."""

    def on_stuck(self, link: Link) -> None:
        """At the end of a round the link still holds records that may not be sent yet."""

    def on_moving(self, link: Link) -> None:
        """A link with `is_stuck` has sent something."""

    def holds(self, link: Link) -> bool:
        """Whether a client gets no credit for now, because it does not read what it is sent."""
        return len(link.buffer) > CREDIT_HELD_ABOVE_RECORDS

    def on_lost(self, link: Link) -> None:
        """A link that was open is over for good; records on it that were not acknowledged are lost."""

    def on_control(self, peer: Peer, record: msg.ControlRecord) -> None:
        """A record from a control socket."""

    def on_tick(self) -> None:
        """Time has passed."""

    def wake_at(self) -> float:
        """When `on_tick` is needed next, in the machine's time."""
        return NEVER

    def served(self, frames: int, seconds: float) -> None:
        """The shell's measure of one round: frames taken, and seconds from frames in to buffers out."""
