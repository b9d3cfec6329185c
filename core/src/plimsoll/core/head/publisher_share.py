"""Fair turns between the publishers of a head: how much credit each gets, and which links it waits for.

A publication waits at a link behind all that came before it. So a publisher gets more credit only when the links that
needed its publications have acknowledged what it had published when it got credit the time before: it has at most two
windows under way, and a flood waits for the links instead of filling them. A link that its publications did not need
holds nothing back, nor does one that is lost or silent.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Protocol

FIRST_WINDOW = 128
SMALLEST_WINDOW = 8
"""A window is not cut below this, so that a publisher at a slow link needs no round trip for each publication."""

WINDOW_BYTES = 1024 * 1024
"""A window is bounded to about this by the mean size of what was published since the last renewal."""

LONG_WAIT_SECONDS = 0.05
"""A wait for links above this cuts the window: what waits at a link makes the publications of all others wait."""

GROWTH_STEPS = 64
"""Renewals without a long wait after which a publisher that has been held has the largest window again."""

SILENT_SECONDS = 1.0


class Backlog(Protocol):
    """What a link has been offered of the log, and what it has acknowledged: the last position of each."""

    key: str
    offered: int
    acked: int

    def ask(self) -> None:
        """Have what has been offered by now acknowledged at once."""


@dataclass(slots=True, eq=False)
class PublisherShare:
    """The credit of one publisher. `window`: what it may have next; `granted`: what it got last.

    `needed_by`: the links that needed its publications since then. `points`: the positions, by link, that have to be
    acknowledged before it gets more. `waits_for`: the link at which it is waiting, or empty. `was_held`: it has used up
    its credit while it waited, at least once; `is_held`: it has now.
    """

    window: int = FIRST_WINDOW
    granted: int = 0
    numbered: int = 0
    size: int = 0
    """Number of its last publication at the last renewal, and bytes published since."""
    mean_bytes: float = 0.0
    needed_by: set[str] = field(default_factory=set)
    points: dict[str, int] = field(default_factory=dict)
    waits_for: str = ""
    waited_from: float | None = None
    waited_until: float = 0.0
    was_held: bool = False
    is_held: bool = False

    def restart(self) -> None:
        """Number from 1 again. What links have still to acknowledge stays."""
        self.numbered = self.size = 0

    def hold(self) -> bool:
        """Note that it has used up its credit and waits for links; True if that is new."""
        is_new, self.is_held, self.was_held = not self.is_held, True, True
        return is_new

    def renew(self, last_seq: int, largest: int, most: int) -> int:
        """The window from here on. `largest`: of any publisher; `most`: what the quota of this one allows."""
        if last_seq > self.numbered:
            self.mean_bytes = self.size / (last_seq - self.numbered)
            self._adapt(largest)
        self.window = min(self.window, largest)
        self.numbered, self.size = last_seq, 0
        self.is_held, self.waited_from = False, None
        fitting = int(WINDOW_BYTES / self.mean_bytes) if self.mean_bytes else largest
        self.granted = max(1, min(self.window, fitting, most))
        return self.granted

    def _adapt(self, largest: int) -> None:
        waited = 0.0 if self.waited_from is None else self.waited_until - self.waited_from
        if waited > LONG_WAIT_SECONDS:
            self.was_held = True
            self.window = max(int(self.window * min(0.5, LONG_WAIT_SECONDS / waited)), SMALLEST_WINDOW)
        elif self.was_held:
            self.window += max(largest // GROWTH_STEPS, 1)
        else:
            self.window *= 2


@dataclass(slots=True)
class _WaitedLink:
    """Publishers that wait for one link, by position. `since`: it has acknowledged nothing, and one has waited."""

    since: float
    waiting: list[tuple[int, int, str, PublisherShare]] = field(default_factory=list)


class PublisherShares:
    """Which publishers wait for which links. Each waits at one link at a time: the first that holds it back.

    Methods that let publishers go on return their names: the caller looks at each again in the same round.
    """

    def __init__(self, backlogs: Mapping[str, Backlog], silent_seconds: float = SILENT_SECONDS) -> None:
        self.backlogs, self.silent_seconds = backlogs, silent_seconds
        self._waited: dict[str, _WaitedLink] = {}
        self._silent: set[str] = set()
        self._heard: dict[str, float] = {}
        """When each link has last acknowledged something."""
        self._order = count()

    def must_wait(self, share: PublisherShare, name: str, now: float) -> bool:
        """Whether some link has still to acknowledge what this publisher had published at its last renewal."""
        if share.waits_for:
            return True
        for key, point in list(share.points.items()):
            backlog = self.backlogs.get(key)
            if backlog is None or backlog.acked >= point or self._is_silent(key, share.waited_from, now):
                del share.points[key]
                continue
            if share.waited_from is None:
                share.waited_from = now
            self._wait(share, name, key, point)
            return True
        return False

    def _is_silent(self, key: str, waited_from: float | None, now: float) -> bool:
        """Whether a link is known to be silent, or has been all the time that this publisher has waited for others."""
        if waited_from is not None and max(waited_from, self._heard.get(key, 0.0)) + self.silent_seconds <= now:
            self._silent.add(key)
        return key in self._silent

    def _wait(self, share: PublisherShare, name: str, key: str, point: int) -> None:
        share.waits_for = key
        since = max(share.waited_from or 0.0, self._heard.get(key, 0.0))
        link = self._waited.setdefault(key, _WaitedLink(since))
        link.since = min(link.since, since)
        heapq.heappush(link.waiting, (point, next(self._order), name, share))

    def renewed(self, share: PublisherShare) -> None:
        """Begin to wait anew, for what the links have been offered by now."""
        share.points.clear()
        for key in sorted(share.needed_by):
            if (backlog := self.backlogs.get(key)) is not None and backlog.acked < backlog.offered:
                share.points[key] = backlog.offered
                backlog.ask()
        share.needed_by.clear()

    # -- what lets publishers go on

    def acknowledged(self, backlog: Backlog, now: float) -> Iterable[str]:
        """The link has acknowledged something. The cost is in those that go on, not in those that wait."""
        self._silent.discard(backlog.key)
        self._heard[backlog.key] = now
        link = self._waited.get(backlog.key)
        if link is None:
            return ()
        link.since = now
        names: list[str] = []
        while link.waiting and link.waiting[0][0] <= backlog.acked:
            _, _, name, share = heapq.heappop(link.waiting)
            names.append(_release(name, share, now))
        if not link.waiting:
            del self._waited[backlog.key]
        return names

    def lost(self, key: str, now: float) -> Iterable[str]:
        """The link is over."""
        self._silent.discard(key)
        self._heard.pop(key, None)
        return self._release_all(key, now)

    def expire(self, now: float) -> Iterable[str]:
        """Links that have been silent for too long hold no publisher back until they acknowledge something."""
        if not self._waited:
            return ()
        silent = [key for key, link in self._waited.items() if now >= link.since + self.silent_seconds]
        self._silent.update(silent)
        return [name for key in silent for name in self._release_all(key, now)]

    def _release_all(self, key: str, now: float) -> list[str]:
        link = self._waited.pop(key, None)
        return [] if link is None else [_release(name, share, now) for _, _, name, share in sorted(link.waiting)]

    def wake_at(self) -> float:
        """When the next link has been silent for too long; infinity if no publisher waits."""
        return min((link.since + self.silent_seconds for link in self._waited.values()), default=float("inf"))


def _release(name: str, share: PublisherShare, now: float) -> str:
    share.waits_for, share.waited_until = "", now
    return name
