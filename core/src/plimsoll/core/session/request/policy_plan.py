"""Plans of a policy: the subscribers to move, the reasons, and the forecasts for both edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace as replaced

from msgspec.structs import replace

from plimsoll.core.policies.balancing_policy import BalancingPolicy
from plimsoll.core.policies.least_loaded import LeastLoaded
from plimsoll.core.policies.model import plan as steps
from plimsoll.core.policies.model.load import RESOURCES, BrokerLoad
from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.session.context import edge_loads
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import EdgeView, SessionRequest
from plimsoll.core.session.request import planner
from plimsoll.core.session.session_plan import Forecast, MoveGroup, PlannedPair, SessionPlan, StayGroup
from plimsoll.core.session.state import Session
from plimsoll.core.spec.types.policy import PressParameters
from plimsoll.core.verify import offload_plan_checker

REASONS_AT_MOST = 100
"""The most reasons of moves, and of stays, that are stored one by one."""

KEY_CHARACTERS_AT_MOST = 200
FAULTS_AT_MOST = 10
LEAST_UNCERTAINTY = 0.005
"""Of the output utilisation; less is not worth a word."""

LEAST_SAMPLE_SECONDS = 5.0
"""Machines do not sample faster where the clock of a fleet runs faster."""


def sample_seconds(context: EngineContext, session: Session) -> float:
    """How long the source may take to collect its sample of publications and to match them."""
    spec = context.fleet.policy_of(session.sources[0])
    matching = max(context.timings.sample, LEAST_SAMPLE_SECONDS)
    if spec is None or spec.estimation.type != "Press":
        return matching
    return matching + context.settings.seconds((spec.estimation.press or PressParameters()).timeout)


def make_policy_plan(
    context: EngineContext,
    request: SessionRequest,
    session: Session,
    served: Mapping[str, Sequence[str]],
    resting: Set[str],
    busy: Set[str],
) -> SessionPlan | None:
    """The plan of the policy; None until its profile and all loads are known.

    `resting` were moved just now, `busy` are being moved; they stay, and so do subscribers that have left meanwhile.
    """
    source, fleet = session.sources[0], context.fleet
    offer, policy = session.accepted_offer, context.loads.policy_of(source)
    if offer is None or policy is None or not {source, offer.edge} <= fleet.edges.keys():
        return None
    profile = context.profile_queries.profile_of(fleet, session.uid, source, offer.edge)
    own, other = context.loads.current(source), context.loads.current(offer.edge)
    has_answered = context.reservations.answer_for(session, source, "BUSY") is not None
    if not has_answered and context.now < session.phase_at + context.loads.answer_seconds:
        return None  # a report covers one interval, an answer an average over several
    if profile is None or own is None or other is None:
        return None
    kept = stay_reasons(request, profile, set(served[source]), resting, busy)
    words = {name: planner.STAY_REASONS[reason] for name, reason in kept.items()}
    action = steps.BrokerAction(offer.edge, offer.metric, offer.difference, tuple(offer.overloaded))
    clusters = {fleet.edges[source].cluster, fleet.edges[offer.edge].cluster}
    near = [edge.name for edge in fleet.edges.values() if edge.cluster in clusters]
    others = [load for name in near if (load := context.loads.current(name)) is not None]
    made = policy.plan(own, other, profile, action, words, request.spec.limits.max_moves, others)
    plan = _session_plan(made, fleet.edges[source], fleet.edges[offer.edge], kept, context.now, policy.name)
    return replace(with_uncertainty(plan, made, profile), faults=_faults(made, profile, policy))


def with_uncertainty(plan: SessionPlan, made: steps.OffloadPlan, profile: SubscriptionProfile) -> SessionPlan:
    """The plan with forecasts of output that it is sure to keep, where samples of fast publishers span too little time.

    The predicted relief is less by what is uncertain, and the target's load is more; `stop` says by how much.
    """
    bits = {row.key: row.bits for row in profile.rows}
    moved = [(bits[move.key], len(move.subscribers)) for move in made.moves]
    uncertain = profile.traffic.bytes_uncertainty(moved, profile.overhead_bytes)
    loads = [made.predicted_source, made.predicted_target]
    ratios = [uncertain / load.bandwidth if load.bandwidth else 0.0 for load in loads]
    if max(ratios) < LEAST_UNCERTAINTY:
        return plan
    loads = [replaced(load, output_utilization=load.output_utilization + ratio)
             for load, ratio in zip(loads, ratios, strict=True)]  # fmt: skip
    highest = made.source.output_utilization  # a source that gives has no more than before
    loads[0] = replaced(loads[0], output_utilization=min(loads[0].output_utilization, highest))
    told = ", ".join(f"{load.name} by {ratio:.3f}" for load, ratio in zip(loads, ratios, strict=True))
    why = f"output is uncertain, as samples of fast publishers span too little time: {told}, which forecasts allow for"
    forecasts = [edge_forecast(one, other) for one, other in zip((made.source, made.target), loads, strict=True)]
    return replace(plan, forecasts=forecasts, stop=f"{plan.stop}; {why}")


def _faults(made: steps.OffloadPlan, profile: SubscriptionProfile, policy: BalancingPolicy) -> list[str]:
    """Faults of a plan, found by a checker that shares no code with the policies. Only LeastLoaded ignores content."""
    thresholds = policy.parameters.thresholds
    lower: dict[str, float] = {resource: thresholds.of(resource).lower for resource in RESOURCES}
    fleet = offload_plan_checker.OffloadPlanContext(profile, lower, by_content=not isinstance(policy, LeastLoaded))
    return offload_plan_checker.offload_plan_faults(made, fleet)[:FAULTS_AT_MOST]


def stay_reasons(
    request: SessionRequest, profile: SubscriptionProfile, served: Set[str], resting: Set[str], busy: Set[str]
) -> dict[str, str]:
    """Subscribers of the profile that may not move, with the reason in a word."""
    excluded = set(request.spec.exclusions.subscribers)
    found: dict[str, str] = {}
    for name in (name for row in profile.rows for name in row.names):
        if name not in served:
            found[name] = "NotServed"
        elif name in excluded:
            found[name] = "Excluded"
        elif name in busy:
            found[name] = "InAnotherSession"
        elif name in resting:
            found[name] = "MovedRecently"
    return found


def _session_plan(
    made: steps.OffloadPlan, source: EdgeView, target: EdgeView, kept: Mapping[str, str], now: float, policy: str
) -> SessionPlan:
    members = list(made.members)
    pairs = [PlannedPair(source=source.name, target=target.name, source_head=source.head, target_head=target.head,
                  members=members)] if members else []  # fmt: skip
    return SessionPlan(
        hash=planner.hash_pairs(pairs),
        pairs=pairs,
        made_at=now,
        rejected=group_by_reason(kept),
        forecasts=[
            edge_forecast(made.source, made.predicted_source),
            edge_forecast(made.target, made.predicted_target),
        ],
        policy=policy,
        metric=made.action.metric,
        moves=move_groups(made.moves),
        stays=[
            StayGroup(kind=each.kind, reason=each.reason, count=each.subscribers, what=shorten_key(each.key))
            for each in made.rejected[:REASONS_AT_MOST]
        ],
        stop=f"{made.ended}: {made.stopped}" if made.stopped else made.ended,
    )


def group_by_reason(kept: Mapping[str, str]) -> dict[str, list[str]]:
    """Subscribers that stay, by reason."""
    rejected: dict[str, list[str]] = {}
    for name, reason in sorted(kept.items()):
        rejected.setdefault(reason, []).append(name)
    return rejected


def move_groups(moves: Sequence[steps.PlanMove]) -> list[MoveGroup]:
    """Reasons of the moves, in the order of the members; beyond a limit only their number."""
    told = [
        MoveGroup(count=len(move.subscribers), reason=move.reason, what=shorten_key(move.key))
        for move in moves[:REASONS_AT_MOST]
    ]
    if more := moves[REASONS_AT_MOST:]:
        reason = f"{len(more)} more sets of subscriptions; the first: {more[0].reason}"
        told.append(MoveGroup(count=_subscriber_count(more), reason=reason))
    return told


def _subscriber_count(moves: Iterable[steps.PlanMove]) -> int:
    return sum(len(move.subscribers) for move in moves)


def shorten_key(text: str) -> str:
    """A subscription key, cut to the length that is stored."""
    return text if len(text) <= KEY_CHARACTERS_AT_MOST else f"{text[: KEY_CHARACTERS_AT_MOST - 3]}..."


def edge_forecast(before: BrokerLoad, after: BrokerLoad) -> Forecast:
    """An edge before and after, as it is stored."""
    return Forecast(
        edge=before.name,
        utilization_before=round(_higher_utilization(before), 4),
        utilization_after=round(_higher_utilization(after), 4),
        subscribers_before=before.subscribers,
        subscribers_after=after.subscribers,
        before=edge_loads.load_figures_of(before),
        after=edge_loads.load_figures_of(after),
    )


def _higher_utilization(load: BrokerLoad) -> float:
    return max(load.input_utilization, load.output_utilization)
