"""A declared group that is removed, at a head that keeps its log and restarts: a model whose every state is visited.

A mediator knows whether the group is declared, and says so to the head; the configuration that a process is started
with may be older than that. Publications are accepted at any time, with the group's stamp or without. One slice is
given to a consumer, which finishes items and acknowledges; `idle` is a member without a slice, `next` one that comes
later. The head and the consumer may die. What a step of the head writes is on its disk before the step is seen. Rules
are switched off by name (`without`), to show that the search finds the violation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from tests.exploration.search import Result, ViolationError, search, visit

NONE, DECLARED, REMOVED, MADE = "none", "declared", "removed", "made"
PLAIN, STAMPED, OWED = 0, 1, 2
"""Publications without a stamp, with one, and with one after the slice had begun: those are owed to consumers."""

OWNER, IDLE, NEXT = "owner", "idle", "next"


class Config(NamedTuple):
    """`changes`: of the declaration. `crashes`: of the head. `dies`: the first consumer may. `may_make`: members may
    make groups, and so bring one back. `passes`: the later consumer hands the slice over to `idle`."""

    changes: int = 1
    publications: int = 2
    crashes: int = 1
    dies: bool = False
    may_make: bool = False
    passes: bool = False
    without: tuple[str, ...] = ()


class Member(NamedTuple):
    """`got`: the items of the log up to which it has finished; `from_`: where it began, `marked`: up to where items are
    marked for it. `known_to`: the head's life that knows it. `end`: what it was told at last."""

    is_live: bool = True
    has_slice: bool = False
    got: int = 0
    marked: int = 0
    known_to: int = 0
    is_over: bool = False
    end: str = ""


class Disk(NamedTuple):
    """What a head finds when it starts. `place`: of the slice, -1 if it has never begun as far as the disk says;
    `marked`: what may have been given."""

    group: str = NONE
    place: int = -1
    marked: int = 0


FIRST_DISK = Disk(DECLARED, 0)
FIRST_OWNER, FIRST_IDLE = Member(has_slice=True, known_to=1), Member(known_to=1)
FIRST_NEXT = Member(is_live=False)


@dataclass(frozen=True)
class State:
    """`truth`: of the mediator; `told`: what it has said to the head last; `configured`: what a process would read.

    `log`: what each publication is. `has_begun`: the slice has had a consumer. `life`: of the head, 0 while it is down.
    `waits`: members may still say what they have. `has_read`: the log counts for the lag. `finished`: items that a
    consumer has finished. `left`: how often there may still be a change, a publication, a crash, and a death.
    """

    config: Config
    truth: bool = True
    told: bool = True
    configured: bool = True
    has_heard: bool = True
    log: tuple[int, ...] = ()
    has_begun: bool = True
    life: int = 1
    lives: int = 1
    group: str = DECLARED
    place: int = 0
    holder: str = OWNER
    marked: int = 0
    waits: bool = False
    has_read: bool = True
    disk: Disk = FIRST_DISK
    owner: Member = FIRST_OWNER
    idle: Member = FIRST_IDLE
    next: Member = FIRST_NEXT
    finished: frozenset[int] = frozenset()
    left: tuple[int, ...] = ()

    def is_off(self, rule: str) -> bool:
        return rule in self.config.without

    @property
    def members(self) -> list[tuple[str, Member]]:
        return [(name, getattr(self, name)) for name in (OWNER, IDLE, NEXT)]

    def with_member(self, name: str, **changes: Any) -> Self:
        return replace(self, **{name: getattr(self, name)._replace(**changes)})

    def uses(self, index: int) -> Self:
        left = list(self.left)
        left[index] -= 1
        return replace(self, left=tuple(left))

    def with_group(self, group: str) -> Self:
        """The head knows another state of the group, and writes it."""
        is_kept = group in (DECLARED, REMOVED) and not self.is_off("what it was told is written")
        disk = self.disk._replace(group=group) if is_kept else Disk()
        return replace(self, group=group, disk=disk)

    def _next_item(self, each: Member) -> int | None:
        return next((n for n in range(each.got + 1, len(self.log) + 1) if self.log[n - 1] != PLAIN), None)

    def _unfinished(self) -> set[int]:
        return {number for number, kind in enumerate(self.log, 1) if kind == OWED} - self.finished

    def _lag(self) -> int:
        """Items behind the place of the slice, as far as the log has been read."""
        if self.place < 0 or not self.has_read:
            return 0
        return sum(each != PLAIN for each in self.log[self.place :])

    def _may_end(self) -> bool:
        has_heard_all = not self.waits or self.is_off("nothing ends while members may say what they have")
        knows_lag = self.has_read or self.is_off("what is left is known when the log has been read")
        return self.group == REMOVED and has_heard_all and knows_lag and not self._lag()

    def with_marks(self) -> Self:
        """All that is in the log now may have been given."""
        w = replace(self, marked=len(self.log))
        is_written = self.disk.group != NONE and not self.is_off("what may have been given is written at once")
        return replace(w, disk=self.disk._replace(marked=w.marked)) if is_written else w


