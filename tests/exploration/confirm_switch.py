"""A head with a disk and a standby whose `confirm` is changed while it runs: a model whose every state is visited.

With Both what a round says waits for a sync of the disk and for the standby; with Either only for the standby, as long
as one is in sync. The log itself says whether all waits for syncs: a mark before the first entry, and another one at
each change. What is written and not synced is lost when the machine of the head stops; then the head starts again from
its disk, or its standby is promoted, or both have stopped. A head that finds that its log may have forgotten something
says so. Rules are switched off by name (`without`), to show that the search finds the violation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tests.exploration.search import Result, ViolationError, search, visit

ENTRY, WAITS, RELAXED = "entry", "waits", "relaxed"


class Config(NamedTuple):
    """`entries`: rounds that log something. `changes`: of the setting. `comings`: of a standby, to be in sync."""

    entries: int = 3
    changes: int = 2
    comings: int = 2
    starts_relaxed: bool = False
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class World:
    """`log`: entries and marks as they are written; `synced`: how many of them; `stored`: how many the standby has.

    `relaxes`: what the setting says; `has_read`: what the head has read of it. `is_in_sync`: as the head takes it.
    `waits_for`: how much of the log has to be synced before anything leaves that is held now. `sent`: the last record
    that some peer knows of. `is_over`: what has been found after the machine has stopped.
    """

    config: Config
    log: tuple[str, ...]
    synced: int
    relaxes: bool
    has_read: bool
    stored: int = 0
    is_in_sync: bool = False
    waits_for: int = 0
    sent: int = 0
    is_over: str = ""
    left: tuple[int, int, int] = (0, 0, 0)

    @staticmethod
    def initial(config: Config) -> World:
        mark = RELAXED if config.starts_relaxed else WAITS
        left = (config.entries, config.changes, config.comings)
        return World(config, (mark,), 0, config.starts_relaxed, config.starts_relaxed, waits_for=1, left=left)

    def is_off(self, rule: str) -> bool:
        return rule in self.config.without

    def uses(self, index: int) -> World:
        left = list(self.left)
        left[index] -= 1
        return replace(self, left=(left[0], left[1], left[2]))

    @property
    def is_relaxed(self) -> bool:
        """Whether the standby's word is enough now."""
        return self.has_read and self.is_in_sync

    # -- steps

    def steps(self) -> list[tuple[Any, ...]]:
        if self.is_over:
            return []
        entries, changes, comings = self.left
        found: list[tuple[Any, ...]] = []
        if entries:
            found.append(("round",))
        if changes:
            found.append(("change",))
        if self.has_read != self.relaxes:
            found.append(("read",))
        found += [("sync", end) for end in range(self.synced + 1, len(self.log) + 1)]
        if self.stored < len(self.log):
            found.append(("store",))
        if comings and not self.is_in_sync:
            found.append(("come",))
        if self.is_in_sync:
            found.append(("go",))
        if self._leaves() > self.sent:
            found.append(("send",))
        found += [("fault", what, end) for end in range(self.synced, len(self.log) + 1) for what in ("stop", "lose")]
        if self.is_in_sync:
            found.append(("fault", "promote", 0))
        return found

    def step(self, step: tuple[Any, ...]) -> World:
        match step:
            case ("round",):
                return self.uses(0).written(ENTRY)
            case ("change",):
                return replace(self.uses(1), relaxes=not self.relaxes)
            case ("read",):
                return self.read()
            case ("sync", end):
                return replace(self, synced=end)
            case ("store",):
                return replace(self, stored=self.stored + 1)
            case ("come",):
                return replace(self.uses(2), is_in_sync=self.stored == len(self.log))
            case ("go",):
                return self.went()
            case ("send",):
                return self.send()
            case ("fault", what, end):
                return self.stopped(what, end)
        raise ValueError(step)

    def written(self, record: str) -> World:
        """What a round logs; the output of the round is held until it may leave."""
        w = replace(self, log=(*self.log, record))
        if not w.is_relaxed or (record != ENTRY and not w.is_off("a mark is synced before anything leaves")):
            return replace(w, waits_for=len(w.log))
        return w

    def read(self) -> World:
        """The head learns of the setting, and the log says so before it counts."""
        w = replace(self, has_read=self.relaxes)
        if self.is_relaxed and not w.is_relaxed:
            w = w.waiting_for_all()
        if w.is_off("the log says whether all waits for syncs"):
            return w
        if not self.relaxes and w.is_off("what was relaxed is waited for before the log says that all waits"):
            return replace(w, log=(*w.log, WAITS), waits_for=self.waits_for)
        return w.written(RELAXED if self.relaxes else WAITS)

    def waiting_for_all(self) -> World:
        return replace(self, waits_for=len(self.log))

    def went(self) -> World:
        """The store says that the standby is not to be promoted: the head goes on alone."""
        w = replace(self, is_in_sync=False)
        if self.is_relaxed and not self.is_off("all that was relaxed is waited for when the standby has gone"):
            return w.waiting_for_all()
        return w

    def send(self) -> World:
        leaves = self._leaves()
        if not self.is_relaxed and self.synced < leaves:
            raise ViolationError(f"{leaves} records become known to others, and {self.synced} are on the disk")
        return replace(self, sent=leaves)

    def _leaves(self) -> int:
        """Up to which record what depends on the log may leave the head."""
        most = len(self.log) if not self.is_in_sync else self.stored
        return most if self.synced >= self.waits_for else self.sent

    def stopped(self, what: str, end: int) -> World:
        """The machine has stopped, and its disk has this much; or it is lost, and the standby is promoted."""
        if what == "promote":
            if self.stored < self.sent:
                raise ViolationError(f"{self.sent} records are known to others, and the standby has {self.stored}")
            return replace(self, is_over="promoted")
        kept = self.log[:end]
        says_all = next((mark for mark in reversed(kept) if mark != ENTRY), RELAXED) == WAITS
        if what == "stop" and says_all and end < self.sent:
            raise ViolationError(f"{self.sent} records are known to others, the log has {end} and takes that for all")
        return replace(self, is_over="whole" if says_all else "unsure")

    # -- laws

    def check(self) -> None:
        """Steps check theirs."""

    def check_end(self) -> None:
        """A world ends with its machine."""

    def outcomes(self) -> list[str]:
        return [self.is_over] if self.is_over else []


def explore(config: Config) -> Result:
    """Visit every state of a world."""
    return search(World.initial(config), visit)
