"""Plans that move publishers from the head of a cluster to those of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.core.policies import publisher_balance
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.inputs import HeadView, SessionRequest
from plimsoll.core.session.request import head_relief_plan, planner
from plimsoll.core.session.session_plan import MoveGroup, PlannedPair, SessionPlan
from plimsoll.core.session.state import Session, SessionVerdict


def source_head(context: EngineContext, request: SessionRequest) -> HeadView | None:
    """The head that the publishers are at."""
    spec = request.spec
    return None if spec.source is None else context.fleet.head_of(spec.source.name)


def refusal(context: EngineContext, request: SessionRequest) -> SessionVerdict | None:
    """Why a request cannot be carried out in any state of the fleet."""
    spec = request.spec
    for role, party in (("source", spec.source), ("target", spec.target)):
        if party is not None and context.fleet.head_of(party.name) is None:
            message = f"spec.{role} is {party.name}, and there is no cluster of that name: publishers are at its head"
            return SessionVerdict(reason="NotFound", message=message, again=True)
    if spec.source is None:
        return SessionVerdict(reason="NotFound", message="spec.source names the cluster that publishers leave")
    if len(context.fleet.heads) < 2:
        return SessionVerdict(reason="NoTarget", message="the fleet has one head: add a cluster, linked to this one")
    return None


def target_heads(context: EngineContext, request: SessionRequest) -> list[HeadView]:
    """The heads that could take publishers now: the named one, or all, without those that are cordoned or drained."""
    spec, source = request.spec, source_head(context, request)
    draining = {
        one.sources[0] for one in context.table.holding()
        if one.kind == "publishers" and one.is_running and one.sources and one.uid != request.uid
    }  # fmt: skip
    named = None if spec.target is None else spec.target.name
    return [
        head
        for name, head in sorted(context.fleet.heads.items())
        if source is not None
        and name != source.name
        and head.reachable
        and head.endpoint
        and not head.cordoned
        and name not in draining
        and head.cluster not in spec.exclusions.brokers
        and named in (None, head.cluster)
        and context.fleet.are_joined(source.cluster, head.cluster)
    ]


def make_publisher_plan(
    context: EngineContext, request: SessionRequest, session: Session, names: list[str]
) -> SessionPlan | None:
    """The publishers of the source that move, and to which heads. `names`: those that are open there.

    A policy chooses them where the request does not; None while it waits for the load of the source.
    """
    source = source_head(context, request)
    if source is None:
        raise AssertionError("a request without a source is refused before this")
    policy = head_relief_plan.policy_of(context, source)
    if policy is not None and request.spec.select is None:
        able = target_heads(context, request)
        return head_relief_plan.make_head_relief_plan(context, request, policy, source, able, names)
    return _plan_by_rates(context, request, session, source, names)


def _plan_by_rates(
    context: EngineContext, request: SessionRequest, session: Session, source: HeadView, names: list[str]
) -> SessionPlan:
    heads = {head.name: head for head in target_heads(context, request)}
    rates = _rates(source.report, names)
    accepted = {name: accepted_per_second(head) for name, head in heads.items()}
    own = accepted_per_second(source)
    select, rejected = request.spec.select, {}
    if select is None:
        found = publisher_balance.even_out(rates, own, accepted) if heads else []
        stop = "" if found else _balanced_text(source, own, accepted)
        why = f"{source.cluster} accepts {own:.0f}/s"
    else:
        chosen, missing = _selected(request, session, names)
        rejected = {"NotThere": missing} if missing else {}
        some, order = {name: rates[name] for name in chosen}, chosen if select.names else None
        found = publisher_balance.spread(some, accepted, order) if heads else []
        stop, why = "", "it was asked for"
    pairs = _pairs(source, heads, found)
    moves = [MoveGroup(count=len(pair.members), reason=why, what="publishers") for pair in pairs]
    return SessionPlan(
        hash=planner.hash_pairs(pairs), pairs=pairs, made_at=context.now, rejected=rejected, moves=moves, stop=stop
    )


def accepted_per_second(head: HeadView) -> float:
    """What a head accepts, by its last load report."""
    return sum(_numbers(head.report.get("publisher_rates")).values())


def _rates(report: Mapping[str, Any], names: list[str]) -> dict[str, float]:
    known = _numbers(report.get("publisher_rates"))
    rest = min(known.values(), default=0.0) if len(known) < len(names) else 0.0
    return {name: known.get(name, rest) for name in names}


def _numbers(found: object) -> dict[str, float]:
    if not isinstance(found, Mapping):
        return {}
    return {str(name): float(rate) for name, rate in found.items() if isinstance(rate, int | float)}


def _balanced_text(source: HeadView, own: float, accepted: Mapping[str, float]) -> str:
    others = ", ".join(f"{name} {rate:.0f}/s" for name, rate in accepted.items())
    return f"no move lowers the higher of two heads: {source.name} accepts {own:.0f}/s, {others or 'no other is ready'}"


def _selected(request: SessionRequest, session: Session, names: list[str]) -> tuple[list[str], list[str]]:
    """The publishers that the request selects, and those that it names and that are not there."""
    select = request.spec.select
    excluded = set(request.spec.exclusions.subscribers)
    here = [name for name in names if name not in excluded]
    if select is None:
        return here, []
    if select.names:
        present = set(here)
        return [name for name in select.names if name in present], [n for n in select.names if n not in present]
    if select.count is not None:
        return here[: select.count], []
    return here[: -(-len(here) * (select.share_percent or 0) // 100)], []


def _pairs(
    source: HeadView, heads: Mapping[str, HeadView], found: list[publisher_balance.PublisherPlacement]
) -> list[PlannedPair]:
    by_head: dict[str, list[str]] = {}
    for placement in found:
        by_head.setdefault(placement.head, []).append(placement.publisher)
    return [
        PlannedPair(source=source.name, target=name, source_head=source.name, target_head=name, members=members)
        for name, members in sorted(by_head.items())
    ]
