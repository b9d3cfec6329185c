"""Fair turns between the clients of a head: how much credit each gets, and which links it waits for.

A publication waits at a link behind all that came before it. So a client gets more credit only when the links that
needed its publications have acknowledged what it had published when it got credit the time before: it has at most two
windows under way, and a flood waits for the links instead of filling them. A link that its publications did not need
holds nothing back, nor does one that is lost or silent. All publishers of a client have one window and one wait:
client_credit.py divides the window between them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

FIRST_WINDOW = 128
SMALLEST_WINDOW = 8
"""A window is not cut below this, so that a client at a slow link needs no round trip for each publication. Nor below
FIRST_WINDOW, if what it waited for was a link that stood still: that is not for what is published, and ends at once."""

WINDOW_BYTES = 1024 * 1024
"""A window is bounded to about this by the mean size of what was published since the last renewal."""

LONG_WAIT_SECONDS = 0.02
"""A wait for links that is longer than theirs without a backlog by more than this cuts the window: what waits at a link
makes the publications of all others wait."""

STANDSTILL_SECONDS = LONG_WAIT_SECONDS / 2
"""A link that acknowledges nothing for this long stands still; one with too much to do acknowledges all the time."""

DELAY_KEPT_SECONDS = 30.0
"""How long a link without a backlog takes is the shortest delay of the last one or two times this."""

GROWTH_STEPS = 64
"""Renewals without a long wait after which a client that has been held has the largest window again."""

SILENT_SECONDS = 1.0


class Backlog(Protocol):
    """What a link has been offered of the log, and what it has acknowledged: the last position of each."""

    key: str
    offered: int
    acked: int

    def ask(self) -> None:
        """Have what has been offered by now acknowledged at once."""


@dataclass(slots=True, eq=False)
class ClientShare:
    """The credit of one client. `window`: what it may have next; `granted`: what it got last.

    `needed_by`: the links that needed its publications since then. `points`: the positions, by link, that have to be
    acknowledged before it gets more. `waits_for`: the link at which it is waiting, or empty. `was_held`: it has used up
    its credit while it waited, at least once; `is_held`: it has now.
    """

    window: int = FIRST_WINDOW
    granted: int = 0
    published: int = 0
    size: int = 0
    """Publications since the last renewal, and their bytes."""
    mean_bytes: float = 0.0
    needed_by: set[str] = field(default_factory=set)
    points: dict[str, int] = field(default_factory=dict)
    waits_for: str = ""
    waited_from: float | None = None
    starved_from: float | None = None
    """Of its present wait: when it began, and from when on half of its credit was used."""
    waited_until: float = 0.0
    unavoidable_seconds: float = 0.0
    """Of its present or last wait: how long its links take without a backlog."""
    standing_before: float = 0.0
    standing_seconds: float = 0.0
    """How long the link at which it waits had stood still before; how long its links did while it waited."""
    was_held: bool = False
    is_held: bool = False

    def inherit(self, other: ClientShare) -> None:
        """Take over what links have still to acknowledge of another client, one of whose publishers goes on here."""
        self.needed_by |= other.needed_by
        for key, point in other.points.items():
            self.points[key] = max(point, self.points.get(key, 0))
        self.window = min(self.window, other.window)
        self.was_held = self.was_held or other.was_held

    def hold(self) -> bool:
        """Note that it has used up its credit and waits for links; True if that is new."""
        is_new, self.is_held, self.was_held = not self.is_held, True, True
        return is_new

    def renew(self, largest: int) -> int:
        """The window from here on. `largest`: of any client."""
        if self.published:
            self.mean_bytes = self.size / self.published
            self._adapt(largest)
        self.window = min(self.window, largest)
        self.published = self.size = 0
        self.is_held, self.waited_from, self.starved_from = False, None, None
        self.unavoidable_seconds = self.standing_seconds = 0.0
        fitting = int(WINDOW_BYTES / self.mean_bytes) if self.mean_bytes else largest
        self.granted = max(1, min(self.window, fitting))
        return self.granted

    def _adapt(self, largest: int) -> None:
        waited = 0.0 if self.starved_from is None else self.waited_until - self.starved_from
        if (excess := waited - self.unavoidable_seconds) > LONG_WAIT_SECONDS:
            self.was_held = True
            stood_still = excess - self.standing_seconds <= LONG_WAIT_SECONDS
            smallest = min(FIRST_WINDOW, self.window) if stood_still else SMALLEST_WINDOW
            self.window = max(int(self.window * min(0.5, LONG_WAIT_SECONDS / excess)), smallest)
        elif self.was_held:
            self.window += max(largest // GROWTH_STEPS, 1)
        else:
            self.window *= 2


class LinkDelay:
    """How long a link takes to acknowledge what it has been offered: the shortest delay of late."""

    __slots__ = ("_asked", "_before", "_now", "_until")

    def __init__(self) -> None:
        self._asked: tuple[int, float] | None = None
        self._before = self._now = float("inf")
        self._until = 0.0

    @property
    def shortest_seconds(self) -> float:
        """The shortest of the last one or two periods; 0 if none is known."""
        shortest = min(self._before, self._now)
        return 0.0 if shortest == float("inf") else shortest

    def ask(self, position: int, now: float) -> None:
        """Measure up to the acknowledgement of this position, unless something is being measured."""
        if self._asked is None:
            self._asked = (position, now)

    def acknowledged(self, through: int, now: float) -> None:
        if self._asked is None or through < self._asked[0]:
            return
        seconds, self._asked = now - self._asked[1], None
        if now >= self._until:
            self._before, self._now, self._until = self._now, seconds, now + DELAY_KEPT_SECONDS
        self._now = min(self._now, seconds)


class _LinkState:
    """What is known of one link. `heard`: when it has last acknowledged something; `since`: from when it is silent.

    `standing_seconds`: how long it has stood still while clients waited for it, in all. `waiting`: the clients that it
    holds back, by position.
    """

    __slots__ = ("delay", "heard", "is_silent", "since", "standing_seconds", "waiting")

    def __init__(self) -> None:
        self.delay = LinkDelay()
        self.heard = self.since = self.standing_seconds = 0.0
        self.is_silent = False
        self.waiting: list[tuple[int, int, str, ClientShare]] = []

    def stir(self, now: float) -> None:
        """Count its silence, which ends now or has lasted too long."""
        if self.waiting and (silence := now - self.since) >= STANDSTILL_SECONDS:
            self.standing_seconds += silence


class ClientShares:
    """Which clients wait for which links. Each waits at one link at a time: the first that holds it back.

    Methods that let clients go on return their names: the caller looks at each again in the same round.
    """

    def __init__(self, backlogs: Mapping[str, Backlog], silent_seconds: float = SILENT_SECONDS) -> None:
        self.backlogs, self.silent_seconds = backlogs, silent_seconds
        self._links: dict[str, _LinkState] = {}
        self._waited_for: dict[str, _LinkState] = {}
        self._order = count()

    def must_wait(self, share: ClientShare, name: str, now: float, *, is_starved: bool = True) -> bool:
        """Whether some link has still to acknowledge what this client had published at its last renewal.

        `is_starved`: it has used half of its credit. A wait before that costs it nothing, and tells nothing of links.
        """
        is_waiting = self._must_wait(share, name, now)
        if is_waiting and is_starved and share.starved_from is None:
            share.starved_from = now
        return is_waiting

    def _must_wait(self, share: ClientShare, name: str, now: float) -> bool:
        if share.waits_for:
            return True
        for key, point in list(share.points.items()):
            backlog, link = self.backlogs.get(key), self._links.get(key)
            if backlog is None or link is None or backlog.acked >= point or self._is_silent(link, share, now):
                del share.points[key]
                continue
            self._wait(share, name, key, link, now)
            return True
        return False

    def _is_silent(self, link: _LinkState, share: ClientShare, now: float) -> bool:
        """Whether a link is known to be silent, or has been all the time that this client has waited for others."""
        if share.waited_from is not None and max(share.waited_from, link.heard) + self.silent_seconds <= now:
            link.is_silent = True
        return link.is_silent

    def _wait(self, share: ClientShare, name: str, key: str, link: _LinkState, now: float) -> None:
        if share.waited_from is None:
            share.waited_from = now
        share.waits_for, share.standing_before = key, link.standing_seconds
        since = max(share.waited_from, link.heard)
        link.since = min(link.since, since) if link.waiting else since
        heapq.heappush(link.waiting, (share.points[key], next(self._order), name, share))
        self._waited_for[key] = link

    def renewed(self, share: ClientShare, now: float) -> None:
        """Start the next wait: for what the links have been offered by now."""
        share.points.clear()
        for key in sorted(share.needed_by):
            if (backlog := self.backlogs.get(key)) is not None and backlog.acked < backlog.offered:
                share.points[key] = backlog.offered
                backlog.ask()
                link = self._links.get(key)
                if link is None:
                    link = self._links[key] = _LinkState()
                link.delay.ask(backlog.offered, now)
        share.needed_by.clear()

    # -- what lets clients go on

    def acknowledged(self, backlog: Backlog, now: float) -> Iterable[str]:
        """The link has acknowledged something. The cost is in those that go on, not in those that wait."""
        link = self._links.get(backlog.key)
        if link is None:
            return ()
        link.stir(now)
        link.is_silent, link.heard, link.since = False, now, now
        link.delay.acknowledged(backlog.acked, now)
        names: list[str] = []
        while link.waiting and link.waiting[0][0] <= backlog.acked:
            _, _, name, share = heapq.heappop(link.waiting)
            names.append(_release(name, share, link, now))
        if not link.waiting:
            self._waited_for.pop(backlog.key, None)
        return names

    def lost(self, key: str, now: float) -> Iterable[str]:
        """The link is over."""
        link = self._links.pop(key, None)
        return () if link is None else self._release_all(key, link, now)

    def expire(self, now: float) -> Iterable[str]:
        """Links that have been silent for too long hold no client back until they acknowledge something."""
        if not self._waited_for:
            return ()
        silent = [(key, link) for key, link in self._waited_for.items() if now >= link.since + self.silent_seconds]
        for _, link in silent:
            link.is_silent = True
        return [name for key, link in silent for name in self._release_all(key, link, now)]

    def _release_all(self, key: str, link: _LinkState, now: float) -> list[str]:
        self._waited_for.pop(key, None)
        link.stir(now)
        waiting, link.waiting = sorted(link.waiting), []
        return [_release(name, share, link, now) for _, _, name, share in waiting]

    def wake_at(self) -> float:
        """When the next link has been silent for too long; infinity if no client waits."""
        return min((link.since + self.silent_seconds for link in self._waited_for.values()), default=float("inf"))


def _release(name: str, share: ClientShare, link: _LinkState, now: float) -> str:
    share.waits_for, share.waited_until = "", now
    share.standing_seconds += link.standing_seconds - share.standing_before
    share.unavoidable_seconds = max(share.unavoidable_seconds, link.delay.shortest_seconds)
    return name
