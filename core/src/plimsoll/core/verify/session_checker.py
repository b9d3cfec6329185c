"""I5 for balancing sessions: each ends by its deadline in a final phase, with an outcome for every member.

A checker takes the stored states of sessions, in the order in which they were stored, and judges at any time. It is
small enough to run beside a mediator: its counts are the counters of production.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence

from plimsoll.core.verify.observations import Observation
from plimsoll.core.verify.verdict import LawViolation

UNCUT_OUTCOMES = ("stayed", "away", "gone", "unknown")
"""Outcomes of members that no cut took from the source, as far as is known."""

FINAL_PHASES = ("Succeeded", "Failed", "RolledBack", "Rejected")
MOVING_PHASES = ("Preparing", "Cutting", "Draining")
EXCLUSIVE_PHASES = ("Negotiating", "Sampling", *MOVING_PHASES, "Stabilizing")
"""Phases in which a session keeps its brokers from other sessions."""

PHASE_TRANSITIONS: Mapping[str, Sequence[str]] = {
    "": ("Requested",),
    "Requested": ("Negotiating", "Rejected"),
    "Negotiating": ("Sampling", "Succeeded", "Rejected"),
    "Sampling": ("Planned", "Preparing", "Rejected"),  # approved before, it is not planned again
    "Planned": ("Requested", "Negotiating", "Preparing", "Succeeded", "Rejected"),
    "Preparing": (*MOVING_PHASES, "Stabilizing", "Failed", "RolledBack"),
    "Cutting": (*MOVING_PHASES, "Stabilizing", "Failed", "RolledBack"),
    "Draining": (*MOVING_PHASES, "Stabilizing", "Failed", "RolledBack"),
    "Stabilizing": ("Preparing", "Succeeded", "Failed", "RolledBack"),  # a drain goes another round
    **dict.fromkeys(FINAL_PHASES, ()),  # another attempt counts as another
}


class SessionStateObserved(Observation, frozen=True, tag="session"):
    """A session as it was stored. `deadline`: when its phase must end. `planned` and `counts` are of this attempt.

    `brokers` are those that it reserves while it runs; a parent's include its children's. `sources`: those of them that
    subscribers leave, which children of one parent may share. `ended`: it was over.
    """

    uid: str
    parent: str
    phase: str
    attempt: int
    deadline: float
    ended: bool
    brokers: Sequence[str]
    planned: int
    counts: Mapping[str, int]
    at: float
    sources: Sequence[str] = ()


class SessionChecker:
    """Judges sessions. `slack_seconds`: how long after its deadline an end may be stored."""

    def __init__(self, slack_seconds: float = 1.0) -> None:
        self.slack_seconds = slack_seconds
        self.ended: Tally[str] = Tally()
        """Ends, by phase."""

        self.outcomes: Tally[str] = Tally()
        """Members of sessions that have ended, by outcome."""

        self.violations: list[LawViolation] = []
        self._last: dict[str, SessionStateObserved] = {}
        self._overdue: set[str] = set()

    def add(self, seen: SessionStateObserved) -> None:
        """Take one stored state."""
        last = self._last.get(seen.uid)
        self._last[seen.uid] = seen
        self._check_transition(last, seen)
        if not (last is not None and last.ended and seen.ended and last.attempt == seen.attempt):
            self._check_time(seen, seen.at)  # an end that was in time may be stored again with more detail
        self._check_brokers(seen)
        if seen.ended and (last is None or not last.ended or last.attempt != seen.attempt):
            self._check_end(seen)
            self.ended[seen.phase] += 1
            self.outcomes.update(seen.counts)

    def forget(self, uid: str) -> None:
        """Drop a session whose object was deleted."""
        self._last.pop(uid, None)
        self._overdue.discard(uid)

    def judge(self, now: float) -> Sequence[LawViolation]:
        """All violations until now, overdue sessions included."""
        for seen in self._last.values():
            if not seen.ended:
                self._check_time(seen, now)
        return self.violations

    @property
    def open(self) -> int:
        """Sessions that have not ended."""
        return sum(not seen.ended for seen in self._last.values())

    def _add(self, law: str, seen: SessionStateObserved, text: str, at: float) -> None:
        self.violations.append(LawViolation(law, f"session {seen.uid}", text, at))

    def _check_transition(self, last: SessionStateObserved | None, seen: SessionStateObserved) -> None:
        before = last.phase if last is not None else ""
        if last is not None and seen.attempt != last.attempt:
            if seen.attempt < last.attempt:
                self._add("I8", seen, f"attempt {seen.attempt} comes after attempt {last.attempt}", seen.at)
        elif last is not None and last.ended and not seen.ended and last.phase != "Planned":
            self._add("I8", seen, f"goes on in {seen.phase} after its end as {last.phase}", seen.at)
        elif before != seen.phase and seen.phase not in _reachable(before):
            self._add("I8", seen, f"goes from {before or 'nothing'} to {seen.phase}", seen.at)

    def _check_time(self, seen: SessionStateObserved, now: float) -> None:
        if now > seen.deadline + self.slack_seconds and seen.uid not in self._overdue:
            if seen.ended and seen.at != now:
                return
            self._overdue.add(seen.uid)
            self._add("I5", seen, f"had a deadline at {seen.deadline:g} and is in {seen.phase} at {now:g}", now)

    def _check_brokers(self, seen: SessionStateObserved) -> None:
        if seen.ended or seen.phase not in EXCLUSIVE_PHASES:
            return
        for other in self._last.values():
            family = other.uid in (seen.uid, seen.parent) or other.parent == seen.uid
            shared = set(other.brokers) & set(seen.brokers)
            if seen.parent and other.parent == seen.parent:
                shared -= set(other.sources) & set(seen.sources)
            if shared and not family and not other.ended and other.phase in EXCLUSIVE_PHASES:
                text = f"shares {', '.join(sorted(shared))} with session {other.uid}"
                self._add("I4", seen, text, seen.at)

    def _check_end(self, seen: SessionStateObserved) -> None:
        told = sum(seen.counts.values())
        cut = told - sum(seen.counts.get(outcome, 0) for outcome in UNCUT_OUTCOMES)
        if seen.phase not in (*FINAL_PHASES, "Planned"):
            self._add("I5", seen, f"ended in {seen.phase}, which is no end", seen.at)
        if told > seen.planned:
            self._add("I8", seen, f"planned {seen.planned} and reports {told}", seen.at)
        if cut and seen.phase in ("RolledBack", "Rejected", "Planned"):
            self._add("I8", seen, f"is {seen.phase}, and {cut} have left the source", seen.at)
        if seen.phase == "Succeeded" and told < seen.planned:
            self._add("I8", seen, f"succeeded, and {seen.planned - told} of {seen.planned} have no outcome", seen.at)


def _reachable(phase: str) -> set[str]:
    """Phases that may be stored next: several may pass between two stored ones."""
    reached: set[str] = set()
    new = set(PHASE_TRANSITIONS[phase])
    while new:
        reached |= new
        new = {after for each in new for after in PHASE_TRANSITIONS[each]} - reached
    return reached
