"""Session states: values that are stored in the status of the object, and read again after a restart.

A `Session` is the whole intent: every command follows from a stored one. `encode` and `decode` convert it to and from
plain mappings, with camelCase names, times in seconds since 1970, and without fields that have their default.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from plimsoll.core.policies.model.load import Metric, Resource
from plimsoll.core.protocol.messages import Outcome
from plimsoll.core.session.queue_order import Origin, Turn, turn

Phase = Literal[
    "Requested", "Negotiating", "Sampling", "Planned", "Preparing", "Cutting", "Draining", "Stabilizing",
    "Succeeded", "Failed", "RolledBack", "Rejected",
]  # fmt: skip
PHASES: Final[tuple[Phase, ...]] = Phase.__args__  # type: ignore[attr-defined]
SessionKind = Literal["move", "balance", "drain", "spread", "shuffle", "clusters"]
"""What a session does.

`move`: named or counted subscribers go from edge to edge. `balance`: a policy chooses them. `drain`: all subscribers
leave some edges, in rounds. `spread`: subscribers go over several edges. `shuffle`: one plan for all edges of one or
two clusters. `clusters`: moves no subscriber itself, its edges balance with those of another cluster.
"""
FinalPhase = Literal["Succeeded", "Failed", "RolledBack", "Rejected"]
FINAL_PHASES: Final = ("Succeeded", "Failed", "RolledBack", "Rejected")
MOVING_PHASES: Final = ("Preparing", "Cutting", "Draining")
OUTCOMES: Final = ("moved", "stayed", "returned", "detached", "unknown")
"""Outcomes of a member. `unknown`: its head has lost the batch, and neither edge lists it."""

LOST_BEFORE_CUT: Final = "again"
"""A member of a batch that a head has lost before its cut: it goes into another batch."""

LOST_BATCHES_AT_MOST: Final = 3
"""Batches that heads may lose by restarts before an attempt gives up."""

NOTHING_TO_MOVE: Final = "NothingToMove"
TEMPORARY_STAYS: Final = {"InAnotherSession", "MovedRecently"}
"""Reasons of a plan for which a subscriber stays now, and may move soon."""

STATE_RANKS: Final = {"": 0, "preparing": 1, "ready": 2, "cutting": 3, "cut": 4, "done": 5, "aborted": 5}
MEMBER_RANKS: Final = {"": 0, "preparing": 1, "attached": 2, "cutting": 3, "cut": 4} | dict.fromkeys(OUTCOMES, 5)
"""OUTCOMEs may be late, repeated or out of order: a state of a lower rank than the known one is old."""


_R = TypeVar("_R", bound="_StoredStruct")


class _StoredStruct(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class PlannedPair(_StoredStruct, frozen=True, kw_only=True):
    """Members that move from one edge to another, in this order. A later `wave` begins when those before have ended."""

    source: str
    target: str
    source_head: str
    target_head: str
    members: list[str]
    wave: int = 0

    @property
    def is_across(self) -> bool:
        return self.source_head != self.target_head


class LoadFigures(_StoredStruct, frozen=True, kw_only=True):
    """The loads that a policy balances: utilisations as ratios, the matching delay in seconds."""

    input: float
    output: float
    match_seconds: float


class Forecast(_StoredStruct, frozen=True, kw_only=True):
    """An edge before and after a plan: its higher utilisation and its subscribers, as predicted and as measured.

    `before`, `after` and `measured` have its loads one by one in plans of a policy.
    """

    edge: str
    utilization_before: float
    utilization_after: float
    subscribers_before: int
    subscribers_after: int
    utilization_measured: float | None = None
    subscribers_measured: int | None = None
    before: LoadFigures | None = None
    after: LoadFigures | None = None
    measured: LoadFigures | None = None


class Offer(_StoredStruct, frozen=True, kw_only=True):
    """An edge that could be the target, and the metric to balance with it, of which the two differ by `difference`.

    `overloaded`: resources of the source that need relief. `answer` is empty until there is one: `OK`, or why not.
    """

    edge: str
    metric: Metric
    difference: float
    overloaded: list[Resource] = []
    asked_at: float | None = None
    answer: str = ""
    message: str = ""


class MoveGroup(_StoredStruct, frozen=True, kw_only=True):
    """The next `count` members of a plan, and why they move; `what`: their subscription."""

    count: int
    reason: str
    what: str = ""


class StayGroup(_StoredStruct, frozen=True, kw_only=True):
    """Subscribers that a policy considered and did not move, and why; `kind` is the reason in a word."""

    kind: str
    reason: str
    count: int
    what: str = ""


class SessionPlan(_StoredStruct, frozen=True, kw_only=True):
    """The moves of an attempt. `hash` covers the pairs and their members in order; `rejected`: who stays, by reason.

    In plans of a policy, `moves` has the reasons of the moves in the order of the members, `stays` those of the others,
    and `stop` why the plan is not longer. A plan with `faults` is not executed.
    """

    hash: str
    pairs: list[PlannedPair]
    made_at: float
    rejected: dict[str, list[str]] = {}
    forecasts: list[Forecast] = []
    drain_seconds: float = 0.0
    handover: Literal["drain", "replay"] = "drain"
    why: str = ""
    policy: str = ""
    metric: str = ""
    moves: list[MoveGroup] = []
    stays: list[StayGroup] = []
    stop: str = ""
    faults: list[str] = []

    @property
    def members(self) -> int:
        return sum(len(pair.members) for pair in self.pairs)


class AuditTotals(_StoredStruct, frozen=True, kw_only=True):
    """Counts of deliveries by moved subscribers; `subscribers` have reported, of others nothing is known.

    `lost`: due, and not given to the application. `suppressed`: delivered again, and not given to it twice.
    """

    subscribers: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    suppressed: int = 0


def sum_audits(audits: Iterable[AuditTotals | None]) -> AuditTotals:
    """The sums of all audits that are known."""
    known = [audit for audit in audits if audit is not None]
    return AuditTotals(**{name: sum(getattr(audit, name) for audit in known) for name in AuditTotals.__struct_fields__})


class Batch(_StoredStruct, frozen=True, kw_only=True):
    """One hand-over of some members: `id` is its name on the wire, EPOCH.NUMBER.

    `intent` is what the mediator wants: `resolve` lists the subscribers of both edges, as the head has lost the batch.
    `state` is that of the last OUTCOME, empty before the first; `members` has the state of each member. `since`: when
    the intent last changed. `ready_at`: when the first member was attached. `cut_at`: when the cut was first wanted;
    before that no member can have moved.
    """

    id: str
    head: str
    head_epoch: int
    source: str
    target: str
    target_head: str
    replay: bool
    prepare_seconds: float
    drain_seconds: float
    begun_at: float
    members: dict[str, str]
    why: str = ""
    predicted_seconds: float = 0.0
    intent: Literal["prepare", "cut", "abort", "resolve"] = "prepare"
    state: str = ""
    reason: str = ""
    since: float = 0.0
    ready_at: float | None = None
    cut_at: float | None = None
    ended_at: float | None = None
    audit: AuditTotals | None = None

    @property
    def epoch(self) -> int:
        """The epoch of the mediator that began it."""
        return int(self.id.partition(".")[0])

    def wanting(self, intent: Literal["cut", "abort", "resolve"], now: float) -> Batch:
        """The batch with another intent. The time of the first cut stays: from then on members may have moved."""
        cut_at = now if intent == "cut" and self.cut_at is None else self.cut_at
        return replace(self, intent=intent, since=now, cut_at=cut_at)

    def progressed(self, outcome: Outcome, now: float) -> Batch:
        """The batch after its head's OUTCOME; the same one if that is old or has no news."""
        if STATE_RANKS[outcome.state] < STATE_RANKS[self.state]:
            return self
        members = dict(self.members)
        for name, state in outcome.members:
            if name in members and MEMBER_RANKS.get(state, 0) > MEMBER_RANKS.get(members[name], 0):
                members[name] = state
        reason = outcome.reason or self.reason
        if (outcome.state, members, reason) == (self.state, self.members, self.reason):
            return self
        ready_at = now if self.ready_at is None and outcome.state == "ready" else self.ready_at
        return replace(self, state=outcome.state, members=members, reason=reason, ready_at=ready_at)

    def located(self, at_source: set[str], at_target: set[str]) -> Batch:
        """The batch after both edges have listed their subscribers.

        A member in both lists, or in neither, is under way: its outcome stays open.
        """
        members = dict(self.members)
        for name, state in self.members.items():
            if state not in OUTCOMES and (name in at_source) != (name in at_target):
                members[name] = "moved" if name in at_target else "stayed"
        return self if members == self.members else replace(self, members=members)

    def ended(self, rest: str, now: float) -> Batch:
        """The batch at its end. Members without an outcome get `rest`; without a cut, `unknown` means they stayed."""
        if rest == "unknown" and self.cut_at is None:
            rest = "stayed"
        members = {name: state if state in OUTCOMES else rest for name, state in self.members.items()}
        return replace(self, members=members, ended_at=now)


