"""`confirm: edges`: which links still have to acknowledge a publication before its publisher, or the head before, is
told.

An edge has what it acknowledges. A neighbour says so itself (CONFIRMED) once all edges behind it have it. Links that
are lost, and
those that are not heard of in `confirm_seconds`, are named; nothing is refused once it is logged.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.core import records as r
from plimsoll.core.outlet import Outlet
from plimsoll.core.publishers import Pending, Publishers
from plimsoll.core.streams import Streams


@dataclass(slots=True)
class Awaited:
    """One logged publication. `pending`: of a publisher here; else it came from `neighbor`, as its `upstream`."""

    missing: set[str]
    late: set[str]
    deadline: float
    publisher: str
    pending: Pending | None
    neighbor: str
    upstream: int


class Confirmations:
    """Publications of a head that wait for edges, by position."""

    def __init__(self, streams: Streams, publishers: Publishers, confirm_seconds: float) -> None:
        self.streams, self.publishers, self.confirm_seconds = streams, publishers, confirm_seconds
        self._awaited: dict[int, Awaited] = {}

    def of_publisher(self, position: int, publisher: str, pending: Pending, keys: set[str], now: float) -> None:
        """A publisher here waits for these links."""
        self._begin(position, Awaited(set(), set(), now + self.confirm_seconds, publisher, pending, "", 0), keys)

    def of_neighbor(self, position: int, neighbor: str, upstream: int, keys: set[str], now: float) -> None:
        """The neighbour that a publication came from waits for these links."""
        self._begin(position, Awaited(set(), set(), now + self.confirm_seconds, "", None, neighbor, upstream), keys)

    def _begin(self, position: int, awaited: Awaited, keys: set[str]) -> None:
        outlets = self.streams.outlets
        awaited.missing = {key for key in keys if key in outlets}
        awaited.late = {_name(key) for key in keys - awaited.missing}
        self._awaited[position] = awaited
        for key in awaited.missing:
            outlets[key].await_answer(position)
        if not awaited.missing:
            self._done(position)

    def acknowledged(self, outlet: Outlet, through: int) -> None:
        """An edge has acknowledged everything up to a position."""
        while not outlet.is_head and outlet.awaiting and outlet.awaiting[0] <= through:
            self._has(outlet.awaiting.popleft(), outlet.key, ())

    def confirmed(self, outlet: Outlet, confirmed: r.Confirmed) -> None:
        """A neighbour's edges have these positions, but for those that it names."""
        for position in confirmed.positions:
            if position in outlet.awaiting:
                outlet.awaiting.remove(position)
                self._has(position, outlet.key, confirmed.missing)

    def lost(self, outlet: Outlet) -> None:
        """A link is over: it will confirm nothing more."""
        key = outlet.key
        outlet.awaiting.clear()
        for position in [p for p, awaited in self._awaited.items() if key in awaited.missing]:
            self._has(position, key, [_name(key)])

    def expire(self, now: float) -> None:
        for position in [p for p, awaited in self._awaited.items() if awaited.deadline <= now]:
            awaited = self._awaited[position]
            awaited.late |= {_name(key) for key in awaited.missing}
            for key in awaited.missing:
                if (outlet := self.streams.outlets.get(key)) is not None and position in outlet.awaiting:
                    outlet.awaiting.remove(position)
            self._done(position)

    def next_deadline(self) -> float:
        return min((awaited.deadline for awaited in self._awaited.values()), default=float("inf"))

    def _has(self, position: int, key: str, late: list[str] | tuple[str, ...]) -> None:
        awaited = self._awaited.get(position)
        if awaited is not None:
            awaited.missing.discard(key)
            awaited.late |= set(late)
            if not awaited.missing:
                self._done(position)

    def _done(self, position: int) -> None:
        awaited = self._awaited.pop(position)
        if awaited.pending is not None:
            awaited.pending.missing = False
            awaited.pending.late = sorted(awaited.late)
            self.publishers.touch(awaited.publisher)
        elif (outlet := self.streams.outlets.get(awaited.neighbor)) is not None:
            self.streams.tell(outlet, r.Confirmed([awaited.upstream], sorted(awaited.late)))


def _name(key: str) -> str:
    return key.partition("#")[0]
