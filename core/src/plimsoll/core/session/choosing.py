"""Where a policy chooses: whether it does, whom it moves and why, and what it predicts of both edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from msgspec.structs import replace

from plimsoll.core.policies import steps
from plimsoll.core.policies.fleet import RESOURCES, BrokerLoad
from plimsoll.core.policies.least_loaded import LeastLoaded
from plimsoll.core.policies.profile import Profile
from plimsoll.core.policies.registry import Policy
from plimsoll.core.session import loads, planning
from plimsoll.core.session.offers import accepted
from plimsoll.core.session.record import Forecast, Moves, Pair, Plan, Session, Stay
from plimsoll.core.session.turn import Turn
from plimsoll.core.session.values import EdgeView, Request
from plimsoll.core.spec.policy import PressParameters
from plimsoll.core.verify import plans

REASONS_AT_MOST = 100
"""So many reasons of moves, and of stays, are stored one by one."""

KEY_CHARACTERS = 200
FAULTS_AT_MOST = 10
LEAST_SAMPLE_SECONDS = 5.0
"""Machines are not faster where a fleet's clock is."""


def is_by_policy(turn: Turn, request: Request) -> bool:
    """Whether a policy chooses: no one says who moves, and the source is an edge of a cluster that has one."""
    spec = request.spec
    if spec.action != "Rebalance" or spec.select is not None or spec.source is None:
        return False
    if request.parent and spec.trigger is None:  # a parent has planned it already
        return False
    named = [party.name for party in (spec.source, spec.target) if party is not None]
    edges = turn.view.edges if turn.view is not None else {}
    clusters = {edges[name].cluster if name in edges else "" for name in named}
    return len(clusters) == 1 and loads.spec_of(turn, spec.source.name) is not None


def sample_seconds(turn: Turn, session: Session) -> float:
    """How long the source may take: to see as many publications as it samples, and to match them."""
    spec = loads.spec_of(turn, session.sources[0])
    matching = max(turn.timings.sample, LEAST_SAMPLE_SECONDS)
    if spec is None or spec.estimation.type != "Press":
        return matching
    return matching + turn.settings.seconds((spec.estimation.press or PressParameters()).timeout)


def plan_of(
    turn: Turn,
    request: Request,
    session: Session,
    served: Mapping[str, Sequence[str]],
    resting: Set[str],
    busy: Set[str],
) -> Plan | None:
    """The plan of the policy; None as long as its profile or a load is not known.

    `resting` were moved just now, `busy` are being moved; they stay, as do those that have left meanwhile.
    """
    source, view = session.sources[0], turn.view
    offer, policy = accepted(session), loads.policy_of(turn, source)
    if offer is None or policy is None or view is None or not {source, offer.edge} <= view.edges.keys():
        return None
    profile = turn.profiles.get(turn, session.uid, source, offer.edge, view.edges[source].head)
    own, other = loads.load(turn, source), loads.load(turn, offer.edge)
    has_answered = turn.states.answer_to(session, source, "BUSY") is not None
    if not has_answered and turn.now < session.phase_at + loads.answer_seconds(turn):
        return None  # its report is of a moment, its answer of a while
    if profile is None or own is None or other is None:
        return None
    kept = staying(request, profile, set(served[source]), resting, busy)
    words = {name: planning.REASONS[reason] for name, reason in kept.items()}
    action = steps.Action(offer.edge, offer.metric, offer.difference, tuple(offer.overloaded))
    cluster = [edge.name for edge in view.edges.values() if edge.cluster == view.edges[source].cluster]
    others = [load for name in cluster if (load := loads.load(turn, name)) is not None]
    made = policy.plan(own, other, profile, action, words, request.spec.limits.max_moves, others)
    plan = _stored(made, view.edges[source], view.edges[offer.edge], kept, turn.now, type(policy).__name__)
    return replace(plan, faults=_faults(made, profile, policy))


def _faults(made: steps.Plan, profile: Profile, policy: Policy) -> list[str]:
    """What is wrong with a plan, found by those who have not made it. A policy may not look at what is asked for."""
    thresholds = policy.parameters.thresholds
    lower: dict[str, float] = {resource: thresholds.of(resource).lower for resource in RESOURCES}
    fleet = plans.Fleet(profile, lower, by_content=not isinstance(policy, LeastLoaded))
    return plans.faults(made, fleet)[:FAULTS_AT_MOST]


def staying(request: Request, profile: Profile, served: Set[str], resting: Set[str], busy: Set[str]) -> dict[str, str]:
    """Who of the profile may not move, and why, in a word."""
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


def _stored(
    made: steps.Plan, source: EdgeView, target: EdgeView, kept: Mapping[str, str], now: float, policy: str
) -> Plan:
    members = list(made.members)
    pairs = [Pair(source=source.name, target=target.name, source_head=source.head, target_head=target.head,
                  members=members)] if members else []  # fmt: skip
    return Plan(
        hash=planning.hash_of(pairs),
        pairs=pairs,
        made_at=now,
        rejected=by_reason(kept),
        forecasts=[forecast(made.source, made.predicted_source), forecast(made.target, made.predicted_target)],
        policy=policy,
        metric=made.action.metric,
        moves=told_moves(made.moves),
        stays=[
            Stay(kind=each.kind, reason=each.reason, count=each.subscribers, what=cut(each.key))
            for each in made.rejected[:REASONS_AT_MOST]
        ],
        stop=f"{made.ended}: {made.stopped}" if made.stopped else made.ended,
    )


def by_reason(kept: Mapping[str, str]) -> dict[str, list[str]]:
    """Who stays, by reason."""
    rejected: dict[str, list[str]] = {}
    for name, reason in sorted(kept.items()):
        rejected.setdefault(reason, []).append(name)
    return rejected


def told_moves(moves: Sequence[steps.Move]) -> list[Moves]:
    """Why each moves, in the order of the members; beyond a bound only how many there are."""
    told = [
        Moves(count=len(move.subscribers), reason=move.reason, what=cut(move.key)) for move in moves[:REASONS_AT_MOST]
    ]
    if more := moves[REASONS_AT_MOST:]:
        reason = f"{len(more)} more sets of subscriptions; the first: {more[0].reason}"
        told.append(Moves(count=_count(more), reason=reason))
    return told


def _count(moves: Iterable[steps.Move]) -> int:
    return sum(len(move.subscribers) for move in moves)


def cut(text: str) -> str:
    """What is asked for, as much of it as is stored."""
    return text if len(text) <= KEY_CHARACTERS else f"{text[: KEY_CHARACTERS - 3]}..."


def forecast(before: BrokerLoad, after: BrokerLoad) -> Forecast:
    """An edge before and after, as it is stored."""
    return Forecast(
        edge=before.name,
        utilization_before=round(_higher(before), 4),
        utilization_after=round(_higher(after), 4),
        subscribers_before=before.subscribers,
        subscribers_after=after.subscribers,
        before=loads.loads_of(before),
        after=loads.loads_of(after),
    )


def _higher(load: BrokerLoad) -> float:
    return max(load.input_utilization, load.output_utilization)
