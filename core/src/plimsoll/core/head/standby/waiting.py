"""A process of a head with a standby that has just started: it waits for a mediator to say which of the two it is.

A process that restarts by itself knows neither the term nor whether the other one has gone on meanwhile. So it touches
nothing, least of all the log on its disk, and serves no peer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import Info
from plimsoll.core.transport.link import LinkLimits, Peer
from plimsoll.core.transport.overlay_node import OverlayNode


class WaitingProcess(OverlayNode):
    """`term`: the one in which it is to lead; 0: none. `follows`: it is to follow. `is_alone`: it leads in no term,
    since its configuration names no standby any more. One of them before it is `done`.
    """

    def __init__(
        self, name: str, incarnation: int, limits: LinkLimits, new_id: Callable[[], int], max_frame_bytes: int
    ) -> None:
        super().__init__(Info(name, "head", incarnation), limits, new_id, max_frame_bytes=max_frame_bytes)
        self.term, self.follows, self.is_alone = 0, False, False
        self._mediators: set[Peer] = set()
        self._left = False

    def admits(self, info: Info) -> str:
        return f"{self.info.name} waits to be told whether it leads"

    def on_control(self, peer: Peer, record: msg.ControlRecord) -> None:
        if isinstance(record, msg.Identify) and record.role == "mediator":
            self._mediators.add(peer)
        elif isinstance(record, msg.StatusQuery):
            self.say_control(peer, msg.StatusReply(record.id, self.status()))
        elif peer not in self._mediators:
            return
        elif isinstance(record, msg.LeadershipQuery):
            said: dict[str, bool | int | float | str] = {"role": "waiting", "incarnation": self.info.incarnation}
            self.say_control(peer, msg.LeadershipReply(record.id, said))
        elif isinstance(record, msg.Lead) and record.incarnation == self.info.incarnation:
            self.term = record.term
        elif isinstance(record, msg.Follow) and record.incarnation == self.info.incarnation:
            self.follows = True
        elif isinstance(record, msg.Leave):
            self.leave(self.now)

    # -- for the shell

    def regrant(self, now: float) -> None:
        """It admits no peers."""

    def leave(self, now: float) -> None:
        """Stop waiting."""
        self.now, self._left = now, True

    def done(self) -> bool:
        """Whether it has been told what it is, or asked to end."""
        return self._left or self.follows or self.is_alone or self.term > 0

    def status(self) -> dict[str, Any]:
        return {
            "name": self.info.name,
            "role": "waiting",
            "incarnation": self.info.incarnation,
            "process": dict(self.process),
        }
