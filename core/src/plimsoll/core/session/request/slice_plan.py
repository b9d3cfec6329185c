"""Plans that move slices of a consumer group between its consumers, and what they predict.

The policy of the group, that of its head, plans from a sample of the group; a request may name slices and consumers
instead. Each pair of giver and taker is a session of the text, one after another (DPSLB 2014, 3.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from plimsoll.core.policies.consumer_groups.explanation import imbalance_text, numbers_text
from plimsoll.core.policies.consumer_groups.membership import spread
from plimsoll.core.policies.consumer_groups.model import ConsumerLoad, SlicePlan
from plimsoll.core.policies.consumer_groups.named import BALANCING, session_policy
from plimsoll.core.protocol.slice_names import slice_name, slice_of_name
from plimsoll.core.session.context.engine_context import EngineContext
from plimsoll.core.session.context.group_samples import GroupSample
from plimsoll.core.session.inputs import HeadView, SessionRequest
from plimsoll.core.session.request import planner
from plimsoll.core.session.session_plan import Forecast, MoveGroup, PlannedPair, SessionPlan
from plimsoll.core.session.state import SessionVerdict
from plimsoll.core.spec.types.session import SliceMovesSpec

NO_BALANCING: Final = "None"
BY_USAGE: Final = "Pairing"
"""The policy whose load is that of the process, not what slices cost."""


def slices_of(request: SessionRequest) -> SliceMovesSpec:
    """What a request says of slices."""
    if request.spec.slices is None:
        raise AssertionError("a request of MoveSlices without `slices` is refused before this")
    return request.spec.slices


def group_of(request: SessionRequest) -> str:
    """The group of a request with its cluster, as sessions reserve it: CLUSTER/GROUP."""
    source = request.spec.source
    return f"{'' if source is None else source.name}/{slices_of(request).group}"


def head_of(context: EngineContext, request: SessionRequest) -> HeadView | None:
    """The head of the group."""
    source = request.spec.source
    return None if source is None else context.fleet.head_of(source.name)


def refusal(context: EngineContext, request: SessionRequest) -> SessionVerdict | None:
    """Why a request cannot be carried out in any state of the fleet."""
    spec = request.spec
    if spec.slices is None or spec.source is None:
        message = "MoveSlices needs the cluster as `source`, and `slices: {group: NAME}`"
        return SessionVerdict(reason="NotFound", message=message)
    if head_of(context, request) is None:
        message = (
            f"spec.source is {spec.source.name}, and there is no cluster of that name: name the cluster of the group"
        )
        return SessionVerdict(reason="NotFound", message=message, again=True)
    return None


def sample_refusal(request: SessionRequest, sample: GroupSample) -> SessionVerdict | None:
    """Why a request cannot be carried out in this group."""
    wanted, names = slices_of(request), {c.name for c in sample.consumers}
    if not sample.balancing:
        message = f"{request.spec.source.name if request.spec.source else ''} has no consumer group {wanted.group}"
        return SessionVerdict(reason="NotFound", message=message, again=True)
    for role, name in (("giver", wanted.giver), ("taker", wanted.taker)):
        if name and name not in names:
            message = f"slices.{role} is {name}, and {wanted.group} has no such consumer: {_some(names)}"
            return SessionVerdict(reason="NotFound", message=message, again=True)
    if not (wanted.giver or wanted.numbers) and BALANCING.get(sample.balancing) is None:
        message = f"{wanted.group} has balancing {sample.balancing}: name slices, or the consumer that gives them"
        return SessionVerdict(reason="NoPolicy", message=message)
    return None


def _some(names: Iterable[str]) -> str:
    return planner.shorten_names(sorted(names)) if names else "it has none"


def make_slice_plan(
    context: EngineContext, request: SessionRequest, head: HeadView, sample: GroupSample
) -> SessionPlan:
    """The slices that move, pair by pair, with the load that is predicted of each consumer that takes part."""
    wanted, excluded = slices_of(request), set(request.spec.exclusions.subscribers)
    rejected: dict[str, list[str]] = {}
    if wanted.giver or wanted.numbers:
        found, why = _selected(wanted, sample, excluded, rejected), "it was asked for"
    else:
        consumers = [replace(c, takes=c.takes and c.name not in excluded) for c in sample.consumers]
        policy = session_policy(sample.balancing, len(consumers))
        found = SlicePlan() if policy is None else policy.balance(consumers)
        why = imbalance_text([c for c in consumers if c.stays], found) if found.moves else ""
    left_out = {"Excluded": excluded}
    if not (wanted.giver or wanted.numbers):  # a policy; what a user names moves, as by a drain of an edge
        seconds = context.settings.seconds(request.spec.limits.move_interval)
        left_out["MovedRecently"] = context.recently_moved(seconds, "slices")
    pairs = _pairs(wanted.group, head.name, found, left_out, request.spec.limits.max_moves, rejected)
    return SessionPlan(
        hash=planner.hash_pairs(pairs),
        pairs=pairs,
        made_at=context.now,
        rejected=rejected,
        forecasts=_forecasts(sample, pairs),
        handover="drain",
        why="the giver finishes what its application has in hand; the taker goes on from the head's log",
        policy=sample.balancing if not (wanted.giver or wanted.numbers) else "",
        metric="usage" if sample.balancing == BY_USAGE else "cost",
        moves=[MoveGroup(count=len(p.members), reason=why, what=numbers_text(numbers_of(p.members))) for p in pairs],
        stop=found.reason,
    )


def _selected(
    wanted: SliceMovesSpec, sample: GroupSample, excluded: set[str], rejected: dict[str, list[str]]
) -> SlicePlan:
    """The slices that a request names, or all of its giver, for its taker or for those with the least cost."""
    holders = sample.holders
    numbers = wanted.numbers or [number for number, name in holders.items() if name == wanted.giver]
    able = [n for n in numbers if n in holders and wanted.giver in ("", holders[n]) and holders[n] != wanted.taker]
    if missing := sorted(set(numbers) - set(able)):
        rejected["NotThere"] = [slice_name(wanted.group, number) for number in missing]
    givers = {holders[number] for number in able}
    others = [c for c in sample.consumers if c.name not in excluded and c.name not in givers]
    takers = [c.name for c in others if c.stays] or [c.name for c in others]  # those that were emptied, if need be
    takers = [wanted.taker] if wanted.taker else takers
    if not takers:
        return SlicePlan(reason="no other consumer takes slices")
    return spread(sample.consumers, able, takers)


def numbers_of(members: Iterable[str]) -> list[int]:
    """The numbers of slices by the names that brokers have for them."""
    return [found[1] for name in members if (found := slice_of_name(name)) is not None]


def _pairs(
    group: str,
    head: str,
    plan: SlicePlan,
    left_out: Mapping[str, set[str]],
    most: int | None,
    rejected: dict[str, list[str]],
) -> list[PlannedPair]:
    pairs, room = [], len(plan.moves) if most is None else most
    for session in plan.sessions:
        members = []
        for move in session:
            name = slice_name(group, move.number)
            why = next((reason for reason, names in left_out.items() if name in names), "" if room else "OverLimit")
            if why:
                rejected.setdefault(why, []).append(name)
                continue
            room -= 1
            members.append(name)
        if members:
            giver, taker = session[0].giver, session[0].taker
            pair = PlannedPair(source=giver, target=taker, source_head=head, target_head=head, members=members)
            pairs.append(pair)
    return pairs


def _forecasts(sample: GroupSample, pairs: Sequence[PlannedPair]) -> list[Forecast]:
    """The load of each consumer that takes part, before and after."""
    by_usage = sample.balancing == BY_USAGE
    weights = {each.number: _weight(c, each.cost, by_usage) for c in sample.consumers for each in c.slices}
    change: dict[str, tuple[float, int]] = {}
    for pair in pairs:
        numbers = numbers_of(pair.members)
        weight = sum(weights[number] for number in numbers)
        for name, sign in ((pair.source, -1), (pair.target, 1)):
            load, count = change.get(name, (0.0, 0))
            change[name] = load + sign * weight, count + sign * len(numbers)
    return [
        Forecast(
            edge=c.name,
            utilization_before=round(load_of(c, sample.balancing), 4),
            utilization_after=round(max(0.0, load_of(c, sample.balancing) + change[c.name][0]), 4),
            subscribers_before=len(c.slices),
            subscribers_after=len(c.slices) + change[c.name][1],
        )
        for c in sample.consumers
        if c.name in change
    ]


def _weight(consumer: ConsumerLoad, cost: float, by_usage: bool) -> float:
    return consumer.usage / len(consumer.slices) if by_usage else cost


def load_of(consumer: ConsumerLoad, balancing: str) -> float:
    """The load that the policy of a group evens out: seconds of work per second, or the share of a processor."""
    return consumer.usage if balancing == BY_USAGE else consumer.cost
