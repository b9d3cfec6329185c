"""What hand-overs were told to have come to, against what happened: laws I1, I4, I5 and I8 where subscribers move.

What happened are the owners that heads made, by a cut or by a resume, and the edges that applications were told of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from plimsoll.core.verify import observations as seen

FINAL = ("done", "aborted")
OUTCOMES = ("moved", "stayed", "returned", "detached")


class Findings(Protocol):
    def add(self, law: str, subject: str, text: str, at: float) -> None: ...


class Step(NamedTuple):
    """A head made `edge` the owner; see `Owned`."""

    at: float
    edge: str
    cause: str


@dataclass(slots=True)
class Handover:
    """One hand-over of a batch: what was asked for, and what the mediator was told at its end."""

    began: seen.HandoverBegan
    told: list[seen.HandoverTold] = field(default_factory=list)

    @property
    def ended_at(self) -> float:
        return self.told[0].at if self.told else float("inf")


class Handovers:
    """All hand-overs of a journal. `take` in the order of time; `check` once at the end."""

    def __init__(self) -> None:
        self.all: dict[str, Handover] = {}
        self.steps: dict[str, list[Step]] = {}
        self.attached: dict[str, list[tuple[float, str]]] = {}
        self.steady: seen.Steady | None = None
        self._serving: dict[tuple[str, tuple[int, int], float], str] = {}

    def owned(self, one: seen.Owned) -> None:
        self.steps.setdefault(one.subscriber, []).append(Step(one.at, one.edge, one.cause))

    def serving(self, found: Findings, one: seen.Serving) -> None:
        """I4: at one moment one edge at most delivers to a subscriber under one owner epoch."""
        other = self._serving.setdefault((one.subscriber, one.epoch, one.at), one.edge)
        if other != one.edge:
            text = f"is served by {other} and by {one.edge} under owner epoch {one.epoch}"
            found.add("I4", f"subscriber {one.subscriber}", text, one.at)

    def check(self, found: Findings) -> None:
        for session in self.all.values():
            if session.told:
                self._check(found, session)

    def check_gaps(self, found: Findings, gaps: Sequence[seen.GapTold]) -> None:
        """I1: gaps come from stated bounds, never from a move. Where no bound was met, there is none."""
        if (claim := self.steady) is None:
            return
        for gap in gaps:
            if gap.subscriber not in claim.exempt and gap.at >= claim.since:
                text = f"was told of a gap at {gap.head} {gap.low} to {gap.high} ({gap.reason}), and no bound was met"
                found.add("I1", f"subscriber {gap.subscriber}", text, gap.at)

    def _check(self, found: Findings, session: Handover) -> None:
        first, began = session.told[0], session.began
        subject = f"hand-over {began.session}"
        for again in session.told[1:]:
            if (again.state, sorted(again.members)) != (first.state, sorted(first.members)):
                found.add("I8", subject, f"ended as {first.state} {first.members}, later {again}", again.at)
        told = dict(first.members)
        if first.state not in FINAL or (first.state == "aborted" and not told):
            return  # what was undone before it was begun has no members
        if sorted(told) != sorted(began.members):
            found.add("I5", subject, f"was for {sorted(began.members)}, tells of {sorted(told)}", first.at)
        for subscriber, outcome in sorted(told.items()):
            if why := self._contradiction(session, subscriber, outcome):
                found.add("I8", subject, f"tells that {subscriber} {outcome}, but {why}", first.at)

    def _contradiction(self, session: Handover, subscriber: str, outcome: str) -> str:
        began, end = session.began, session.ended_at
        steps = [step for step in self.steps.get(subscriber, ()) if began.at <= step.at <= end]
        here = [step for step in steps if step.edge == began.target]
        if outcome not in OUTCOMES:
            return f"outcomes are {' '.join(OUTCOMES)}"
        if outcome == "moved" and not here:
            return f"no head made {began.target} its owner"
        if outcome == "moved" and not (self._resumed(here) or self._was_attached(session, subscriber)):
            return f"it was never attached at {began.target}"
        if outcome == "stayed" and any(s.cause == "cut" for s in here) and not self._others(session, subscriber):
            return f"it was cut over to {began.target}"
        if outcome == "returned" and not self._resumed(steps):
            return "it did not resume"
        if outcome == "detached" and end - began.at < began.drain_seconds:
            return f"{began.drain_seconds:g} s have not passed"
        return ""

    def _resumed(self, steps: Sequence[Step]) -> bool:
        return any(step.cause == "resume" for step in steps)

    def _was_attached(self, session: Handover, subscriber: str) -> bool:
        began = session.began
        had = self.attached.get(subscriber, ())
        return any(began.at <= at <= session.ended_at and edge == began.target for at, edge in had)

    def _others(self, session: Handover, subscriber: str) -> bool:
        """Whether another session may have moved it to the same target at that time."""
        return any(
            other is not session
            and other.began.target == session.began.target
            and subscriber in other.began.members
            and other.began.at <= session.ended_at
            and other.ended_at >= session.began.at
            for other in self.all.values()
        )
