"""What of a session outlives its mediator: values that go into the object's status, and come back after a restart.

A `Session` is the whole intent: nothing is commanded that does not follow from one that has been stored. `encode` and
`decode` take it to and from plain mappings. Names are camelCase there, times are seconds since 1970, and what equals
its default is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from plimsoll.core.policies.fleet import Metric, Resource

Phase = Literal[
    "Requested", "Negotiating", "Sampling", "Planned", "Preparing", "Cutting", "Draining", "Stabilizing",
    "Succeeded", "Failed", "RolledBack", "Rejected",
]  # fmt: skip
PHASES: Final[tuple[Phase, ...]] = Phase.__args__  # type: ignore[attr-defined]
End = Literal["Succeeded", "Failed", "RolledBack", "Rejected"]
FINAL: Final = ("Succeeded", "Failed", "RolledBack", "Rejected")
MOVING: Final = ("Preparing", "Cutting", "Draining")
OUTCOMES: Final = ("moved", "stayed", "returned", "detached", "unknown")
"""How a member ends. `unknown`: the head has forgotten, and neither end serves it."""

AGAIN: Final = "again"
"""A member of a batch that a head has lost before its cut: it goes into another batch."""


_R = TypeVar("_R", bound="_Record")


class _Record(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class Pair(_Record, frozen=True, kw_only=True):
    """Who moves from one edge to another, in this order. Pairs of a later `wave` begin when those before have ended."""

    source: str
    target: str
    source_head: str
    target_head: str
    members: list[str]
    wave: int = 0

    @property
    def is_across(self) -> bool:
        return self.source_head != self.target_head


class Loads(_Record, frozen=True, kw_only=True):
    """What a policy balances: utilisations as ratios, the matching delay in seconds."""

    input: float
    output: float
    match_seconds: float


class Forecast(_Record, frozen=True, kw_only=True):
    """An edge before and after: its higher utilisation and its subscribers; `measured` is after the fact.

    `before`, `after` and `measured` have its loads one by one, where a policy has planned.
    """

    edge: str
    utilization_before: float
    utilization_after: float
    subscribers_before: int
    subscribers_after: int
    utilization_measured: float | None = None
    subscribers_measured: int | None = None
    before: Loads | None = None
    after: Loads | None = None
    measured: Loads | None = None


class Offer(_Record, frozen=True, kw_only=True):
    """An edge that could take, and the load to be balanced with it. `difference`: how far theirs are apart, as a ratio.

    `overloaded`: what of the source wants relief. `answer` is empty until there is one: `OK`, or why not.
    """

    edge: str
    metric: Metric
    difference: float
    overloaded: list[Resource] = []
    asked_at: float | None = None
    answer: str = ""
    message: str = ""


class Moves(_Record, frozen=True, kw_only=True):
    """The next `count` members of a plan, and why they move; `what` they ask for."""

    count: int
    reason: str
    what: str = ""


class Stay(_Record, frozen=True, kw_only=True):
    """Subscribers whom a policy looked at and did not move, and why; `kind` is the reason in a word."""

    kind: str
    reason: str
    count: int
    what: str = ""


class Plan(_Record, frozen=True, kw_only=True):
    """What will be done. `hash` covers the pairs and their members in order; `rejected` has who stays, by reason.

    Where a policy has chosen, `moves` says why the members of the pair move, in their order, `stays` why others do not,
    and `stop` why it is no more. With `faults` it is not carried out.
    """

    hash: str
    pairs: list[Pair]
    made_at: float
    rejected: dict[str, list[str]] = {}
    forecasts: list[Forecast] = []
    drain_seconds: float = 0.0
    handover: Literal["drain", "replay"] = "drain"
    why: str = ""
    policy: str = ""
    metric: str = ""
    moves: list[Moves] = []
    stays: list[Stay] = []
    stop: str = ""
    faults: list[str] = []

    @property
    def members(self) -> int:
        return sum(len(pair.members) for pair in self.pairs)


class Audit(_Record, frozen=True, kw_only=True):
    """What moved subscribers have counted of their deliveries; of `subscribers` it is known, of others nothing is.

    `lost`: due to them, and not given to the application. `suppressed`: came again, and was not given to it again.
    """

    subscribers: int = 0
    lost: int = 0
    duplicated: int = 0
    reordered: int = 0
    suppressed: int = 0


def summed(audits: Iterable[Audit | None]) -> Audit:
    """All of these together."""
    known = [audit for audit in audits if audit is not None]
    return Audit(**{name: sum(getattr(audit, name) for audit in known) for name in Audit.__struct_fields__})


class Batch(_Record, frozen=True, kw_only=True):
    """One hand-over of some members: `id` is its name on the wire, EPOCH.NUMBER.

    `intent` is what the mediator wants of it: `resolve` asks both ends whom they serve, as the head has forgotten.
    `state` is what the head said last, empty before that; `members` has what it said of each. `since`: when the intent
    became what it is. `ready_at`: when the first member was attached. `cut_at`: when the cut was first wanted; before
    that nobody can have been moved.
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
    audit: Audit | None = None

    @property
    def epoch(self) -> int:
        """The epoch of the mediator that began it."""
        return int(self.id.partition(".")[0])


