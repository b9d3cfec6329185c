"""The status of a LoadBalancingSession, field by field; its schema is generated from it.

The writers bound all lists. `record` is the state from which a mediator resumes; earlier operators wrote it as a text,
and objects with such a text remain valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from plimsoll.core.spec.field_info import FieldInfo
from plimsoll.core.spec.quantities import Quantity
from plimsoll.core.spec.status.objects import CONDITIONS, GENERATION, MOST_MEDIATOR_EPOCH, ConditionStatus


@dataclass(frozen=True, kw_only=True)
class OutcomesStatus:
    """Subscribers by outcome."""

    moved: Annotated[int, FieldInfo("Now at the target.")]
    stayed: Annotated[int, FieldInfo("Not moved: served by the source as before, which says so.")]
    away: Annotated[int, FieldInfo("Not moved: the source keeps their state, but their clients are not connected.")]
    gone: Annotated[int, FieldInfo("Not moved: not known at the source any more; they left, or their lease ended.")]
    returned: Annotated[int, FieldInfo("Reconnected by themselves meanwhile, to any edge.")]
    detached: Annotated[int, FieldInfo("Disconnected; their state is kept until their lease ends.")]
    unknown: Annotated[
        int, FieldInfo("Not known to be served: their source or head has not answered, or has lost them.")
    ]


@dataclass(frozen=True, kw_only=True)
class ProgressStatus(OutcomesStatus):
    """Progress of the moves."""

    planned: Annotated[int, FieldInfo("Subscribers to move.")]
    percent: Annotated[int, FieldInfo("Share of them that is finished.", unit="percent")]
    moves_per_minute: Annotated[int, FieldInfo("Rate of moves.", unit="subscribers/min")]
    eta_seconds: Annotated[int, FieldInfo("Time for the rest at this rate.", unit="seconds")]


@dataclass(frozen=True, kw_only=True)
class AuditStatus:
    """Deliveries as counted by the moved subscribers, from before their cut until the target serves them; of publishers
    that move, as counted by some of their subscribers.

    Each compares what its application received with what the head's log had for it. The sums are absent if none has
    counted.
    """

    subscribers: Annotated[
        int,
        FieldInfo(
            "Moved subscribers that have counted, or some that take from moved publishers; of others nothing is known."
        ),
    ]
    publishers: Annotated[int, FieldInfo("Moved publishers whose publications were counted.")]
    asked: Annotated[int, FieldInfo("Subscribers of these publishers that were asked to count.")]
    lost: Annotated[int, FieldInfo("Deliveries that were due and never reached the application.")]
    duplicated: Annotated[int, FieldInfo("Deliveries that reached the application more than once.")]
    reordered: Annotated[int, FieldInfo("Deliveries that reached the application after later ones.")]
    suppressed: Annotated[
        int,
        FieldInfo("Duplicates that were filtered out: none within a cluster, some between clusters."),
    ]
    before: Annotated[
        int,
        FieldInfo("Deliveries that were due of publications before the move, at the head that the publishers left."),
    ]
    after: Annotated[int, FieldInfo("Deliveries that were due of publications after the move, at the other head.")]


AUDIT = FieldInfo(
    "Deliveries as counted by the moved subscribers, or by subscribers of moved publishers; absent if none has moved."
)


@dataclass(frozen=True, kw_only=True)
class PhaseTimeStatus:
    """Time in one phase."""

    phase: Annotated[str, FieldInfo("The phase.")]
    milliseconds: Annotated[int, FieldInfo("How long it was there.", unit="milliseconds")]


@dataclass(frozen=True, kw_only=True)
class CandidateStatus:
    """An edge that is asked whether it takes subscribers."""

    name: Annotated[str, FieldInfo("The edge.")]
    metric: Annotated[str, FieldInfo("The metric to balance with it: input, output or match.")]
    difference: Annotated[Quantity, FieldInfo("Difference to the source.")]
    answer: Annotated[str, FieldInfo("Its answer: OK, BUSY, STABILIZING, N/A, or why there is none.")]
    message: Annotated[str, FieldInfo("Why, in a sentence.")]


@dataclass(frozen=True, kw_only=True)
class EdgePairStatus:
    """Subscribers that move from one edge to another."""

    source: Annotated[str, FieldInfo("The source.")]
    target: Annotated[str, FieldInfo("The target.")]
    subscribers: Annotated[int, FieldInfo("Number of subscribers.")]


@dataclass(frozen=True, kw_only=True)
class RejectedStatus:
    """Subscribers that are not in the plan for one reason."""

    reason: Annotated[str, FieldInfo("Why, in one word.")]
    subscribers: Annotated[int, FieldInfo("Number of subscribers.")]


@dataclass(frozen=True, kw_only=True)
class PlannedMovesStatus:
    """Subscribers with the same subscriptions that move for one reason."""

    subscribers: Annotated[int, FieldInfo("Number of subscribers.")]
    what: Annotated[str, FieldInfo("Their subscriptions.")]
    reason: Annotated[str, FieldInfo("Why they move.")]


@dataclass(frozen=True, kw_only=True)
class PlannedStaysStatus(PlannedMovesStatus):
    """Subscribers that were considered and stay."""

    kind: Annotated[str, FieldInfo("Why they stay, in one word.")]


@dataclass(frozen=True, kw_only=True)
class PlanStatus:
    """Summary of the plan."""

    subscribers: Annotated[int, FieldInfo("Subscribers that it moves.")]
    pairs: Annotated[tuple[EdgePairStatus, ...], FieldInfo("Sources and targets; the first twenty pairs.")]
    handover: Annotated[str, FieldInfo("How they are handed over: drain or replay.")]
    why: Annotated[str, FieldInfo("Why this way.")]
    rejected: Annotated[tuple[RejectedStatus, ...], FieldInfo("Subscribers that are not in it, by reason.")]
    policy: Annotated[str, FieldInfo("The policy that made the plan.")]
    metric: Annotated[
        str, FieldInfo("The metric that it balances: input, output or match; for a shuffle, the highest load.")
    ]
    stopped: Annotated[str, FieldInfo("Why no more subscribers are moved.")]
    moves: Annotated[tuple[PlannedMovesStatus, ...], FieldInfo("Subscribers that move, and why; the first twenty.")]
    stays: Annotated[tuple[PlannedStaysStatus, ...], FieldInfo("Subscribers that stay, and why; the first twenty.")]


@dataclass(frozen=True, kw_only=True)
class EdgeLoadsStatus:
    """The loads of one edge that a policy balances."""

    input_percent: Annotated[int, FieldInfo("Input utilisation.", unit="percent")]
    output_percent: Annotated[int, FieldInfo("Output utilisation.", unit="percent")]
    match_microseconds: Annotated[int, FieldInfo("Matching delay.", unit="microseconds")]


@dataclass(frozen=True, kw_only=True)
class PredictedEdgeStatus:
    """An edge before the session and, as predicted, after it."""

    name: Annotated[str, FieldInfo("The edge.")]
    utilization_before_percent: Annotated[int, FieldInfo("The higher of its two utilisations before.", unit="percent")]
    utilization_after_percent: Annotated[int, FieldInfo("The same afterwards, as predicted.", unit="percent")]
    subscribers_before: Annotated[int, FieldInfo("Its subscribers before.")]
    subscribers_after: Annotated[int, FieldInfo("Its subscribers afterwards, as predicted.")]
    before: Annotated[EdgeLoadsStatus, FieldInfo("Its loads before.")]
    after: Annotated[EdgeLoadsStatus, FieldInfo("Its loads afterwards, as predicted.")]
    uncertain: Annotated[EdgeLoadsStatus, FieldInfo("By how much these are uncertain: their standard deviations.")]


@dataclass(frozen=True, kw_only=True)
class PredictedStatus:
    """Predicted effect."""

    drain_milliseconds: Annotated[int, FieldInfo("Time for the source to deliver its queue.", unit="milliseconds")]
    edges: Annotated[tuple[PredictedEdgeStatus, ...], FieldInfo("Edges before and after; the first twenty.")]


@dataclass(frozen=True, kw_only=True)
class MeasuredEdgeStatus:
    """An edge as measured afterwards."""

    name: Annotated[str, FieldInfo("The edge.")]
    utilization_percent: Annotated[int, FieldInfo("The higher of its utilisations.", unit="percent")]
    error_percent: Annotated[
        int, FieldInfo("Deviation from the prediction, as a share of its capacity.", unit="percent")
    ]
    subscribers: Annotated[int, FieldInfo("Its subscribers.")]
    after: Annotated[EdgeLoadsStatus, FieldInfo("Its loads.")]
    error: Annotated[EdgeLoadsStatus, FieldInfo("Deviation of its loads from the prediction.")]


@dataclass(frozen=True, kw_only=True)
class MeasuredStatus:
    """Measured effect, after loads had settled."""

    edges: Annotated[tuple[MeasuredEdgeStatus, ...], FieldInfo("Measured edges; the first twenty.")]
    error_percent_max: Annotated[int, FieldInfo("The largest error of an edge.", unit="percent")]
    drain_milliseconds_max: Annotated[
        int, FieldInfo("The longest time from the cut of a batch to its end.", unit="milliseconds")
    ]
    drain_milliseconds_mean: Annotated[int, FieldInfo("The mean of these times.", unit="milliseconds")]


@dataclass(frozen=True, kw_only=True)
class BatchesStatus:
    """Batches of subscribers, each handed over together."""

    begun: Annotated[int, FieldInfo("Number begun.")]
    ended: Annotated[int, FieldInfo("Number ended.")]
    by_replay: Annotated[int, FieldInfo("Number handed over by replay from the head's log.")]


@dataclass(frozen=True, kw_only=True)
class BatchStatus:
    """The last batch."""

    id: Annotated[str, FieldInfo("Its name on the wire: EPOCH.NUMBER.")]
    state: Annotated[str, FieldInfo("Its last state, as reported by its head.")]
    intent: Annotated[str, FieldInfo("The mediator's last command: prepare, cut, abort or resolve.")]
    subscribers: Annotated[int, FieldInfo("Its subscribers.")]
    handover: Annotated[str, FieldInfo("How they are handed over: drain or replay.")]
    why: Annotated[str, FieldInfo("Why this way.")]
    reason: Annotated[str, FieldInfo("Why it failed, if it did.")]


@dataclass(frozen=True, kw_only=True)
class ChildStatus(OutcomesStatus):
    """A session that this one owns, for one pair of edges."""

    name: Annotated[str, FieldInfo("The session.", refers="LoadBalancingSession")]
    source: Annotated[str, FieldInfo("The source.")]
    target: Annotated[str, FieldInfo("The target.")]
    planned: Annotated[int, FieldInfo("Subscribers that it has to move.")]
    phase: Annotated[str, FieldInfo("Its phase.")]
    reason: Annotated[str, FieldInfo("Why, in one word.")]
    audit: Annotated[AuditStatus, AUDIT]


@dataclass(frozen=True, kw_only=True)
class AttemptStatus(OutcomesStatus):
    """An earlier attempt."""

    number: Annotated[int, FieldInfo("Number of the attempt.")]
    phase: Annotated[str, FieldInfo("How it ended.")]
    reason: Annotated[str, FieldInfo("Why, in one word.")]
    message: Annotated[str, FieldInfo("Why, in a sentence.")]
    started_at: Annotated[str, FieldInfo("When it began.", format="date-time")]
    ended_at: Annotated[str, FieldInfo("When it ended.", format="date-time")]
    planned: Annotated[int, FieldInfo("Subscribers that it had to move.")]
    audit: Annotated[AuditStatus, AUDIT]


@dataclass(frozen=True, kw_only=True)
class SessionStatus:
    """The status of a session."""

    observed_generation: Annotated[int, GENERATION]
    conditions: Annotated[tuple[ConditionStatus, ...], CONDITIONS]
    phase: Annotated[
        str,
        FieldInfo("The phase: Requested, Negotiating, Sampling, Planned, Preparing, Cutting, Draining, Stabilizing,"
              " Succeeded, Failed, RolledBack or Rejected. Wait for the condition Succeeded, not for a phase."),
    ]  # fmt: skip
    reason: Annotated[
        str, FieldInfo("Why it is in this phase, in one word; docs/reasons.md lists all with their remedies.")
    ]
    message: Annotated[str, FieldInfo("Why it is in this phase, in a sentence.")]
    attempt: Annotated[int, FieldInfo("Number of the attempt, from 1.")]
    requested_at: Annotated[str, FieldInfo("When the mediator first saw it.", format="date-time")]
    started_at: Annotated[str, FieldInfo("When this attempt began.", format="date-time")]
    ended_at: Annotated[str, FieldInfo("When it ended.", format="date-time")]
    deadline_at: Annotated[str, FieldInfo("Deadline of what it does now.", format="date-time")]
    source: Annotated[str, FieldInfo("The source.")]
    target: Annotated[str, FieldInfo("The target.")]
    time_in_phases: Annotated[tuple[PhaseTimeStatus, ...], FieldInfo("Time in each phase.", key="phase")]
    progress: Annotated[ProgressStatus, FieldInfo("Progress of the moves.")]
    audit: Annotated[AuditStatus, AUDIT]
    asked: Annotated[tuple[CandidateStatus, ...], FieldInfo("Edges that were asked, in order; the first twenty.")]
    plan_hash: Annotated[
        str,
        FieldInfo("Hash of the present plan; write it to spec.approval.planHash to approve the plan.", max_length=64),
    ]
    plan: Annotated[PlanStatus, FieldInfo("Summary of the plan; `plimsoll explain lbs/NAME` lists each subscriber.")]
    predicted: Annotated[PredictedStatus, FieldInfo("Predicted effect.")]
    measured: Annotated[MeasuredStatus, FieldInfo("Measured effect, after loads had settled.")]
    batches: Annotated[BatchesStatus, FieldInfo("Batches of subscribers, each handed over together.")]
    batch: Annotated[BatchStatus, FieldInfo("The last batch.")]
    children: Annotated[tuple[ChildStatus, ...], FieldInfo("Sessions that this one owns, one for each pair of edges.")]
    history: Annotated[tuple[AttemptStatus, ...], FieldInfo("Earlier attempts.")]
    plan_objects: Annotated[
        tuple[str, ...],
        FieldInfo("ConfigMaps with the whole plan: all subscribers, with the reason of each move and rejection."),
    ]
    plan_key: Annotated[str, FieldInfo("Its key in the ConfigMaps; the values under it are parts of one text.")]
    mediator_epoch: Annotated[
        int,
        FieldInfo(
            "The epoch of the mediator that wrote this; no lower epoch may write it.", low=0, high=MOST_MEDIATOR_EPOCH
        ),
    ]
    record: Annotated[
        Any,
        FieldInfo("State from which a mediator resumes, together with the plan. Its fields may change with each"
                  " version: read the other fields, or use `plimsoll explain`."),
    ]  # fmt: skip
