"""A head that runs without a standby, takes one on and lets it go, as a model: `standby_head`, before and after.

Process 0 leads in no term and keeps no segments. When the setting is switched on, its file says so, after a while that
of its pod as well, and later it reads that. Then it copies its log into segments, an entry at a time while publications
go on, and is given a term. Process 1 waits to be told that it follows. When the setting is switched off the standby is
over in the store, then process 1 ends, then the file says so. A process that starts reads the file of its pod: if that
names no standby it leads at once. Clients reach the process that the store names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self

from tests.exploration.search import Result, ViolationError, search, visit
from tests.exploration.standby_head import Config, Edge, Leadership, Message, Process, Publisher, World


@dataclass(frozen=True)
class SwitchedWorld(World):
    """`wants`: the setting. `file`: as processes are to read it; `volumes`: as those of each pod have it.

    `has_read`: process 0 has read that it has a standby. `copied`: entries of its log that are in segments; `keeps`:
    all that it logs goes there. `has_pod`: there is a second one.
    """

    store: Leadership = field(default_factory=lambda: Leadership(term=0, leads=0))
    both: tuple[Process, Process] = (Process(1, "lead", 0, has_edge=True), Process())
    p: Publisher = field(default_factory=lambda: Publisher(term=0))
    e: Edge = field(default_factory=lambda: Edge(term=0))
    lives: int = 1
    wants: bool = False
    file: bool = False
    volumes: tuple[bool, bool] = (False, False)
    has_read: bool = False
    copied: int = 0
    keeps: bool = False
    has_pod: bool = False
    switches: int = 0

    # -- steps

    def steps(self) -> list[Message]:
        if self.may_lose:
            return []
        found = [step for step in super().steps() if self._may(step)]
        first, second = self.both
        if self.switches < self.config.switches:
            found.append(("fault", "switch"))
        if self.file != self.wants and self._may_write():
            found.append(("write",))
        found += [("mount", number) for number in (0, 1) if self.volumes[number] != self.file]
        if self.wants and self.file and not self.has_pod:
            found.append(("pod",))
        if not self.wants and self.has_pod and (self._is_over() or self.is_off("over-in-the-store-before-it-ends")):
            found.append(("end_pod",))
        if first.role == "lead" and not self.has_read and self.volumes[0]:
            found.append(("read",))
        if first.role == "lead" and self.has_read and not self.keeps:
            found.append(("copy",))
        if first.role == "lead" and first.term == 0 and self.has_read and self._has_ended(self.store.leads):
            found.append(("give_term",))
        if first.role == "wait" and not self.volumes[0]:
            found.append(("lead_alone",))
        may_end = self._leads() or self.is_off("removed-only-beside-a-head-that-leads")
        if not self.wants and self.store.standby and second.life and self.store.leader == 0 and may_end:
            found.append(("give_up",))
        if not self.wants and self.store.leader == 1 and self.store.standby == first.life > 0:
            found.append(("promote",))
        for name, at in (("open", self.p.at), ("attach", self.e.at)):
            if first.role == "lead" and not first.term and self.store.leader == 0 and at != (0, first.life):
                found.append((name, 0))
        return found

    def _may(self, step: Message) -> bool:
        """Whether a step of a pair can be taken: only by what is there, and has been told."""
        kind, *rest = step
        if kind == "restart":
            return rest != [1] or self.has_pod
        if kind == "begin":
            return self.wants
        if kind == "follow":
            other = self.both[1 - rest[0]]
            is_whole = self.keeps or rest[0] == 0 or self.is_off("not-in-sync-before-all-of-the-log-is-copied")
            says_so = self.volumes[1 - rest[0]] or self.is_off("one-is-admitted-while-the-heads-own-file-says-so")
            return other.term > 0 and is_whole and says_so
        return True

    def _has_ended(self, life: int) -> bool:
        return self.both[0].life != life

    def _is_over(self) -> bool:
        return self.store.leader == 0 and not self.store.standby

    def _may_write(self) -> bool:
        """The file may say that there is no standby once the second process has gone."""
        return self.wants or not self.has_pod or self.is_off("the-second-has-gone-before-the-file-says-so")

    # -- the setting

    def do_switch(self) -> Self:
        return replace(self, wants=not self.wants, switches=self.switches + 1)

    def do_write(self) -> Self:
        return replace(self, file=self.wants)

    def do_mount(self, number: int) -> Self:
        both = (self.file, self.volumes[1]) if number == 0 else (self.volumes[0], self.file)
        return replace(self, volumes=both)

    def do_pod(self) -> Self:
        """A pod that is made has the file as it is now."""
        return replace(self, has_pod=True, volumes=(self.volumes[0], self.file)).do_restart(1)

    def do_end_pod(self) -> Self:
        ended = replace(self, has_pod=False)
        w = ended.do_crash(1) if self.both[1].life else ended.without_channels("1")
        return replace(w, crashes=self.crashes, may_lose=self.may_lose)

    # -- process 0

    def do_read(self) -> Self:
        return replace(self, has_read=True)

    def do_copy(self) -> Self:
        """An entry; with the last one it has a journal."""
        copied = min(self.copied + 1, len(self.both[0].log))
        return replace(self, copied=copied, keeps=copied == len(self.both[0].log))

    def do_give_term(self) -> Self:
        life = self.both[0].life
        store = Leadership(self.store.term + 1, 0, leads=life)
        return replace(self, store=store).send("m", "0", "LEAD", store.term, life)

    def do_lead_alone(self) -> Self:
        return self.put(0, role="lead", term=0, has_edge=False)

    def do_restart(self, number: int) -> Self:
        if self.volumes[number]:
            return super().do_restart(number)
        lives = self.lives + 1
        return replace(self, lives=lives).put(number, life=lives, role="lead", term=0)

    def do_crash(self, number: int) -> Self:
        w = replace(self, has_read=False, copied=0, keeps=False) if number == 0 else self
        return super(SwitchedWorld, w).do_crash(number)

    def m_on_status(self, src: str, term: int, sync: int, standby: int) -> Self:
        """One that is not wanted any more is not noted again, however often it comes in sync."""
        return super().m_on_status(src, term, sync, standby) if self.wants else self

    def h_on_lead(self, number: int, src: str, term: int, life: int) -> Self:
        one = self.both[number]
        if one.role == "lead" and life == one.life and not one.term:
            return self.put(number, term=term)
        return super().h_on_lead(number, src, term, life)

    def h_on_follow(self, number: int, src: str, life: int, term: int, size: int) -> Self:
        w = super().h_on_follow(number, src, life, term, size)
        if number == 0 and not self.keeps:  # only without the rule
            return self._cut_short(w, src)
        return w

    def _cut_short(self, w: Self, src: str) -> Self:
        """What is not in segments yet is not sent."""
        sent = dict(w.channels).get(("0", src), ())
        missing = set(self.both[0].log[self.copied :])
        kept = tuple(message for message in sent if message[0] != "PART" or message[1] not in missing)
        channels = dict(w.channels)
        channels["0", src] = kept
        return replace(w, channels=tuple(sorted((pair, found) for pair, found in channels.items() if found)))

    # -- laws

    def check(self) -> None:
        super().check()
        if any(one.life and one.role == "lead" and not one.term for one in self.both[1:]):
            raise ViolationError("told: the second process leads, and was never told so")

    def outcomes(self) -> Iterable[str]:
        yield from super().outcomes()
        if self.switches and self.wants and self.store.standby:
            yield "taken on"
        if self.switches == 2 and not self.has_pod:
            yield "let go"


def explore(config: Config) -> Result:
    """Visit every reachable state once, breadth first."""
    first: World = SwitchedWorld(config)
    return search(first, visit)
