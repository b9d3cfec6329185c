"""Plans of a policy: the subscribers to move, the reasons, and the forecasts for both edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from msgspec.structs import replace

from plimsoll.core.policies.balancing_policy import BalancingPolicy
from plimsoll.core.policies.least_loaded import LeastLoaded
from plimsoll.core.policies.model import plan as steps
from plimsoll.core.policies.model.load import RESOURCES, named_metric, named_resources
from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import SessionRequest
from plimsoll.core.session.request import plan_record, planner, returns
from plimsoll.core.session.request.forecasts import forecasts_of
from plimsoll.core.session.session_plan import SessionPlan
from plimsoll.core.session.state import Session
from plimsoll.core.spec.types.policy import PressParameters
from plimsoll.core.verify import offload_plan_checker

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
    metric = named_metric(offer.metric)
    if profile is None or own is None or other is None or metric is None:
        return None
    action = steps.BrokerAction(offer.edge, metric, offer.difference, named_resources(offer.overloaded))
    clusters = {fleet.edges[source].cluster, fleet.edges[offer.edge].cluster}
    near = [edge.name for edge in fleet.edges.values() if edge.cluster in clusters]
    others = [load for name in near if (load := context.loads.current(name)) is not None]
    delivered = sum(load.output_rate for load in others)
    may_return = bool(offer.overloaded) or policy.parameters.rules == "Paper"
    away = frozenset() if may_return else returns.moved_away(context.table.sessions.values(), offer.edge, delivered)
    kept = stay_reasons(request, profile, set(served[source]), resting, busy, away)
    words = {name: planner.STAY_REASONS[reason] for name, reason in kept.items()}
    made = policy.plan(own, other, profile, action, words, request.spec.limits.max_moves, others)
    stop = plan_record.stop_sentence(made.ended, made.stopped)
    plan = plan_record.session_plan(
        policy.name, made.action.metric, plan_record.pairs_of([made.moves], fleet.edges), made.moves, made.rejected,
        kept, stop, context.now,
    )  # fmt: skip
    told, allowed = forecasts_of(made, profile, policy.parameters)
    stop = f"{plan.stop}; {allowed}" if allowed else plan.stop
    faults = _faults(made, profile, policy)
    return replace(plan, forecasts=told, stop=stop, deliveries_per_second=round(delivered, 3), faults=faults)


def _faults(made: steps.OffloadPlan, profile: SubscriptionProfile, policy: BalancingPolicy) -> list[str]:
    """Faults of a plan, found by a checker that shares no code with the policies. Only LeastLoaded ignores content."""
    thresholds = policy.parameters.thresholds
    lower: dict[str, float] = {resource: thresholds.of(resource).lower for resource in RESOURCES}
    fleet = offload_plan_checker.OffloadPlanContext(profile, lower, by_content=not isinstance(policy, LeastLoaded))
    return offload_plan_checker.offload_plan_faults(made, fleet)[: plan_record.FAULTS_AT_MOST]


def stay_reasons(
    request: SessionRequest,
    profile: SubscriptionProfile,
    served: Set[str],
    resting: Set[str],
    busy: Set[str],
    away: Set[str] = frozenset(),
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
        elif name in away:
            found[name] = "MovedAway"
    return found
