"""Plans by which publishers leave an overloaded head, by the policy of its cluster. docs/delay-sensitive.md.

They are made of what heads report, and of the publishers that the source lists. Heads that take publishers of another
session now are no candidates: what they report is about to change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from plimsoll.core.policies.delay_sensitive.head_fleet import HeadFleet
from plimsoll.core.policies.delay_sensitive.head_relief import HeadRelief, beyond_limit, unreported
from plimsoll.core.policies.model.plan import bounded_rejections
from plimsoll.core.policies.model.publisher_load import PublisherTopicLoad, reported_publishers
from plimsoll.core.policies.model.topic_requirements import topic_requirements
from plimsoll.core.policies.rebalancer import take_steps
from plimsoll.core.policies.registry import head_relief_of_spec
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import HeadView, SessionRequest
from plimsoll.core.session.request import forecasts, plan_record, planner
from plimsoll.core.session.session_plan import PlannedPair, SessionPlan
from plimsoll.core.verify.publisher_plan_checker import PublisherPlanContext, publisher_plan_faults


def policy_of(context: EngineContext, head: HeadView) -> HeadRelief | None:
    """The policy by which publishers leave this head when it is overloaded; None if there is none."""
    spec = context.fleet.policies.get(head.cluster)
    return None if spec is None else head_relief_of_spec(spec, context.settings.time_factor)


def make_head_relief_plan(
    context: EngineContext,
    request: SessionRequest,
    policy: HeadRelief,
    source: HeadView,
    able: Sequence[HeadView],
    names: Sequence[str],
) -> SessionPlan | None:
    """The plan; None while the load of the source is not known.

    `able`: heads that could take publishers. `names`: those that are open at the source.
    """
    loads = {name: load for name in context.fleet.heads if (load := context.loads.reported(name)) is not None}
    if source.name not in loads:
        return None
    rows = _rows(source, names)
    busy = _taking_heads(context, request)
    takes = frozenset(head.name for head in able if head.name in loads) - busy
    fixed = _fixed(context, request, rows)
    neighbors = context.fleet.neighbor_heads()
    fleet = HeadFleet(source.name, loads, neighbors, rows, takes, fixed, policy.is_letter)
    requirements = topic_requirements(context.fleet.policies.get(source.cluster))
    topics = requirements.names if requirements is not None else {}
    steps = policy.steps(fleet, allowed_seconds(context, source.cluster, fleet.rows), topics)
    most = request.spec.limits.max_moves
    after, taken, end = take_steps(fleet, steps, most)
    moves = [move for step in taken for move in step.moves]
    stays = end.rejected or tuple(beyond_limit(rows, moves, end.stopped))
    rejected = bounded_rejections([*stays, *unreported(source.name, (name for name in names if name not in rows))])
    pairs = [
        PlannedPair(source=source.name, target=target, source_head=source.name, target_head=target,
                    members=[name for move in moves if move.target == target for name in move.subscribers])
        for target in dict.fromkeys(move.target for move in moves)
    ]  # fmt: skip
    stop = plan_record.stop_sentence(end.ended, end.stopped)
    ordered = plan_record.in_order([moves])
    plan = plan_record.session_plan(policy.name, policy.metric, pairs, ordered, rejected, {}, stop, context.now)
    told = [forecasts.edge_forecast(loads[name], after.heads[name]) for name in _told(fleet, after)]
    checked = PublisherPlanContext(source.name, {name: topics_of(rows[name]) for name in rows}, takes, set(fixed), most)
    return replace(plan, forecasts=told, faults=publisher_plan_faults(moves, checked)[: plan_record.FAULTS_AT_MOST])


def allowed_seconds(context: EngineContext, cluster: str, rows: Iterable[PublisherTopicLoad]) -> dict[int, float]:
    """How long messages of topics may wait, by hash: at the edge where they may wait least, or else as required."""
    found: dict[int, float] = {}
    required = topic_requirements(context.fleet.policies.get(cluster))
    for topic in sorted({row.topic for row in rows if row.topic is not None}):
        own = 0.0 if required is None else required.by_topic.get(topic, required.default_seconds)
        if own:
            found[topic] = own
    for edge in sorted(context.fleet.edges):
        load = context.loads.reported(edge)
        for served in () if load is None else load.topics:
            if served.allowed_seconds < math.inf:
                found[served.topic] = min(found.get(served.topic, math.inf), served.allowed_seconds)
    return found


def topics_of(rows: Sequence[PublisherTopicLoad]) -> dict[int | None, float]:
    """The bytes per second that a publisher brings with each topic."""
    return {row.topic: row.input_bytes for row in rows}


def _rows(source: HeadView, names: Iterable[str]) -> dict[str, tuple[PublisherTopicLoad, ...]]:
    known, found = set(names), dict[str, list[PublisherTopicLoad]]()
    for row in reported_publishers(source.report):
        if row.publisher in known and row.input_rate:
            found.setdefault(row.publisher, []).append(row)
    return {name: tuple(some) for name, some in sorted(found.items())}


def _taking_heads(context: EngineContext, request: SessionRequest) -> frozenset[str]:
    """Heads that other sessions move publishers to now."""
    others = (one for one in context.table.holding() if one.kind == "publishers" and one.uid != request.uid)
    return frozenset(pair.target for one in others if one.plan is not None for pair in one.plan.pairs)


def _fixed(context: EngineContext, request: SessionRequest, names: Iterable[str]) -> dict[str, str]:
    resting = context.recently_moved(context.settings.seconds(request.spec.limits.move_interval), "publishers")
    excluded = set(request.spec.exclusions.subscribers)
    found = {}
    for name in names:
        if name in excluded:
            found[name] = planner.STAY_REASONS["Excluded"]
        elif name in resting:
            found[name] = planner.STAY_REASONS["MovedRecently"]
    return found


def _told(before: HeadFleet, after: HeadFleet) -> list[str]:
    """The source, and the heads whose load changes."""
    others = [name for name in sorted(before.heads) if before.heads[name] != after.heads[name]]
    return list(dict.fromkeys([before.source, *others])) if others else []