class Child(_Record, frozen=True, kw_only=True):
    """A session that this one owns: made by the shell as an object of this name, known by its uid from then on.

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
    audit: Audit | None = None


class Attempt(_Record, frozen=True, kw_only=True):
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
    audit: Audit | None = None


class Verdict(_Record, frozen=True, kw_only=True):
    """Why no further batch begins; what is under way still ends. `again`: another attempt may be worth while."""

    reason: str
    message: str
    again: bool = False


class Session(_Record, frozen=True, kw_only=True):
    """All that is known of a session.

    `queued_at` orders those that wait for the same brokers. `deadline_at`: what it does now ends by then, be it waiting
    in the queue, an attempt, or waiting for approval; before `retry_at` there is no next attempt. `holds_until`: its
    brokers are kept from others for so long after its end. `asked` is a fingerprint of what cannot change once it is
    planned. `approved`: the hash of the plan that runs or may run. `wanted`: how many should move in all attempts, once
    that is known. `may_retry`: it ended in a way that another attempt could mend. `by_policy`: a policy chooses whom
    and where to, and `offers` has the edges in the order in which they are asked. `triggered`: a broker wanted it.
    `between`: the two clusters that it joins, so that their edges balance with one another.
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
    is_parent: bool = False
    is_drain: bool = False
    is_shuffle: bool = False
    by_policy: bool = False
    triggered: bool = False
    between: list[str] = []
    offers: list[Offer] = []
    sources: list[str] = []
    targets: list[str] = []
    wanted: int | None = None
    plan: Plan | None = None
    batches: list[Batch] = []
    verdict: Verdict | None = None
    round: int = 0
    children: list[Child] = []
    attempt: int = 1
    may_retry: bool = False
    history: list[Attempt] = []
    conditions: list[dict[str, Any]] = []

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None

    @property
    def batch(self) -> Batch | None:
        """The batch that is under way."""
        return self.batches[-1] if self.batches and self.batches[-1].ended_at is None else None

    @property
    def brokers(self) -> set[str]:
        """Whom it keeps busy while it runs; a parent leaves targets to its children."""
        return set(self.sources) if self.is_parent else {*self.sources, *self.targets}

    def outcomes(self) -> dict[str, str]:
        """The outcome of each member of this attempt that has one; the last batch of a member counts."""
        ends = {name: state for batch in self.batches for name, state in batch.members.items()}
        return {name: state for name, state in ends.items() if state in OUTCOMES}

    def moved_since(self, at: float) -> Iterator[str]:
        """Those that were moved later than this, in this attempt or before."""
        for batch in self.batches:
            if batch.ended_at is not None and batch.ended_at > at:
                yield from (name for name, state in batch.members.items() if state == "moved")
        for attempt in self.history:
            if attempt.ended_at > at:
                yield from attempt.moved

    def counts(self) -> dict[str, int]:
        """Members of this attempt by outcome; of a parent, those of its children together.

        Whom an earlier round has not moved is in the next one again, and counts there.
        """
        counts = dict.fromkeys(OUTCOMES, 0)
        for state in self.outcomes().values():
            counts[state] += 1
        for child in self.children:
            for state, number in child.counts.items():
                if state == "moved" or child.round == self.round:
                    counts[state] += number
        return counts

    def audit(self) -> Audit:
        """What the moved subscribers of this attempt have counted; of a parent, those of its children together."""
        return summed([*(batch.audit for batch in self.batches), *(child.audit for child in self.children)])

    @property
    def planned(self) -> int:
        """How many this attempt is to move, each once."""
        if not self.children:
            return self.plan.members if self.plan is not None else 0
        return sum(c.members if c.round == self.round else c.counts.get("moved", 0) for c in self.children)


_SESSION_TIMES = ("requested_at", "queued_at", "phase_at", "deadline_at", "started_at", "moving_at", "retry_at")
_OFFER_TIMES = ("asked_at",)
_BATCH_TIMES = ("begun_at", "since", "ready_at", "cut_at", "ended_at")


def earlier(session: Session, seconds: float) -> Session:
    """The session as if all that it did had been so much earlier."""
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
    """Read what `encode` wrote.

    Raises:
        ValueError: saying what was found and where.

    """
    try:
        return msgspec.convert(plain, Session)
    except msgspec.ValidationError as error:
        raise ValueError(f"this is not the record of a session: {error}") from error
