"""Plans for all edges of a cluster at once: of our shuffle, and of policies that plan for the whole cluster.

The edges are asked all at once, for their loads and their profiles; the policy's steps become pairs of edges, each of
which is a session of its own. A plan may have several sources and several targets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, assert_never

import msgspec

from plimsoll.core.policies.bad import Bad
from plimsoll.core.policies.delay_sensitive import DelaySensitive
from plimsoll.core.policies.model.load import RESOURCES, BrokerLoad
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.policies.pulsar import Pulsar
from plimsoll.core.policies.pulsar.bundle_moves import GATHERED
from plimsoll.core.policies.rebalancer import FleetSample, Rebalancer, RebalancingPlan, fleet_plan
from plimsoll.core.policies.registry import pulsar_of_spec, rebalancer_of_spec
from plimsoll.core.policies.shuffle import Shuffle
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import EdgeView, SessionRequest
from plimsoll.core.session.request import forecasts, plan_record, planner, policy_plan, returns, shuffle_plan
from plimsoll.core.session.session_plan import SessionPlan
from plimsoll.core.session.state import Session, SessionVerdict
from plimsoll.core.verify import bad_plan_checker, deadline_plan_checker, pulsar_plan_checker, shuffle_plan_checker

FleetPolicy = Bad | Pulsar | DelaySensitive | Shuffle


def make_fleet_plan(
    context: EngineContext,
    request: SessionRequest,
    session: Session,
    served: Mapping[str, Sequence[str]],
    resting: Set[str],
    busy: Set[str],
) -> SessionPlan | None:
    """The plan; None until all profiles and loads are known.

    `resting` were moved just now, `busy` are being moved; they stay, and so do subscribers that have left meanwhile.
    """
    policy = rebalancer_of(context, request, session)
    if policy is None or not set(session.sources) <= context.fleet.edges.keys():
        return None
    profiles = _edge_profiles(context, session, policy)
    known = [load for name in session.sources if (load := context.loads.current(name)) is not None]
    has_answered = all(context.reservations.answer_for(session, name, "BUSY") is not None for name in session.sources)
    if not has_answered and context.now < session.phase_at + context.loads.answer_seconds:
        return None  # a report covers one interval, an answer an average over several
    if profiles is None or len(known) < len(session.sources):
        return None
    kept: dict[str, str] = {}
    for name, profile in profiles.items():
        kept |= policy_plan.stay_reasons(request, profile, set(served[name]), resting, busy)
    words = {name: planner.STAY_REASONS[reason] for name, reason in kept.items()}
    takers, most = shuffle_plan.ready_targets(context, session), request.spec.limits.max_moves
    cluster = _cluster(context, request, session)
    away = _away(context, session, cluster)
    target = request.spec.target.name if request.spec.action == "Unload" and request.spec.target is not None else ""
    delivered = sum(load.output_rate for load in known)
    left = returns.left_edges(context.table.sessions, session.sources, delivered)
    sample = FleetSample(
        tuple(known), profiles, words, takers, most, context.fleet.bundle_owners(cluster), _wanted_bundles(request),
        target, left, away,
    )  # fmt: skip
    rebalancer: Rebalancer[Any] = policy
    made = fleet_plan(rebalancer, sample, context.cluster_memories.of(cluster, policy.name))
    faults = _faults(policy, made, sample)[: plan_record.FAULTS_AT_MOST]
    plan = _session_plan(policy, made, context.fleet.edges, kept, context.now, faults, is_named=bool(target))
    return msgspec.structs.replace(plan, deliveries_per_second=round(delivered, 3))


def unload_refusal(context: EngineContext, request: SessionRequest) -> SessionVerdict | None:
    """Why bundles cannot be unloaded at all."""
    spec = request.spec
    cluster = spec.source.name if spec.source is not None else ""
    found = context.fleet.policies.get(cluster)
    policy = None if found is None else pulsar_of_spec(found, context.settings.time_factor)
    if policy is None:
        message = f"{cluster or 'the source'} is no cluster with bundles: name one whose policy is Pulsar"
        return SessionVerdict(reason="NoBundles", message=message)
    known = {each.name for each in policy.partition(context.cluster_memories.of(cluster, policy.name)).ranges}
    unknown = [name for name in _wanted_bundles(request) if name not in known]
    if unknown or not _wanted_bundles(request):
        what = f"{unknown[0]} is not a bundle of {cluster} now" if unknown else "select.bundles names no bundle"
        return SessionVerdict(reason="NotFound", message=f"{what}; `plimsoll get bundles` lists them")
    if spec.target is not None and context.fleet.clusters_of([spec.target.name]) != {cluster}:
        return SessionVerdict(reason="NotFound", message=f"{spec.target.name} is not an edge of {cluster}")
    return None


def _wanted_bundles(request: SessionRequest) -> tuple[str, ...]:
    """The bundles that a user wants to be unloaded."""
    is_unload = request.spec.action == "Unload" and request.spec.select is not None
    return request.spec.select.bundles if is_unload and request.spec.select is not None else ()


def rebalancer_of(context: EngineContext, request: SessionRequest, session: Session) -> FleetPolicy | None:
    """The policy that plans a session; None while its cluster has none."""
    parameters = context.loads.parameters_of(session.sources[0])
    spec = context.fleet.policies.get(_cluster(context, request, session))
    if parameters is None or spec is None:
        return None
    if session.kind == "shuffle":
        return Shuffle(parameters, request.spec.scope)
    return rebalancer_of_spec(spec, context.settings.time_factor)


def _cluster(context: EngineContext, request: SessionRequest, session: Session) -> str:
    """The cluster whose policy plans: the source, as the request names it."""
    source = "" if request.spec.source is None else request.spec.source.name
    first = context.fleet.edges.get(session.sources[0])
    return source if context.fleet.is_cluster(source) or first is None else first.cluster


def _away(context: EngineContext, session: Session, cluster: str) -> dict[str, float]:
    """The edges of another cluster, each with what the way from the head of this one to its head takes, in seconds."""
    found = {}
    for name in session.sources:
        edge = context.fleet.edges[name]
        if edge.cluster != cluster:
            found[name] = context.fleet.way_between(cluster, edge.cluster)
    return found


def _edge_profiles(
    context: EngineContext, session: Session, policy: FleetPolicy
) -> dict[str, SubscriptionProfile] | None:
    """The profile of each edge, as the policy wants it; None until all are complete."""
    found: dict[str, SubscriptionProfile] = {}
    for name in session.sources:
        others = [other for other in session.sources if other != name]
        targets, each = (others, False) if policy.profiles == "takers" else ([], True)
        queries = context.profile_queries
        profile = queries.profile_of(context.fleet, session.uid, name, others[0], targets, each=each)
        if profile is not None:
            found[name] = profile
    return found if len(found) == len(session.sources) else None


def _faults(policy: FleetPolicy, made: RebalancingPlan, sample: FleetSample) -> list[str]:
    """Faults of a plan, found by a checker that shares no code with the policy."""
    takes = sample.takes or frozenset()
    match policy:
        case Shuffle():
            parameters = policy.parameters
            checked = shuffle_plan_checker.ShufflePlanContext(
                sample.profiles, _lower(parameters), takes, parameters.normalization_seconds, sample.staying.keys(),
                sample.most,
            )  # fmt: skip
            return shuffle_plan_checker.shuffle_plan_faults(made, checked)
        case Bad():
            capacities = {load.name: load.capacity if policy.normalize == "Capacity" else 1.0 for load in sample.loads}
            return bad_plan_checker.bad_plan_faults(
                made, bad_plan_checker.BadPlanContext(sample.profiles, takes, capacities, sample.staying.keys(),
                                                      sample.most, policy.relieved(sample.loads))
            )  # fmt: skip
        case Pulsar():
            checked_bundles = pulsar_plan_checker.PulsarPlanContext(
                sample.profiles, takes, sample.staying.keys(), sample.most
            )
            return pulsar_plan_checker.pulsar_plan_faults(made, checked_bundles)
        case DelaySensitive():
            checked_topics = deadline_plan_checker.DeadlinePlanContext(
                sample.profiles, takes, sample.staying.keys(), sample.most, sample.away.keys()
            )
            return deadline_plan_checker.deadline_plan_faults(made, checked_topics)
        case _:
            assert_never(policy)


def _lower(parameters: BalancingParameters) -> dict[str, float]:
    return {resource: parameters.thresholds.of(resource).lower for resource in RESOURCES}


def _session_plan(
    policy: FleetPolicy,
    made: RebalancingPlan,
    edges: Mapping[str, EdgeView],
    kept: Mapping[str, str],
    now: float,
    faults: list[str],
    *,
    is_named: bool,
) -> SessionPlan:
    """`is_named`: users have named the target. A lookup knows of none, so bundles are handed over to it."""
    pairs = plan_record.pairs_of(made.waves, edges)
    by_lookup = bool(pairs) and not is_named and _is_by_lookup(policy, made)
    plan = plan_record.session_plan(
        policy.name, policy.metric, pairs, plan_record.in_order(made.waves), made.rejected, kept,
        plan_record.stop_sentence(made.ended, made.stopped), now,
    )  # fmt: skip
    return msgspec.structs.replace(
        plan,
        forecasts=[forecasts.edge_forecast(one, two) for one, two in _before_and_after(made)],
        faults=faults,
        bundles=dict(made.owners),
        handover="lookup" if by_lookup else "drain",
        why="bundles are released, and their subscribers look for an edge again" if by_lookup else "",
    )


def _is_by_lookup(policy: FleetPolicy, made: RebalancingPlan) -> bool:
    return isinstance(policy, Pulsar) and policy.unload == "Lookup" and made.ended != GATHERED


def _before_and_after(made: RebalancingPlan) -> Iterable[tuple[BrokerLoad, BrokerLoad]]:
    """Every edge before and after, those that carry most first."""
    both = zip(made.before, made.after, strict=True)
    return sorted(both, key=lambda each: (-max(each[0].input_utilization, each[0].output_utilization), each[0].name))