@dataclass(frozen=True)
class World(State):
    """The steps of the mediator, the head and its members."""

    @staticmethod
    def initial(config: Config) -> World:
        first = World(config, left=(config.changes, config.publications, config.crashes, config.dies))
        if first.is_off("that a slice has begun is written at once"):
            return replace(first, disk=Disk(DECLARED))
        return first

    # -- steps

    def steps(self) -> list[tuple[Any, ...]]:
        if self.group == MADE:
            return []
        found: list[tuple[Any, ...]] = []
        changes, publications, crashes, dies = self.left
        if changes:
            found.append(("change",))
        if self.configured != self.truth:
            found.append(("configure",))
        found += self._of_head(publications, crashes) if self.life else [("start",)]
        found += [(step, name) for name, each in self.members for step in self._of_member(name, each)]
        if dies:
            found.append(("fault", "die"))
        return found

    def _of_head(self, publications: int, crashes: int) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        if publications:
            found.append(("publish",))
        if self.told != self.truth or not self.has_heard:
            found.append(("hear",))
        if not self.has_read:
            found.append(("read",))
        if self.waits and all(each.known_to == self.life or not each.is_live or each.end for _, each in self.members):
            found.append(("doubt",))
        if self.disk.group != NONE and self.disk.place != self.place:
            found.append(("write",))
        if self._may_end():
            found.append(("end",))
        if crashes:
            found.append(("fault", "crash"))
        return found

    def _of_member(self, name: str, each: Member) -> list[str]:
        found: list[str] = []
        if name == NEXT and not each.is_live and not each.end and not self.owner.is_live:
            found.append("come")
        if not each.is_live or each.end:
            return found
        if self.life and each.known_to != self.life:
            found.append("join")
        if each.has_slice and self._next_item(each) is not None:
            found.append("finish")
        if each.known_to == self.life and self.life:
            if self.holder == name and self.place != each.got:
                found.append("acknowledge")
            if each.is_over != (self.group == REMOVED):
                found.append("beat")
            if not self.holder and not self.waits and name != IDLE:
                found.append("assign")
            if self.config.passes and self.holder == name == NEXT and self.idle.known_to == self.life:
                found.append("hand_over")
        return found

    def step(self, step: tuple[Any, ...]) -> World:
        match step:
            case ("change",):
                return replace(self.uses(0), truth=not self.truth)
            case ("configure",):
                return replace(self, configured=self.truth)
            case ("fault", "die"):
                return self.died()
            case ("fault", "crash"):
                return self.crashed()
            case (what, *names):
                after: World = getattr(self, what)(*names)
                return after
        raise ValueError(step)

    # -- the head

    def publish(self) -> World:
        has_stamp = self.group == DECLARED
        if self.told and not has_stamp:
            raise ViolationError("a publication was accepted without the stamp of a declared group")
        kind = PLAIN if not has_stamp else OWED if self.has_begun else STAMPED
        return replace(self.uses(1), log=(*self.log, kind))

    def hear(self) -> World:
        w = replace(self, told=self.truth, has_heard=True)
        if self.truth:
            return w.with_group(DECLARED)
        return w.with_group(REMOVED) if self.group == DECLARED else w

    def read(self) -> World:
        return replace(self, has_read=True)

    def write(self) -> World:
        return replace(self, disk=self.disk._replace(place=self.place))

    def doubt(self) -> World:
        """Members have had time to say what they have; of a slice without a holder all may have been given."""
        if self.holder or self.is_off("what may have been given is marked"):
            return replace(self, waits=False)
        return replace(self, waits=False).with_marks()

    def crashed(self) -> World:
        return replace(self.uses(2), life=0, group=NONE, place=-1, holder="", marked=0, waits=False)

    def start(self) -> World:
        life, group = self.lives + 1, self.disk.group
        if self.configured:
            group = DECLARED
        elif group == DECLARED and self.is_off("what the log declares is declared until a mediator speaks"):
            group = REMOVED
        w = replace(self, life=life, lives=life, has_heard=False, waits=group != NONE, has_read=False)
        return replace(w.with_group(group), place=self.disk.place, marked=self.disk.marked)

    def end(self) -> World:
        unfinished = self._unfinished()
        if unfinished:
            raise ViolationError(f"the group ends, and {sorted(unfinished)} have been given to no consumer")
        w = replace(self.with_group(NONE), holder="", waits=False, place=-1, has_begun=False)
        for name, each in self.members:
            if each.is_live and each.known_to == self.life and not each.end:
                w = w.with_member(name, end="over", has_slice=False)
        return w

    # -- members

    def come(self, name: str) -> World:
        return self.with_member(name, is_live=True)

    def join(self, name: str) -> World:
        each: Member = getattr(self, name)
        if self.group == NONE:
            return self.with_member(name, end="unknown", has_slice=False)
        w = self.with_member(name, known_to=self.life)
        if each.has_slice and self.waits:
            w = replace(w, holder=name, place=max(each.got, self.place))
        is_new = not each.has_slice and not each.is_over
        if self.waits and not self.is_off("none is new while members may come back"):
            is_new = False
        if is_new and self.group == REMOVED and self.config.may_make:
            if name != NEXT:
                raise ViolationError("a member that was there before has brought the group back")
            return w.with_group(MADE)
        return w

    def assign(self, name: str) -> World:
        start = len(self.log) if self.place < 0 else self.place
        w = replace(self, holder=name, place=start, has_begun=True)
        if self.place < 0 and not self.is_off("that a slice has begun is written at once"):
            w = w.write()
        return w.with_member(name, has_slice=True, got=start, marked=self.marked)

    def hand_over(self, name: str) -> World:
        """In an orderly way: what the giver has not finished goes to `idle`."""
        each: Member = getattr(self, name)
        w = self.with_member(name, has_slice=False).with_member(IDLE, has_slice=True, got=each.got, marked=self.marked)
        return replace(w, holder=IDLE, place=each.got)

    def finish(self, name: str) -> World:
        each: Member = getattr(self, name)
        item = self._next_item(each)
        if item is None:
            raise ValueError("there is no item")
        if item in self.finished and item > each.marked:
            raise ViolationError(f"item {item} comes again without a mark")
        return replace(self.with_member(name, got=item), finished=self.finished | {item})

    def acknowledge(self, name: str) -> World:
        return replace(self, place=getattr(self, name).got)

    def beat(self, name: str) -> World:
        return self.with_member(name, is_over=self.group == REMOVED)

    def died(self) -> World:
        w = replace(self, left=(*self.left[:3], 0))
        w = w.with_member(OWNER, is_live=False, has_slice=False)
        if w.holder == OWNER:
            w = replace(w, holder="").with_marks()
        return w

    # -- laws

    def check(self) -> None:
        """Steps check theirs."""

    def check_end(self) -> None:
        if self.group == MADE:
            return
        unfinished = self._unfinished()
        if unfinished:
            raise ViolationError(f"{sorted(unfinished)} are never given to a consumer")
        if not self.truth and self.group != NONE:
            raise ViolationError("the group was removed, and does not end")
        if self.truth and self.group != DECLARED:
            raise ViolationError("the group is declared, and its head does not know it")
        for name, each in self.members:
            if each.end == "unknown" and name != NEXT:
                raise ViolationError(f"{name} was told that there is no such group, and not that it is over")
            if not self.truth and each.is_live and not each.end:
                raise ViolationError(f"{name} is not told that the group has ended")

    def outcomes(self) -> list[str]:
        return [f"{self.group}, {'with' if self.lives > 1 else 'without'} a restart"]


def explore(config: Config) -> Result:
    """Visit every state of a world."""
    return search(World.initial(config), visit)