class ChildSession(_StoredStruct, frozen=True, kw_only=True):
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


class PastAttempt(_StoredStruct, frozen=True, kw_only=True):
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


class SessionVerdict(_StoredStruct, frozen=True, kw_only=True):
    """Why no further batch begins; a batch under way is still ended. `again`: another attempt may succeed."""

    reason: str
    message: str
    again: bool = False


class Session(_StoredStruct, frozen=True, kw_only=True):
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
        return self.kind in ("drain", "spread", "shuffle", "clusters")

    @property
    def chooses_by_policy(self) -> bool:
        return self.kind in ("balance", "shuffle")

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

    def moved_since(self, at: float) -> Iterator[str]:
        """Subscribers moved later than `at`, in this attempt or before."""
        for batch in self.batches:
            if batch.ended_at is not None and batch.ended_at > at:
                yield from (name for name, state in batch.members.items() if state == "moved")
        for attempt in self.history:
            if attempt.ended_at > at:
                yield from attempt.moved

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
            return self.plan.members if self.plan is not None else 0
        return sum(c.members if c.round == self.round else c.counts.get("moved", 0) for c in self.children)

    @property
    def is_running(self) -> bool:
        """Whether it takes part in balancing now, and keeps its brokers from other sessions."""
        return not self.is_over and self.phase in ("Negotiating", "Sampling", *MOVING_PHASES, "Stabilizing")

    @property
    def has_cut(self) -> bool:
        """Whether a member may have moved: from then on the session rolls forward."""
        return any(number for state, number in self.counts().items() if state != "stayed")

    @property
    def accepted_offer(self) -> Offer | None:
        """The offer that an edge has accepted."""
        return next((offer for offer in self.offers if offer.answer == "OK"), None)

    @property
    def only_pair(self) -> PlannedPair:
        """The pair of a session between two edges."""
        if self.plan is None or len(self.plan.pairs) != 1:
            raise AssertionError("a session between two edges has a plan of one pair")
        return self.plan.pairs[0]

    @property
    def pending_members(self) -> list[str]:
        """Members of the only pair that have no outcome; while no batch is under way, those still to be moved."""
        outcomes = self.outcomes()
        return [name for name in self.only_pair.members if name not in outcomes]

    @property
    def found_nothing_to_move(self) -> bool:
        """Whether its policy found nothing to move, which holds until the loads change."""
        return (
            self.plan is not None and self.reason == NOTHING_TO_MOVE and not set(self.plan.rejected) & TEMPORARY_STAYS
        )

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

    def past_attempt(self) -> PastAttempt:
        """The current attempt as it goes into the history."""
        return PastAttempt(
            number=self.attempt,
            phase=self.phase,
            reason=self.reason,
            message=self.message,
            started_at=self.requested_at if self.started_at is None else self.started_at,
            ended_at=self.phase_at if self.ended_at is None else self.ended_at,
            planned=self.plan.members if self.plan is not None else 0,
            counts={state: number for state, number in self.counts().items() if number},
            moved=[name for name, state in self.outcomes().items() if state == "moved"],
            audit=self.audit() if self.counts()["moved"] else None,
        )


