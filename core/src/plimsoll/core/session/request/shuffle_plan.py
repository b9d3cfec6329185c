"""A shuffle: one plan from the profiles of all edges of a cluster, or of two.

Like a drain it is a parent: each pair of edges with moves is a session of its own. It keeps all edges reserved as BUSY
from the first query to the measurement, so its children need no reservations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from plimsoll.core.policies.model import plan
from plimsoll.core.policies.model.load import RESOURCES, BrokerLoad
from plimsoll.core.policies.model.profile import SubscriptionProfile
from plimsoll.core.policies.shuffle import Shuffle, ShufflePlan
from plimsoll.core.session import admission
from plimsoll.core.session.completion import end_negotiation
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import EdgeView, FleetView, SessionRequest
from plimsoll.core.session.request import planner, policy_plan
from plimsoll.core.session.session_plan import PlannedPair, SessionPlan, StayGroup
from plimsoll.core.session.state import Session, SessionVerdict
from plimsoll.core.verify import shuffle_plan_checker

EDGES_AT_MOST = 50
"""With more edges the covering sets do not fit into the parts of one query."""

FAULTS_AT_MOST = 10


def refusal(context: EngineContext, request: SessionRequest) -> SessionVerdict | None:
    """Why a shuffle cannot be carried out at all."""
    if request.spec.source is None:
        return SessionVerdict(reason="NotFound", message="set spec.source to the cluster to shuffle")
    for name in shuffled_clusters(request):
        if not context.fleet.is_cluster(name):
            return SessionVerdict(reason="NotFound", message=f"there is no cluster {name} with edges here", again=True)
        if name not in context.fleet.policies:
            message = f"cluster {name} has no policy, so its edges record no traffic samples; set spec.policy"
            return SessionVerdict(reason="NoPolicy", message=message)
    if (count := len(shuffled_edges(context.fleet, request))) > EDGES_AT_MOST:
        message = f"{count} edges are more than the {EDGES_AT_MOST} that one shuffle can plan"
        return SessionVerdict(reason="TooMany", message=message)
    return None


def shuffled_clusters(request: SessionRequest) -> list[str]:
    """The clusters to shuffle: one, or two together."""
    return [party.name for party in (request.spec.source, request.spec.target) if party is not None]


def shuffled_edges(fleet: FleetView, request: SessionRequest) -> list[str]:
    """All edges that take part."""
    excluded = request.spec.exclusions.brokers
    return [edge.name for edge in fleet.edges_of(shuffled_clusters(request)) if edge.name not in excluded]


def step_negotiating(context: EngineContext, request: SessionRequest, session: Session) -> Session:
    """Wait until all edges are up, and at least one of them can be a target."""
    why = next((why for name in session.sources if (why := admission.unready_source(context, name)) is not None), None)
    if why is None and len(session.sources) < 2:
        why = SessionVerdict(reason="NoTarget", message="a shuffle needs at least two edges")
    if why is None and not _ready_targets(context, session):
        why = SessionVerdict(reason="NoTarget", message="no edge can take subscribers now", again=True)
    return end_negotiation(context, request, session, why)


def _ready_targets(context: EngineContext, session: Session) -> frozenset[str]:
    return frozenset(name for name in session.sources if admission.unready_target(context, name) is None)


def make_shuffle_plan(
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
    fleet, policy = context.fleet, context.loads.policy_of(session.sources[0])
    if policy is None or not set(session.sources) <= fleet.edges.keys():
        return None
    profiles = _edge_profiles(context, session)
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
    takers, most, scope = _ready_targets(context, session), request.spec.limits.max_moves, request.spec.scope
    made = Shuffle(policy.parameters, scope).plan(known, profiles, words, takers, most)
    thresholds = policy.parameters.thresholds
    lower: dict[str, float] = {resource: thresholds.of(resource).lower for resource in RESOURCES}
    checked = shuffle_plan_checker.ShufflePlanContext(
        profiles, lower, takers, policy.parameters.normalization_seconds, kept.keys(), most
    )
    return _session_plan(
        made, fleet.edges, kept, context.now, shuffle_plan_checker.shuffle_plan_faults(made, checked)[:FAULTS_AT_MOST]
    )


def _edge_profiles(context: EngineContext, session: Session) -> dict[str, SubscriptionProfile] | None:
    """The profile of each edge against all other edges; None until all are complete."""
    found: dict[str, SubscriptionProfile] = {}
    for name in session.sources:
        others = [other for other in session.sources if other != name]
        profile = context.profile_queries.profile_of(context.fleet, session.uid, name, others[0], others)
        if profile is not None:
            found[name] = profile
    return found if len(found) == len(session.sources) else None


def _session_plan(
    made: ShufflePlan, edges: Mapping[str, EdgeView], kept: Mapping[str, str], now: float, faults: list[str]
) -> SessionPlan:
    pairs: list[PlannedPair] = []
    moves: list[plan.PlanMove] = []
    for number, wave in enumerate(made.waves):
        for source, target in dict.fromkeys((move.source, move.target) for move in wave):
            some = [move for move in wave if (move.source, move.target) == (source, target)]
            moves += some
            members = [name for move in some for name in move.subscribers]
            heads = edges[source].head, edges[target].head
            pair = PlannedPair(
                source=source, target=target, source_head=heads[0], target_head=heads[1], members=members, wave=number
            )
            pairs.append(pair)
    high = f"the highest load goes from {made.high_before:.1%} to {made.high_after:.1%}"
    return SessionPlan(
        hash=planner.hash_pairs(pairs),
        pairs=pairs,
        made_at=now,
        rejected=policy_plan.group_by_reason(kept),
        forecasts=[policy_plan.edge_forecast(one, two) for one, two in _before_and_after(made)],
        policy=Shuffle.name,
        metric="the highest load",
        moves=policy_plan.move_groups(moves),
        stays=[
            StayGroup(
                kind=each.kind, reason=each.reason, count=each.subscribers, what=policy_plan.shorten_key(each.key)
            )
            for each in made.rejected[: policy_plan.REASONS_AT_MOST]
        ],
        stop=f"{made.ended}: {made.stopped}; {high if made.moves else 'nothing moves'}",
        faults=faults,
    )


def _before_and_after(made: ShufflePlan) -> Iterable[tuple[BrokerLoad, BrokerLoad]]:
    """Every edge before and after, those that carry most first."""
    both = zip(made.before, made.after, strict=True)
    return sorted(both, key=lambda each: (-max(each[0].input_utilization, each[0].output_utilization), each[0].name))
