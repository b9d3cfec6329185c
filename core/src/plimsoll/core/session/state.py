"""Session states: values that are stored in the status of the object, and read again after a restart.

A `Session` is the whole intent: every command follows from a stored one (`stored_session.py`).
"""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from plimsoll.core.protocol.departures import UNCUT_OUTCOMES, UNKNOWN
from plimsoll.core.session.batch import LOST_BEFORE_CUT, OUTCOMES, AuditTotals, Batch, sum_audits
from plimsoll.core.session.queue_order import Origin, Turn, turn
from plimsoll.core.session.session_plan import Offer, SessionPlan

Phase = Literal[
    "Requested", "Negotiating", "Sampling", "Planned", "Preparing", "Cutting", "Draining", "Stabilizing",
    "Succeeded", "Failed", "RolledBack", "Rejected",
]  # fmt: skip
PHASES: Final[tuple[Phase, ...]] = get_args(Phase)
SessionKind = Literal[
    "move", "balance", "drain", "spread", "shuffle", "rebalance", "clusters", "split", "publishers", "slices"
]
"""What a session does.

`move`: named or counted subscribers go from edge to edge. `balance`: a policy chooses them. `drain`: all subscribers
leave some edges, in rounds. `spread`: subscribers go over several edges. `shuffle`: one plan for all edges of one or
two clusters. `rebalance`: the same by the policy of a cluster, if that plans for all edges at once. `clusters`: moves
no subscriber itself, its edges balance with those of another cluster. `split`: bundles are divided, and nothing moves.
`publishers`: publishers go from the head of a cluster to those of others. `slices`: slices of a consumer group go from
consumer to consumer.
"""
FLEET_WIDE_KINDS: Final = ("shuffle", "rebalance")
FinalPhase = Literal["Succeeded", "Failed", "RolledBack", "Rejected"]
FINAL_PHASES: Final = ("Succeeded", "Failed", "RolledBack", "Rejected")
MOVING_PHASES: Final = ("Preparing", "Cutting", "Draining")
LOST_BATCHES_AT_MOST: Final = 3
"""Batches that heads may lose by restarts before an attempt gives up."""

NOTHING_TO_MOVE: Final = "NothingToMove"
TEMPORARY_STAYS: Final = {"InAnotherSession", "MovedRecently"}
"""Reasons of a plan for which a subscriber stays now, and may move soon."""