_SESSION_TIMES = ("requested_at", "queued_at", "phase_at", "deadline_at", "started_at", "moving_at", "retry_at")
_OFFER_TIMES = ("asked_at",)
_BATCH_TIMES = ("begun_at", "since", "ready_at", "cut_at", "ended_at")


def shift_back(session: Session, seconds: float) -> Session:
    """The session with all its times earlier by `seconds`."""
    batches = [_shifted(batch, _BATCH_TIMES, seconds) for batch in session.batches]
    offers = [_shifted(offer, _OFFER_TIMES, seconds) for offer in session.offers]
    return replace(_shifted(session, _SESSION_TIMES, seconds), batches=batches, offers=offers)


def _shifted(record: _R, names: tuple[str, ...], seconds: float) -> _R:
    return replace(record, **{name: at - seconds for name in names if (at := getattr(record, name)) is not None})


def encode(session: Session) -> dict[str, Any]:
    """A session as plain mappings, lists and scalars."""
    plain: dict[str, Any] = msgspec.to_builtins(session)
    return plain


def decode(plain: Any) -> Session:
    """Read what `encode` wrote, in this version or in the one before.

    Raises:
        ValueError: naming the place and the value found.

    """
    try:
        return msgspec.convert(_with_kind(plain), Session)
    except msgspec.ValidationError as error:
        raise ValueError(f"this is not a stored session: {error}") from error


_FLAGS_BEFORE_KINDS: Final[tuple[tuple[str, SessionKind], ...]] = (
    ("isShuffle", "shuffle"), ("isDrain", "drain"), ("between", "clusters"), ("byPolicy", "balance"),
    ("isParent", "spread"),
)  # fmt: skip


def _with_kind(plain: Any) -> Any:
    """Sessions stored before there were kinds have flags. Unread, a drain under way would come back as a move."""
    if not isinstance(plain, Mapping) or "kind" in plain:
        return plain
    kind = next((kind for flag, kind in _FLAGS_BEFORE_KINDS if plain.get(flag)), "move")
    return {**plain, "kind": kind}
