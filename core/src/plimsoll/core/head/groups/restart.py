"""What a head that has just started does not know of consumer groups, and for how long it waits to learn it.

Edges tell it which slices they serve, and with which life of the head they have spoken before; members tell it what
they have. Until it knows what a group is whose slices are served, it accepts no publications: they would have no stamp,
and reach no consumer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, Protocol

from plimsoll.core.head.groups.times import GroupTimes
from plimsoll.core.head.ownership import OwnershipTable
from plimsoll.core.head.startup import StartupBarrier
from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.slice_names import slice_of_name
from plimsoll.core.transport.link import NEVER

AWAITED: Final = "consumer group "
"""How the status of a head that starts names a group whose definition it waits for."""


class RestartHost(Protocol):
    """What is asked of the head."""

    now: float
    name: str
    epoch: int
    owners: OwnershipTable
    startup: StartupBarrier

    @property
    def is_starting(self) -> bool: ...
    def end_place(self, subscriber: str) -> None: ...


class GroupRestart:
    """`known`: names of the groups that are defined here. `started_at`, `ready_at`: when this head had its first round,
    and when it had all reports; None before that. `recalled`: names of the groups that it has from its log.
    """

    def __init__(self, host: RestartHost, times: GroupTimes, known: Collection[str]) -> None:
        self.host, self.times, self.known = host, times, known
        self.started_at: float | None = None
        self.ready_at: float | None = None
        self._has_restarted = False
        self.recalled: set[str] = set()
        self._forgotten: set[str] = set()

    def edge_reported(self, report: msg.EdgeReport) -> set[str]:
        """An edge says what it serves. Returns for which groups the head has to wait."""
        self._has_restarted |= report.head_epoch not in (0, self.host.epoch)
        return self._awaited()

    def member_said(self, places: Iterable[msg.SlicePlace]) -> bool:
        """Whether an earlier life of this head has given out a slice of which a member says its place."""
        tokens = (place.token for place in places)
        is_told = any(t is not None and t[0] == self.host.name and t[1] != self.host.epoch for t in tokens)
        self._has_restarted |= is_told
        return is_told

    def defined(self, group: str) -> None:
        """The definition of this group is known now."""
        if self.host.is_starting:
            self.host.startup.reported(AWAITED + group)

    def is_served(self, group: str) -> bool:
        """Whether edges serve slices of this group."""
        return group in self._served()

    def hold_until(self, group: str) -> float:
        """Until when members may say which slices they have; a head that has just started may not know its edges."""
        if self.ready_at is None:
            return NEVER
        if group in self._forgotten:
            return self.host.now + self.times.gone
        has_members = self._has_restarted or self.is_served(group) or group in self.recalled
        return self.ready_at + self.times.gone if has_members else 0.0

    @property
    def may_come_back(self) -> bool:
        """Whether members from before a restart may still be on their way."""
        started = self.started_at if self.started_at is not None else self.host.now
        return self.host.now < started + self.times.gone

    def look(self) -> bool:
        """Look at the time; returns whether all have reported."""
        host = self.host
        if self.started_at is None:
            self.started_at = host.now
        if host.is_starting:
            if host.now > self.started_at + self.times.gone:
                self._stop_waiting()
            return False
        if self.ready_at is None:
            self.ready_at = host.now
        return True

    def _served(self) -> set[str]:
        return {found[0] for x in self.host.owners.entries if (found := slice_of_name(x)) is not None}

    def _awaited(self) -> set[str]:
        """Groups of which edges serve slices, and whose definition this head does not know."""
        return {AWAITED + name for name in self._served() - set(self.known)}

    def _stop_waiting(self) -> None:
        """The definitions of these groups have not come. Once they do, their slices attach again, behind a gap."""
        for awaited in sorted(self._awaited() & self.host.startup.missing):
            name = awaited.removeprefix(AWAITED)
            for x in [x for x in self.host.owners.entries if (found := slice_of_name(x)) and found[0] == name]:
                self.host.end_place(x)
            self._forgotten.add(name)
            self.host.startup.reported(awaited)
