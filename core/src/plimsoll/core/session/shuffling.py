"""A shuffle: all edges of a cluster, or of two, are asked for their profiles, and one plan is made for all of them.

It is a parent like a drain: each pair of edges between which somebody moves is a session of its own. Edges are kept,
and BUSY, from the first question to the measurement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from plimsoll.core.policies import steps
from plimsoll.core.policies.fleet import RESOURCES, BrokerLoad
from plimsoll.core.policies.profile import Profile
from plimsoll.core.policies.shuffle import Shuffle, Shuffled
from plimsoll.core.session import admission, choosing, loads, planning
from plimsoll.core.session.ending import ended_by
from plimsoll.core.session.record import Pair, Plan, Session, Stay, Verdict
from plimsoll.core.session.turn import Turn, because, enter
from plimsoll.core.session.values import EdgeView, Request
from plimsoll.core.verify import shuffles

EDGES_AT_MOST = 50
"""Of more edges at once the covering sets do not fit into the parts of one question."""

FAULTS_AT_MOST = 10


def refusal(turn: Turn, request: Request) -> Verdict | None:
    """Why a shuffle cannot be carried out at all."""
    if request.spec.source is None:
        return Verdict(reason="NotFound", message="say which cluster to shuffle: spec.source")
    for name in clusters(request):
        if not admission.is_cluster(turn, name):
            return Verdict(reason="NotFound", message=f"there is no cluster {name} with edges here", again=True)
        if turn.view is not None and name not in turn.view.policies:
            message = f"cluster {name} has no policy: its edges keep no publications to tell loads from"
            return Verdict(reason="NoPolicy", message=message)
    if (count := len(edges_of(turn, request))) > EDGES_AT_MOST:
        message = f"{count} edges are more than can be planned at once, which is {EDGES_AT_MOST}"
        return Verdict(reason="TooMany", message=message)
    return None


def clusters(request: Request) -> list[str]:
    """The clusters that are to be shuffled: one, or two together."""
    return [party.name for party in (request.spec.source, request.spec.target) if party is not None]


def edges_of(turn: Turn, request: Request) -> list[str]:
    """All edges that take part."""
    edges = turn.view.edges if turn.view is not None else {}
    named, excluded = clusters(request), request.spec.exclusions.brokers
    return sorted(name for name, edge in edges.items() if edge.cluster in named and name not in excluded)


def negotiating(turn: Turn, request: Request, session: Session) -> Session:
    """All edges have to be up; of those that are, one at least has to take."""
    why = next((why for name in session.sources if (why := admission.unready_source(turn, name)) is not None), None)
    if why is None and len(session.sources) < 2:
        why = Verdict(reason="NoTarget", message="there are no two edges between which anybody could move")
    if why is None and not _takers(turn, session):
        why = Verdict(reason="NoTarget", message="no edge can take subscribers now", again=True)
    if why is None:
        return enter(session, "Sampling", turn.now)
    if turn.now < min(turn.waits_since(session) + turn.timings.negotiate, session.deadline_at):
        return because(session, why.reason, why.message)
    return ended_by(turn, request, session, why)


def _takers(turn: Turn, session: Session) -> frozenset[str]:
    return frozenset(name for name in session.sources if admission.unready_target(turn, name) is None)


def plan_of(
    turn: Turn,
    request: Request,
    session: Session,
    served: Mapping[str, Sequence[str]],
    resting: Set[str],
    busy: Set[str],
) -> Plan | None:
    """The plan; None as long as a profile or a load is not known.

    `resting` were moved just now, `busy` are being moved; they stay, as do those that have left meanwhile.
    """
    view, policy = turn.view, loads.policy_of(turn, session.sources[0])
    if view is None or policy is None or not set(session.sources) <= view.edges.keys():
        return None
    profiles = _profiles(turn, session, view.edges)
    known = [load for name in session.sources if (load := loads.load(turn, name)) is not None]
    has_answered = all(turn.states.answer_to(session, name, "BUSY") is not None for name in session.sources)
    if not has_answered and turn.now < session.phase_at + loads.answer_seconds(turn):
        return None  # reports are of a moment, answers of a while
    if profiles is None or len(known) < len(session.sources):
        return None
    kept: dict[str, str] = {}
    for name, profile in profiles.items():
        kept |= choosing.staying(request, profile, set(served[name]), resting, busy)
    words = {name: planning.REASONS[reason] for name, reason in kept.items()}
    takers, most, scope = _takers(turn, session), request.spec.limits.max_moves, request.spec.scope
    made = Shuffle(policy.parameters, scope).plan(known, profiles, words, takers, most)
    thresholds = policy.parameters.thresholds
    lower: dict[str, float] = {resource: thresholds.of(resource).lower for resource in RESOURCES}
    fleet = shuffles.Fleet(profiles, lower, takers, policy.parameters.normalization_seconds, kept.keys(), most)
    return _stored(made, view.edges, kept, turn.now, shuffles.faults(made, fleet)[:FAULTS_AT_MOST])


def _profiles(turn: Turn, session: Session, edges: Mapping[str, EdgeView]) -> dict[str, Profile] | None:
    """What the subscribers of each edge take, and what of that each other edge takes in already."""
    found: dict[str, Profile] = {}
    for name in session.sources:
        others = [other for other in session.sources if other != name]
        profile = turn.profiles.get(turn, session.uid, name, others[0], edges[name].head, others)
        if profile is not None:
            found[name] = profile
    return found if len(found) == len(session.sources) else None


def _stored(
    made: Shuffled, edges: Mapping[str, EdgeView], kept: Mapping[str, str], now: float, faults: list[str]
) -> Plan:
    pairs: list[Pair] = []
    moves: list[steps.Move] = []
    for number, wave in enumerate(made.waves):
        for source, target in dict.fromkeys((move.source, move.target) for move in wave):
            some = [move for move in wave if (move.source, move.target) == (source, target)]
            moves += some
            members = [name for move in some for name in move.subscribers]
            heads = edges[source].head, edges[target].head
            pair = Pair(source=source, target=target, source_head=heads[0], target_head=heads[1], members=members,
                        wave=number)  # fmt: skip
            pairs.append(pair)
    high = f"the highest load goes from {made.high_before:.1%} to {made.high_after:.1%}"
    return Plan(
        hash=planning.hash_of(pairs),
        pairs=pairs,
        made_at=now,
        rejected=choosing.by_reason(kept),
        forecasts=[choosing.forecast(one, two) for one, two in _changed(made)],
        policy="Shuffle",
        metric="the highest load",
        moves=choosing.told_moves(moves),
        stays=[
            Stay(kind=each.kind, reason=each.reason, count=each.subscribers, what=choosing.cut(each.key))
            for each in made.rejected[: choosing.REASONS_AT_MOST]
        ],
        stop=f"{made.ended}: {made.stopped}; {high if made.moves else 'nothing moves'}",
        faults=faults,
    )


def _changed(made: Shuffled) -> Iterable[tuple[BrokerLoad, BrokerLoad]]:
    """Every edge before and after, those that carry most first."""
    both = zip(made.before, made.after, strict=True)
    return sorted(both, key=lambda each: (-max(each[0].input_utilization, each[0].output_utilization), each[0].name))
