"""What the status of a LoadBalancingSession holds, field by field: its schema is made from it.

Lists are bounded by who writes them. `record` is what a mediator goes on from, and nobody else's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from plimsoll.core.spec.about import About
from plimsoll.core.spec.quantities import Quantity
from plimsoll.core.spec.statuses import CONDITIONS, GENERATION, ConditionStatus


@dataclass(frozen=True, kw_only=True)
class OutcomesStatus:
    """Subscribers by how it ended for them."""

    moved: Annotated[int, About("Served by the target.")]
    stayed: Annotated[int, About("Served by the source, as before.")]
    returned: Annotated[int, About("Attached again by themselves meanwhile, somewhere.")]
    detached: Annotated[int, About("Did not finish in time; their places are kept for their lease.")]
    unknown: Annotated[int, About("A head has lost everything, and neither end serves them.")]


@dataclass(frozen=True, kw_only=True)
class ProgressStatus(OutcomesStatus):
    """How far it has come."""

    planned: Annotated[int, About("Subscribers that are to move.")]
    percent: Annotated[int, About("The part of them that has come to an end.", unit="percent")]
    moves_per_minute: Annotated[int, About("How fast it goes.", unit="subscribers/min")]
    eta_seconds: Annotated[int, About("How long the rest takes at this rate.", unit="seconds")]


@dataclass(frozen=True, kw_only=True)
class AuditStatus:
    """What moved subscribers have counted of their deliveries, from before their cut until they were served anew.

    Each holds what its application was given against what the log of the head has had for it. Where none has counted,
    there are no sums.
    """

    subscribers: Annotated[int, About("How many of the moved have counted; of the others nothing is known.")]
    lost: Annotated[int, About("Deliveries that were due to them and were not given to the application.")]
    duplicated: Annotated[int, About("Deliveries that the application was given more than once.")]
    reordered: Annotated[int, About("Deliveries that the application was given behind later ones.")]
    suppressed: Annotated[
        int, About("Deliveries that came again and were not given again: none within a cluster, some between clusters.")
    ]


AUDIT = About("What moved subscribers have counted of their deliveries; absent where nobody has moved.")


@dataclass(frozen=True, kw_only=True)
class PhaseTimeStatus:
    """Time in one phase."""

    phase: Annotated[str, About("The phase.")]
    milliseconds: Annotated[int, About("How long it was there.", unit="milliseconds")]


@dataclass(frozen=True, kw_only=True)
class AskedStatus:
    """An edge that was asked whether it takes, or will be."""

    name: Annotated[str, About("The edge.")]
    metric: Annotated[str, About("What is to be balanced with it: input, output or match.")]
    difference: Annotated[Quantity, About("How far the two are apart.")]
    answer: Annotated[str, About("What it said: OK, BUSY, STABILIZING, N/A, or why there is no answer.")]
    message: Annotated[str, About("Why, in a sentence.")]


@dataclass(frozen=True, kw_only=True)
class PairStatus:
    """How many move from one edge to another."""

    source: Annotated[str, About("Who gives.")]
    target: Annotated[str, About("Who takes.")]
    subscribers: Annotated[int, About("How many.")]


@dataclass(frozen=True, kw_only=True)
class RejectedStatus:
    """Subscribers that are not in the plan for one reason."""

    reason: Annotated[str, About("Why, in one word.")]
    subscribers: Annotated[int, About("How many.")]


@dataclass(frozen=True, kw_only=True)
class MovesStatus:
    """Subscribers of the same interests that move for one reason."""

    subscribers: Annotated[int, About("How many.")]
    what: Annotated[str, About("What they subscribe to.")]
    reason: Annotated[str, About("Why they move.")]


@dataclass(frozen=True, kw_only=True)
class StaysStatus(MovesStatus):
    """Subscribers that were looked at and stay."""

    kind: Annotated[str, About("Why they stay, in one word.")]


@dataclass(frozen=True, kw_only=True)
class PlanStatus:
    """The plan in brief."""

    subscribers: Annotated[int, About("Subscribers that it moves.")]
    pairs: Annotated[tuple[PairStatus, ...], About("From where to where; the first twenty pairs.")]
    handover: Annotated[str, About("How they are handed over: drain or replay.")]
    why: Annotated[str, About("Why so.")]
    rejected: Annotated[tuple[RejectedStatus, ...], About("Who is not in it, by reason.")]
    policy: Annotated[str, About("The policy that has chosen.")]
    metric: Annotated[str, About("What it balances: input, output or match; of a shuffle, the highest load.")]
    stopped: Annotated[str, About("Why it moves no more than these.")]
    moves: Annotated[tuple[MovesStatus, ...], About("Who moves, and why; the first twenty.")]
    stays: Annotated[tuple[StaysStatus, ...], About("Who stays, and why; the first twenty.")]


@dataclass(frozen=True, kw_only=True)
class LoadsStatus:
    """What a policy balances, of one edge."""

    input_percent: Annotated[int, About("Input utilisation.", unit="percent")]
    output_percent: Annotated[int, About("Output utilisation.", unit="percent")]
    match_microseconds: Annotated[int, About("Matching delay.", unit="microseconds")]


@dataclass(frozen=True, kw_only=True)
class PredictedEdgeStatus:
    """An edge before and after, as the plan has it."""

    name: Annotated[str, About("The edge.")]
    utilization_before_percent: Annotated[int, About("The higher of its utilisations before.", unit="percent")]
    utilization_after_percent: Annotated[int, About("The same after it, as predicted.", unit="percent")]
    subscribers_before: Annotated[int, About("Its subscribers before.")]
    subscribers_after: Annotated[int, About("Its subscribers after it, as predicted.")]
    before: Annotated[LoadsStatus, About("Its loads before.")]
    after: Annotated[LoadsStatus, About("Its loads after it, as predicted.")]


@dataclass(frozen=True, kw_only=True)
class PredictedStatus:
    """What was promised."""

    drain_milliseconds: Annotated[int, About("How long the source takes to deliver what it has.", unit="milliseconds")]
    edges: Annotated[tuple[PredictedEdgeStatus, ...], About("Edges before and after; the first twenty.")]


@dataclass(frozen=True, kw_only=True)
class MeasuredEdgeStatus:
    """An edge as it was measured afterwards."""

    name: Annotated[str, About("The edge.")]
    utilization_percent: Annotated[int, About("The higher of its utilisations.", unit="percent")]
    error_percent: Annotated[
        int, About("How far that is from what was predicted, in parts of its capacity.", unit="percent")
    ]
    subscribers: Annotated[int, About("Its subscribers.")]
    after: Annotated[LoadsStatus, About("Its loads.")]
    error: Annotated[LoadsStatus, About("How far they are from what was predicted.")]


@dataclass(frozen=True, kw_only=True)
class MeasuredStatus:
    """What came of it, measured when loads had settled."""

    edges: Annotated[tuple[MeasuredEdgeStatus, ...], About("Edges as they were measured; the first twenty.")]
    error_percent_max: Annotated[int, About("The largest error of an edge.", unit="percent")]
    drain_milliseconds_max: Annotated[
        int, About("The longest time from the cut of a batch to its end.", unit="milliseconds")
    ]
    drain_milliseconds_mean: Annotated[int, About("The mean of these times.", unit="milliseconds")]


@dataclass(frozen=True, kw_only=True)
class BatchesStatus:
    """Batches of subscribers that are handed over together."""

    begun: Annotated[int, About("How many have begun.")]
    ended: Annotated[int, About("How many have ended.")]
    by_replay: Annotated[int, About("How many went by replay from the head's log.")]


@dataclass(frozen=True, kw_only=True)
class BatchStatus:
    """The last batch."""

    id: Annotated[str, About("Its name on the wire: EPOCH.NUMBER.")]
    state: Annotated[str, About("What its head said last.")]
    intent: Annotated[str, About("What the mediator wants: prepare, cut, abort or resolve.")]
    subscribers: Annotated[int, About("Its subscribers.")]
    handover: Annotated[str, About("How they are handed over: drain or replay.")]
    why: Annotated[str, About("Why so.")]
    reason: Annotated[str, About("What went wrong, if something did.")]


@dataclass(frozen=True, kw_only=True)
class ChildStatus(OutcomesStatus):
    """A session that this one owns, for one pair of edges."""

    name: Annotated[str, About("The session.", refers="LoadBalancingSession")]
    source: Annotated[str, About("Who gives.")]
    target: Annotated[str, About("Who takes.")]
    planned: Annotated[int, About("Subscribers that it is to move.")]
    phase: Annotated[str, About("Where it is.")]
    reason: Annotated[str, About("Why, in one word.")]
    audit: Annotated[AuditStatus, AUDIT]


@dataclass(frozen=True, kw_only=True)
class AttemptStatus(OutcomesStatus):
    """An attempt that ended, and after which there was another."""

    number: Annotated[int, About("Which attempt.")]
    phase: Annotated[str, About("How it ended.")]
    reason: Annotated[str, About("Why, in one word.")]
    message: Annotated[str, About("Why, in a sentence.")]
    started_at: Annotated[str, About("When it began.", format="date-time")]
    ended_at: Annotated[str, About("When it ended.", format="date-time")]
    planned: Annotated[int, About("Subscribers that it was to move.")]
    audit: Annotated[AuditStatus, AUDIT]


@dataclass(frozen=True, kw_only=True)
class SessionStatus:
    """What was observed of a session."""

    observed_generation: Annotated[int, GENERATION]
    conditions: Annotated[tuple[ConditionStatus, ...], CONDITIONS]
    phase: Annotated[
        str,
        About("Where it is: Requested, Negotiating, Sampling, Planned, Preparing, Cutting, Draining, Stabilizing,"
              " Succeeded, Failed, RolledBack or Rejected. Wait for the condition Succeeded, not for a phase."),
    ]  # fmt: skip
    reason: Annotated[str, About("Why it is there, in one word; docs/reasons.md has each with its remedy.")]
    message: Annotated[str, About("Why it is there, in a sentence.")]
    attempt: Annotated[int, About("Which attempt it is, from 1.")]
    requested_at: Annotated[str, About("When it was seen first.", format="date-time")]
    started_at: Annotated[str, About("When this attempt began.", format="date-time")]
    ended_at: Annotated[str, About("When it ended.", format="date-time")]
    deadline_at: Annotated[str, About("When what it does now ends at the latest.", format="date-time")]
    source: Annotated[str, About("Who gives.")]
    target: Annotated[str, About("Who takes.")]
    time_in_phases: Annotated[tuple[PhaseTimeStatus, ...], About("Time in each phase.", key="phase")]
    progress: Annotated[ProgressStatus, About("How far it has come.")]
    audit: Annotated[AuditStatus, AUDIT]
    asked: Annotated[tuple[AskedStatus, ...], About("Edges that were asked, in order; the first twenty.")]
    plan_hash: Annotated[
        str, About("The plan that stands now: approve it by this hash in spec.approval.planHash.", max_length=64)
    ]
    plan: Annotated[PlanStatus, About("The plan in brief; `plimsoll explain lbs/NAME` has each subscriber.")]
    predicted: Annotated[PredictedStatus, About("What was promised.")]
    measured: Annotated[MeasuredStatus, About("What came of it, measured when loads had settled.")]
    batches: Annotated[BatchesStatus, About("Batches of subscribers that are handed over together.")]
    batch: Annotated[BatchStatus, About("The last batch.")]
    children: Annotated[tuple[ChildStatus, ...], About("Sessions that this one owns, one for each pair of edges.")]
    history: Annotated[tuple[AttemptStatus, ...], About("Attempts that ended before this one.")]
    plan_objects: Annotated[
        tuple[str, ...],
        About("ConfigMaps with the whole plan: everybody who is named, and the reason of each move and rejection."),
    ]
    plan_key: Annotated[str, About("Where it lies in them; what several of them have there is one text.")]
    mediator_epoch: Annotated[
        int, About("The epoch of the mediator that wrote this; one of a lower epoch writes no more.")
    ]
    record: Annotated[
        str, About("What a mediator goes on from after a restart, together with the plan; for no other reader.")
    ]