class ChildSession(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A session that this one owns: created by the shell as an object of this name, and known by its uid from then on.

    `round`: of several plans, one after the other; `wave`: of one plan.
    """

    name: str
    source: str
    target: str
    members: int
    round: int = 0
    wave: int = 0
    uid: str = ""
    phase: Phase = "Requested"
    reason: str = ""
    counts: dict[str, int] = {}
    audit: AuditTotals | None = None

    def may_have_left(self, outcome: str) -> bool:
        """Whether members with this outcome may have left the source; if it has rolled back, none has."""
        is_undone = outcome == UNKNOWN and self.phase in ("RolledBack", "Rejected")
        return not is_undone and outcome not in UNCUT_OUTCOMES


class PastAttempt(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """An attempt that has ended, and after which there was another."""

    number: int
    phase: Phase
    reason: str
    message: str
    started_at: float
    ended_at: float
    planned: int
    counts: dict[str, int] = {}
    moved: list[str] = []
    audit: AuditTotals | None = None


class SessionVerdict(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Why no further batch begins; a batch under way is still ended. `again`: another attempt may succeed."""

    reason: str
    message: str
    again: bool = False


class Session(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The whole state of a session.

    `origin` and `queued_at` order the sessions that wait (`queue_order`). By `deadline_at` ends what it does now: the
    wait in the queue, an attempt, or the wait for approval. Before `retry_at` no next attempt begins; until
    `holds_until` its brokers are kept from others although it has ended. `asked` is a fingerprint of those parts of
    the request that cannot change under a plan. `approved`: the hash of the plan that runs or may run. `wanted`: how
    many subscribers should move in all attempts, once that is known. `may_retry`: it ended in a way that another
    attempt could mend. `offers` has the edges in the order in which a policy asks them. `triggered`: a broker or the
    detection between clusters wanted it, no user. `between`: the two clusters that a session of the kind `clusters`
    joins.
    """

    uid: str
    name: str
    parent: str = ""
    generation: int = 0
    phase: Phase = "Requested"
    reason: str = ""
    message: str = ""
    requested_at: float
    queued_at: float
    phase_at: float
    deadline_at: float
    started_at: float | None = None
    moving_at: float | None = None
    ended_at: float | None = None
    retry_at: float | None = None
    holds_until: float | None = None
    spent: dict[str, float] = {}
    asked: str = ""
    approved: str = ""
    kind: SessionKind = "move"
    triggered: bool = False
    origin: Origin = "user"
    between: list[str] = []
    offers: list[Offer] = []
    sources: list[str] = []
    targets: list[str] = []
    wanted: int | None = None
    plan: SessionPlan | None = None
    batches: list[Batch] = []
    verdict: SessionVerdict | None = None
    round: int = 0
    children: list[ChildSession] = []
    attempt: int = 1
    may_retry: bool = False
    history: list[PastAttempt] = []
    conditions: list[dict[str, Any]] = []

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None

    @property
    def turn(self) -> Turn:
        """Its place in the queue."""
        return turn(self.origin, self.queued_at, self.uid)

    @property
    def is_waiting(self) -> bool:
        """Whether it waits in the queue: at its beginning, or once its plan has been approved."""
        return not self.is_over and (self.phase == "Requested" or (self.phase == "Planned" and self.approved != ""))

    @property
    def is_parent(self) -> bool:
        """Whether its moves are sessions of their own, which it owns."""
        return self.kind in ("drain", "spread", *FLEET_WIDE_KINDS, "clusters")

    @property
    def chooses_by_policy(self) -> bool:
        return self.kind == "balance" or self.is_fleet_wide

    @property
    def is_fleet_wide(self) -> bool:
        """Whether one plan is made for all of its edges, which it reserves for its children."""
        return self.kind in FLEET_WIDE_KINDS

    @property
    def batch(self) -> Batch | None:
        """The batch that is under way."""
        return self.batches[-1] if self.batches and self.batches[-1].ended_at is None else None

    @property
    def brokers(self) -> set[str]:
        """The edges it reserves while it runs; a parent leaves targets to its children."""
        return set(self.sources) if self.is_parent else {*self.sources, *self.targets}

    def outcomes(self) -> dict[str, str]:
        """The outcome of each member of this attempt that has one; the last batch of a member counts."""
        ends = {name: state for batch in self.batches for name, state in batch.members.items()}
        return {name: state for name, state in ends.items() if state in OUTCOMES}

    def counts(self) -> dict[str, int]:
        """Members of this attempt by outcome; of a parent, those of its children together.

        A subscriber that an earlier round did not move is in the next one again, and counts there.
        """
        counts = dict.fromkeys(OUTCOMES, 0)
        for state in self.outcomes().values():
            counts[state] += 1
        for child in self.children:
            for state, number in child.counts.items():
                if state == "moved" or child.round == self.round:
                    counts[state] += number
        return counts

    def audit(self) -> AuditTotals:
        """The audit of this attempt; of a parent, that of its children together."""
        return sum_audits([*(batch.audit for batch in self.batches), *(child.audit for child in self.children)])

    @property
    def planned(self) -> int:
        """How many subscribers this attempt is to move, each counted once."""
        if not self.children:
            return self._planned_members
        return sum(c.members if c.round == self.round else c.counts.get("moved", 0) for c in self.children)

    @property
    def _planned_members(self) -> int:
        if self.plan is None:
            return 0
        if self.kind != "publishers" or not self.round:
            return self.plan.members
        now = {name for pair in self.plan.pairs for name in pair.members}
        return len(now | self.outcomes().keys())  # those of earlier rounds have moved

    @property
    def member_noun(self) -> str:
        """What it moves."""
        return self.kind if self.kind in ("publishers", "slices") else "subscribers"

    @property
    def is_running(self) -> bool:
        """Whether it takes part in balancing now, and keeps its brokers from other sessions."""
        return not self.is_over and self.phase in ("Negotiating", "Sampling", *MOVING_PHASES, "Stabilizing")

    @property
    def has_cut(self) -> bool:
        """Whether a member may have moved: from then on the session rolls forward."""
        children = [
            number
            for child in self.children
            for state, number in child.counts.items()
            if child.may_have_left(state) and (state == "moved" or child.round == self.round)
        ]
        return any(batch.has_cut for batch in self.batches) or any(children)

    @property
    def accepted_offer(self) -> Offer | None:
        """The offer that an edge has accepted: the last one, since no subscriber could go by those before."""
        return next((offer for offer in reversed(self.offers) if offer.answer == "OK"), None)

    # The engine takes steps until a session is the same object: these return `self` where nothing changes.

    def entered(self, phase: Phase, now: float, reason: str = "", message: str = "") -> Session:
        """The session in another phase; the time in the last one is added to `spent`."""
        spent = {**self.spent, self.phase: self.spent.get(self.phase, 0.0) + now - self.phase_at}
        spent.setdefault(phase, 0.0)
        return replace(self, phase=phase, phase_at=now, reason=reason, message=message, spent=spent)

    def because(self, reason: str, message: str) -> Session:
        """The session with a reason for its phase."""
        if (self.reason, self.message) == (reason, message):
            return self
        return replace(self, reason=reason, message=message)

    def stopped(self, reason: str, message: str, *, again: bool = False) -> Session:
        """The session with a verdict, so that no further batch begins; the first verdict holds."""
        if self.verdict is not None:
            return self
        return replace(self, verdict=SessionVerdict(reason=reason, message=message, again=again))

    def with_batch(self, batch: Batch, now: float) -> Session:
        """The session with its last batch as it is now, in the phase of that batch."""
        session = replace(self, batches=[*self.batches[:-1], batch])
        if batch.intent == "cut" and batch.ended_at is None:
            phase: Phase = "Draining" if batch.state == "cut" else "Cutting"
            if session.phase != phase:
                session = session.entered(phase, now)
        return session if batch.ended_at is None else session._stopped_by_batch(batch)

    def _stopped_by_batch(self, batch: Batch) -> Session:
        """A batch that was refused, or one lost batch too many, ends the attempt."""
        lost = sum(LOST_BEFORE_CUT in one.members.values() for one in self.batches)
        if lost > LOST_BATCHES_AT_MOST:
            return self.stopped("HeadRestarts", f"{lost} batches were lost: {batch.reason}", again=True)
        refused = not batch.state and batch.cut_at is None and LOST_BEFORE_CUT not in batch.members.values()
        return self.stopped("Refused", batch.reason, again=True) if refused and batch.reason else self
