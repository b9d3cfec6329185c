"""Round trips of links: how far a peer is, from the PINGs of a link and their PONGs.

A PONG returns the time of its PING unchanged, so one clock measures, and no clocks are compared. A peer that is busy
answers late and never early: the least of the last few answers is the way, and what is above it is the peer's work. A
way that has become longer shows once all answers of the window have taken it, a shorter one at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from plimsoll.core.transport.link import Link

ANSWERS_IN_WINDOW: Final = 4
"""Answers of which the least counts."""

PINGS_REMEMBERED: Final = 64
"""Unanswered PINGs of a link; an answer to an older one is too late to be of use."""

PROBES_PER_HEARTBEAT: Final = 4
"""PINGs between brokers in the time of one heartbeat, where deadlines are defended: a longer way shows after one."""

ROLES: Final = ("client", "edge", "head")


class RoundTrip:
    """The round trip of one link. `seconds`: 0 before the first answer.

    Only an answer to a PING that was sent, and has not been answered, counts: a peer can answer late, and so be taken
    for a far one, but it cannot make up a time.
    """

    __slots__ = ("_pinged_us", "_window", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self._window: tuple[float, ...] = ()
        self._pinged_us: tuple[int, ...] = ()

    def pinged(self, time_us: int) -> None:
        """Note a PING that is being sent."""
        self._pinged_us = (*self._pinged_us[1 - PINGS_REMEMBERED :], time_us)

    def answered(self, time_us: int, now: float) -> bool:
        """Take a PONG; False if it answers nothing. Those sent before it will not be answered any more."""
        if time_us not in self._pinged_us:
            return False
        self._pinged_us = self._pinged_us[self._pinged_us.index(time_us) + 1 :]
        self._window = (*self._window[1 - ANSWERS_IN_WINDOW :], max(0.0, now - time_us / 1e6))
        self.seconds = min(self._window)
        return True

    def restart(self) -> None:
        """The peer has another connection: what the old one took says nothing about it."""
        self._window, self._pinged_us = (), ()


def measured(links: Iterable[Link]) -> dict[str, dict[str, float]]:
    """Fields of a load report: the longest and the median round trip by the role of the peer, and that to each broker.

    `round_trip_seconds` and `round_trip_median_seconds`: by role, without those that have no measured link;
    `broker_round_trip_seconds`: by the name of the broker at the other end.
    """
    found: dict[str, list[float]] = {role: [] for role in ROLES}
    brokers = {}
    for link in links:
        if link.remote is not None and link.open and link.round_trip.seconds:
            found[link.remote.role].append(link.round_trip.seconds)
            if link.remote.role != "client":
                brokers[link.name] = link.round_trip.seconds
    some = {role: sorted(each) for role, each in found.items() if each}
    return {
        "round_trip_seconds": {role: each[-1] for role, each in some.items()},
        "round_trip_median_seconds": {role: each[(len(each) - 1) // 2] for role, each in some.items()},
        "broker_round_trip_seconds": dict(sorted(brokers.items())),
    }
