"""Laws I1, I4, I5 and I8 for moving subscribers: the reported outcome of each hand-over against what happened.

What happened is known from the owner changes that heads made, by a cut or by a resume, and from the edges that
applications were told to be served by.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

from plimsoll.core.verify import observations as seen
from plimsoll.core.verify.invariants import AuditFindings

FINAL_STATES = ("done", "aborted")
OUTCOMES = ("moved", "stayed", "away", "gone", "returned", "detached", "unknown")
WORD_SECONDS = 0.3
"""How long the word of a source may be on its way to its head, if that hears from it."""

ANSWER_SECONDS = 3.0
"""How long a source may take to say whether it serves a member; before that no outcome is `unknown`."""

DECIDED = ("cut", "across")
UNCUT_OUTCOMES = ("stayed", "away", "gone", "unknown")


class OwnerChange(NamedTuple):
    """A head made `edge` the owner; see `OwnerObserved`."""

    at: float
    edge: str
    cause: str


@dataclass(slots=True)
class HandoverHistory:
    """One hand-over of a batch: the request, and the results reported to the mediator."""

    began: seen.HandoverStartObserved
    results: list[seen.HandoverResultObserved] = field(default_factory=list)

    @property
    def ended_at(self) -> float:
        return self.results[0].at if self.results else float("inf")


class HandoverAudit:
    """All hand-overs of a journal. `take` observations in order of time; `check` once at the end."""

    def __init__(self, found: AuditFindings) -> None:
        self._found = found
        self._all: dict[str, HandoverHistory] = {}
        self._owner_changes: dict[str, list[OwnerChange]] = {}
        self._attachments: dict[str, list[tuple[float, str]]] = {}
        self._gap_free: seen.GapFreeClaim | None = None
        self._edges_of_epoch: dict[tuple[str, tuple[int, int]], set[str]] = {}
        self._across: dict[tuple[str, tuple[int, int]], str] = {}
        self._serving: dict[tuple[str, tuple[int, int], float], str] = {}

    def take(
        self,
        one: seen.OwnerObserved
        | seen.HandoverStartObserved
        | seen.HandoverResultObserved
        | seen.UncutMemberObserved
        | seen.AttachmentObserved
        | seen.ServingEdgeObserved
        | seen.GapFreeClaim,
    ) -> None:
        match one:
            case seen.OwnerObserved():
                self._on_owner(one)
            case seen.HandoverStartObserved():
                self._all.setdefault(one.session, HandoverHistory(one))
            case seen.HandoverResultObserved():
                self._on_result(one)
            case seen.UncutMemberObserved():
                self._on_uncut_member(one)
            case seen.AttachmentObserved():
                self._attachments.setdefault(one.subscriber, []).append((one.at, one.edge))
            case seen.ServingEdgeObserved():
                self._on_serving_edge(one)
            case seen.GapFreeClaim():
                self._gap_free = one
            case _:
                assert_never(one)

    def _on_owner(self, one: seen.OwnerObserved) -> None:
        """I4: an owner epoch belongs to one edge.

        The cause `guest` makes no owner yet: another head still decides. A decision `across` is void if its head ends
        before it has left: the source reports that it serves the subscriber as before, and its next cut has this epoch.
        """
        self._owner_changes.setdefault(one.subscriber, []).append(OwnerChange(one.at, one.edge, one.cause))
        if one.cause == "guest":
            return
        key, (incarnation, n) = (one.subscriber, one.epoch), one.epoch
        if one.cause == "report" and (void := self._across.pop((one.subscriber, (incarnation, n + 1)), None)):
            self._edges_of_epoch[one.subscriber, (incarnation, n + 1)].discard(void)
        if one.cause == "across":
            self._across[key] = one.edge
        elif one.cause == "done":
            self._across.pop(key, None)
        edges = self._edges_of_epoch.setdefault(key, set())
        edges.add(one.edge)
        if len(edges) > 1:
            text = f"owner epoch {one.epoch} belongs to {' and '.join(sorted(edges))}"
            self._found.add("I4", f"subscriber {one.subscriber}", text, one.at)

    def _on_result(self, one: seen.HandoverResultObserved) -> None:
        if (handover := self._all.get(one.session)) is None:
            self._found.add("I8", f"hand-over {one.session}", "has a result, but no mediator asked for it", one.at)
        else:
            handover.results.append(one)

    def _on_serving_edge(self, one: seen.ServingEdgeObserved) -> None:
        """I4: at most one edge at a time delivers to a subscriber under one owner epoch."""
        other = self._serving.setdefault((one.subscriber, one.epoch, one.at), one.edge)
        if other != one.edge:
            text = f"is served by {other} and by {one.edge} under owner epoch {one.epoch}"
            self._found.add("I4", f"subscriber {one.subscriber}", text, one.at)

    def _on_uncut_member(self, one: seen.UncutMemberObserved) -> None:
        """I8: an outcome without a cut says what the source knows, as far as its word can have arrived.

        `stayed` is the word of the source itself, so a head that has not heard from the source may not say it.
        """
        said_at = one.at if one.said_at is None else min(one.at, one.said_at)
        known_at = min(said_at, one.heard_at) - WORD_SECONDS
        subject = f"hand-over {one.session}"
        if one.outcome == "stayed" and one.served_at < said_at - WORD_SECONDS:
            text = f"reports that {one.subscriber} stayed, but {one.source} has not served it since {one.served_at:g}"
            self._found.add("I8", subject, text, one.at)
        elif one.outcome == "unknown":
            if one.heard_at >= one.at - WORD_SECONDS:
                text = f"reports that it is unknown where {one.subscriber} is, but it hears from {one.source}"
                self._found.add("I8", subject, text, one.at)
        elif one.outcome != "stayed" and one.missed_at < known_at:
            text = f"reports that {one.subscriber} is {one.outcome}, but {one.source} serves it since {one.missed_at:g}"
            self._found.add("I8", subject, text, one.at)

    def check(self) -> None:
        for handover in self._all.values():
            if handover.results:
                self._check(handover)

    def check_gaps(self, gaps: Sequence[seen.GapObserved]) -> None:
        """I1: gaps come from stated bounds, never from a move. As long as no bound is met there are none."""
        if (claim := self._gap_free) is None:
            return
        for gap in gaps:
            if gap.subscriber not in claim.exempt and gap.at >= claim.since:
                text = f"was told of a gap at {gap.head} {gap.low} to {gap.high} ({gap.reason}), and no bound was met"
                self._found.add("I1", f"subscriber {gap.subscriber}", text, gap.at)

    def _check(self, handover: HandoverHistory) -> None:
        first, began, found = handover.results[0], handover.began, self._found
        subject = f"hand-over {began.session}"
        for again in handover.results[1:]:
            if (again.state, sorted(again.members)) != (first.state, sorted(first.members)):
                found.add("I8", subject, f"ended as {first.state} {first.members}, later {again}", again.at)
        outcomes = dict(first.members)
        if first.state not in FINAL_STATES or (first.state == "aborted" and not outcomes):
            return  # a hand-over that was undone before it began has no members
        if sorted(outcomes) != sorted(began.members):
            found.add("I5", subject, f"was for {sorted(began.members)}, reports {sorted(outcomes)}", first.at)
        for subscriber, outcome in sorted(outcomes.items()):
            if why := self._contradiction(handover, subscriber, outcome):
                found.add("I8", subject, f"reports that {subscriber} {outcome}, but {why}", first.at)

    def _contradiction(self, handover: HandoverHistory, subscriber: str, outcome: str) -> str:
        began, end = handover.began, handover.ended_at
        steps = [step for step in self._owner_changes.get(subscriber, ()) if began.at <= step.at <= end]
        here = [step for step in steps if step.edge == began.target]
        if outcome not in OUTCOMES:
            return f"outcomes are {' '.join(OUTCOMES)}"
        if outcome == "moved" and not here:
            return f"no head made {began.target} its owner"
        if outcome == "moved" and not (self._resumed(here) or self._was_attached(handover, subscriber)):
            return f"it was never attached at {began.target}"
        is_cut = any(step.cause in DECIDED for step in here)
        if outcome in UNCUT_OUTCOMES and is_cut and not self._others(handover, subscriber):
            return f"it was cut over to {began.target}"
        if outcome == "unknown" and end - began.at < ANSWER_SECONDS:
            return f"{began.source} has not had {ANSWER_SECONDS:g} s to answer"
        if outcome == "returned" and not self._resumed(steps):
            return "it did not resume"
        if outcome == "detached" and end - began.at < began.drain_seconds:
            return f"{began.drain_seconds:g} s have not passed"
        return ""

    def _resumed(self, steps: Sequence[OwnerChange]) -> bool:
        return any(step.cause == "resume" for step in steps)

    def _was_attached(self, handover: HandoverHistory, subscriber: str) -> bool:
        began = handover.began
        had = self._attachments.get(subscriber, ())
        return any(began.at <= at <= handover.ended_at and edge == began.target for at, edge in had)

    def _others(self, handover: HandoverHistory, subscriber: str) -> bool:
        """Whether another hand-over may have moved the subscriber to the same target at that time."""
        return any(
            other is not handover
            and other.began.target == handover.began.target
            and subscriber in other.began.members
            and other.began.at <= handover.ended_at
            and other.ended_at >= handover.began.at
            for other in self._all.values()
        )
