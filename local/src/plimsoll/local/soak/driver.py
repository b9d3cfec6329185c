"""Hand-overs driven by their commands alone: what a mediator says on the wire, without its plans and policies.

What is wanted is in the book before it is said, said again until the head tells a final state, and gone on with by the
next driver, which has a higher epoch. A head that has started anew has lost its sessions: they have failed, and what
became of their members is for those who serve them to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from plimsoll.core import records as r

REPEAT_SECONDS = 0.3
FINAL = ("done", "aborted", "failed")
RANKS = {state: rank for rank, state in enumerate(("", "unknown", "preparing", "ready", "cutting", "cut", *FINAL))}

Step = Literal["prepare", "cut", "abort"]
Tell = Callable[[str, r.Command], None]
"""Say a command to a head; it may be lost."""


class Handover(msgspec.Struct, kw_only=True):
    """One hand-over as the book has it; times by the driver's clock.

    `until`: it goes no further by itself than to this state.
    `waits`: seconds from the first attached member to the cut, for the others to follow.
    """

    session: str
    head: str
    head_epoch: int
    plan: r.HandoverPlan
    began_at: float
    wanted: Step = "prepare"
    until: Literal["ready", "done"] = "done"
    waits: float = 1.0
    state: str = ""
    members: list[tuple[str, str]] = []
    reason: str = ""
    ready_at: float | None = None
    ended_at: float | None = None

    @property
    def is_final(self) -> bool:
        return self.state in FINAL

    @property
    def seconds(self) -> float:
        return (self.ended_at or self.began_at) - self.began_at


class Book:
    """What outlives a driver: hand-overs by session, in a file if there is one, written before what rests on it."""

    def __init__(self, path: Path | None = None) -> None:
        self.handovers: dict[str, Handover] = {}
        self._path = path
        if path is not None and path.exists():
            for one in msgspec.json.decode(path.read_bytes(), type=list[Handover]):
                self.handovers[one.session] = one

    def write(self, one: Handover) -> None:
        self.handovers[one.session] = one
        if self._path is not None:
            beside = self._path.with_name(self._path.name + ".new")
            beside.write_bytes(msgspec.json.encode(list(self.handovers.values())))
            beside.replace(self._path)

    def forget(self, session: str) -> None:
        """Of no more concern; only books without a file may forget."""
        del self.handovers[session]


class Driver:
    """One life of a driver; `epoch` is above that of every driver before it. `moved_on` is called at each new state."""

    def __init__(
        self, epoch: int, book: Book, tell: Tell, moved_on: Callable[[Handover], None] = lambda one: None
    ) -> None:
        self.epoch, self.book = epoch, book
        self._tell, self._moved_on = tell, moved_on
        self._number = 0
        self._due = {one.session: 0.0 for one in book.handovers.values() if not one.is_final}
        self._heard: set[str] = set()

    def begin(
        self, head: str, head_epoch: int, plan: r.HandoverPlan, now: float, *,
        until: Literal["ready", "done"] = "done", waits: float = 1.0,
    ) -> Handover:  # fmt: skip
        """Ask for a hand-over."""
        self._number += 1
        one = Handover(
            session=f"{self.epoch}.{self._number}", head=head, head_epoch=head_epoch, plan=plan, began_at=now,
            until=until, waits=waits,
        )  # fmt: skip
        self.book.write(one)
        self._say(one, now)
        return one

    def want(self, session: str, step: Step, now: float) -> None:
        """Go on with a hand-over: cut, or abort what can be undone."""
        one = self.book.handovers[session]
        if not one.is_final:
            one.wanted = step
            self.book.write(one)
            self._say(one, now)

    def tick(self, now: float) -> None:
        """Say again what is due."""
        for session in [session for session, at in self._due.items() if at <= now]:
            one = self.book.handovers[session]
            if self._may_cut(one, now):
                one.wanted = "cut"
                self.book.write(one)
            self._say(one, now)

    def heard(self, head: str, told: r.Outcome, now: float) -> None:
        """What a head says of one of the hand-overs. One of an older command of another driver says nothing."""
        one = self.book.handovers.get(told.session)
        if one is None or one.is_final or one.head != head:
            return
        if told.state == "failed":
            code = told.reason.partition(":")[0]
            if code not in ("starting", "mediator-epoch"):
                self._end(one, "failed", told, now)
        elif told.head_epoch != one.head_epoch:
            self._end(one, "failed", told, now)
        elif told.state == "unknown":
            if one.wanted != "prepare" or one.state:
                self._end(one, "failed", told, now)
        elif RANKS[told.state] >= RANKS[one.state]:
            self._goes_on(one, told, now)

    def _goes_on(self, one: Handover, told: r.Outcome, now: float) -> None:
        was, one.state, one.members = one.state, told.state, list(told.members)
        one.reason = told.reason or one.reason
        if one.is_final:
            self._end(one, told.state, told, now)
            return
        if told.state == "ready" and one.ready_at is None:
            one.ready_at = now
        self._heard.add(one.session)
        if self._may_cut(one, now):
            self.want(one.session, "cut", now)
        if one.state != was:
            self._moved_on(one)

    def _may_cut(self, one: Handover, now: float) -> bool:
        """Whether it is time: all are attached, or the others have had theirs."""
        if one.wanted != "prepare" or one.until == "ready" or one.state != "ready":
            return False
        waiting = any(state == "preparing" for _, state in one.members)
        return not waiting or now >= (one.ready_at or now) + one.waits

    def _end(self, one: Handover, state: str, told: r.Outcome, now: float) -> None:
        one.state, one.ended_at, one.reason = state, now, told.reason or one.reason
        one.members = list(told.members) or one.members
        self._due.pop(one.session, None)
        self.book.write(one)
        self._moved_on(one)

    def _say(self, one: Handover, now: float) -> None:
        self._due[one.session] = now + REPEAT_SECONDS
        inherited = not one.session.startswith(f"{self.epoch}.") and one.session not in self._heard
        step: Literal["prepare", "cut", "abort", "ask"] = "ask" if inherited else one.wanted
        plan = one.plan if step == "prepare" else None
        self._tell(one.head, r.Command(self.epoch, one.head_epoch, one.session, step, plan))


class Listings:
    """Whom edges serve, asked page by page. `send`: says a SERVING to a head."""

    def __init__(self, send: Callable[[str, r.Serving], None]) -> None:
        self._send = send
        self._ids = 0
        self._asked: dict[int, tuple[str, str, list[str], float]] = {}
        self.complete: dict[str, list[str]] = {}

    def ask(self, head: str, edge: str, now: float) -> None:
        """Ask anew; the answer will stand in `complete`."""
        self.complete.pop(edge, None)
        self._asked = {number: asked for number, asked in self._asked.items() if asked[1] != edge}
        self._page(head, edge, [], now)

    def ask_all(self, edges: Iterable[tuple[str, str]], now: float) -> None:
        for head, edge in edges:
            self.ask(head, edge, now)

    def heard(self, head: str, served: r.Served, now: float) -> None:
        asked = self._asked.pop(served.id, None)
        if asked is None:
            return
        names = [*asked[2], *served.subscribers]
        if served.more and served.subscribers:
            self._page(head, served.edge, names, now)
        else:
            self.complete[served.edge] = names

    def tick(self, now: float) -> None:
        """Ask again what has not been answered."""
        for number, (head, edge, names, at) in list(self._asked.items()):
            if now - at > REPEAT_SECONDS:
                del self._asked[number]
                self._page(head, edge, names, now)

    def _page(self, head: str, edge: str, names: Sequence[str], now: float) -> None:
        self._ids += 1
        self._asked[self._ids] = (head, edge, list(names), now)
        self._send(head, r.Serving(self._ids, edge, names[-1] if names else ""))
