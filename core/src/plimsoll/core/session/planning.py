"""From who is served to who moves where: a plan, its hash, and everybody's reason to stay.

A plan is a function of what it is made from: the same subscribers, loads and history give the same plan and hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from plimsoll.core.policies import Placer, Port, Unit
from plimsoll.core.policies.placement import spread
from plimsoll.core.session.record import Forecast, Pair, Plan
from plimsoll.core.session.values import EdgeView, Request

REASONS = {
    "Excluded": "is excluded by the session",
    "InAnotherSession": "is being moved by another session",
    "MovedRecently": "was moved less than moveInterval ago",
    "NotServed": "is not served by the source",
    "NoPlace": "no edge can take it",
    "OverLimit": "is beyond limits.maxMoves",
}
NAMED_AT_MOST = 5


@dataclass(frozen=True)
class Selection:
    """Who should move, from where, and who should not. `wanted`: how many the request means in all."""

    chosen: dict[str, list[str]]
    rejected: dict[str, list[str]]
    wanted: int


def select(
    request: Request, served: Mapping[str, Sequence[str]], wanted: int | None, resting: Set[str], busy: Set[str]
) -> Selection:
    """Choose among those served, by edge, but for those that were moved just now and those that another session moves.

    `wanted` is how many an earlier attempt has left over; None at the first.
    """
    spec = request.spec
    rejected: dict[str, list[str]] = {}
    eligible: dict[str, list[str]] = {}
    excluded = set(spec.exclusions.subscribers)
    is_drain = spec.action == "Drain" or request.parent != ""
    for edge, names in sorted(served.items()):
        for name in names:
            if name in excluded:
                rejected.setdefault("Excluded", []).append(name)
            elif name in busy:
                rejected.setdefault("InAnotherSession", []).append(name)
            elif name in resting and not is_drain:
                rejected.setdefault("MovedRecently", []).append(name)
            else:
                eligible.setdefault(edge, []).append(name)
    total = sum(len(names) for names in served.values())
    if spec.select is not None and spec.select.names:
        named = set(spec.select.names)
        here = {name for names in served.values() for name in names}
        missing = sorted(named - here)
        if missing:
            rejected["NotServed"] = missing
        rejected = {reason: kept for reason, names in rejected.items() if (kept := [n for n in names if n in named])}
        eligible = {edge: [name for name in names if name in named] for edge, names in eligible.items()}
        wanted = len(named)
    elif wanted is None:
        wanted = total if spec.select is None else _amount(spec.select.count, spec.select.share_percent, total)
    room = wanted if spec.limits.max_moves is None else min(wanted, spec.limits.max_moves)
    chosen = _shares(eligible, room)
    over = wanted - room
    if over > 0 and (rest := [n for edge, names in eligible.items() for n in names if n not in set(chosen[edge])]):
        rejected["OverLimit"] = sorted(rest)[:over]
    return Selection({edge: names for edge, names in chosen.items() if names}, rejected, wanted)


def _amount(count: int | None, percent: int | None, total: int) -> int:
    return count if count is not None else -(-total * (percent or 0) // 100)


def _shares(eligible: Mapping[str, list[str]], amount: int) -> dict[str, list[str]]:
    """The first by name of each edge, by largest remainder in proportion to how many it has."""
    total = sum(len(names) for names in eligible.values())
    amount = min(amount, total)
    if not total:
        return {edge: [] for edge in eligible}
    exact = {edge: (amount * len(names)) / total for edge, names in eligible.items()}
    share = {edge: int(value) for edge, value in exact.items()}
    by_remainder = sorted(eligible, key=lambda edge: (share[edge] - exact[edge], edge))
    for edge in by_remainder[: amount - sum(share.values())]:
        share[edge] += 1
    return {edge: names[: share[edge]] for edge, names in eligible.items()}


def port_of(edge: EdgeView) -> Port:
    """An edge as placers see it."""
    utilization = max(_ratio(edge, "input_utilization"), _ratio(edge, "output_utilization"))
    return Port(edge.name, utilization, edge.subscribers, _ratio(edge, "capacity") or 1.0)


def unit_of(edge: EdgeView) -> Unit:
    """One subscriber of an edge: an equal part of its load."""
    port = port_of(edge)
    load = port.utilization * port.capacity / port.subscribers if port.subscribers else 0.0
    return Unit(1, load)


def _ratio(edge: EdgeView, name: str) -> float:
    value = edge.report.get(name, 0.0)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < float("inf")
    return float(value) if usable else 0.0


def make(
    selection: Selection, edges: Mapping[str, EdgeView], targets: Sequence[EdgeView], placer: Placer, now: float
) -> Plan:
    """Pairs of edges with those who move between them, and what becomes of their loads."""
    before = {name: port_of(edges[name]) for name in selection.chosen}
    before |= {edge.name: port_of(edge) for edge in targets}
    after, rejected = dict(before), dict(selection.rejected)
    pairs: dict[tuple[str, str], list[str]] = {}
    for source, names in sorted(selection.chosen.items()):
        unit = unit_of(edges[source])
        chosen, ports = spread(placer, unit, len(names), [after[edge.name] for edge in targets])
        after |= ports
        after[source] = after[source].without(Unit(len(chosen), unit.load * len(chosen)))
        for name, target in zip(names, chosen, strict=False):
            pairs.setdefault((source, target), []).append(name)
        if len(chosen) < len(names):
            rejected.setdefault("NoPlace", []).extend(names[len(chosen) :])
    made = [
        Pair(source=a, target=b, source_head=edges[a].head, target_head=edges[b].head, members=names)
        for (a, b), names in sorted(pairs.items())
    ]
    used = {edge for pair in made for edge in (pair.source, pair.target)}
    forecasts = [_forecast(before[name], after[name]) for name in sorted(used)]
    return Plan(hash=hash_of(made), pairs=made, made_at=now, rejected=rejected, forecasts=forecasts)


def _forecast(before: Port, after: Port) -> Forecast:
    return Forecast(
        edge=before.name,
        utilization_before=round(before.utilization, 4),
        utilization_after=round(after.utilization, 4),
        subscribers_before=before.subscribers,
        subscribers_after=after.subscribers,
    )


def hash_of(pairs: Sequence[Pair]) -> str:
    """Sixteen hex digits over who moves from where to where, in order and in which wave."""
    waves = ([pair.wave] if pair.wave else [] for pair in pairs)
    told = [[pair.source, pair.target, pair.members, *wave] for pair, wave in zip(pairs, waves, strict=True)]
    text = json.dumps(told, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def gone(plan: Plan, served: Mapping[str, Sequence[str]]) -> list[str]:
    """Those of a plan who are not where it takes them from."""
    here = {edge: set(names) for edge, names in served.items()}
    return [name for pair in plan.pairs for name in pair.members if name not in here.get(pair.source, ())]


def difference(old: Plan, new: Plan) -> str:
    """What a new plan does otherwise, in words."""
    before = {name: pair.target for pair in old.pairs for name in pair.members}
    after = {name: pair.target for pair in new.pairs for name in pair.members}
    changes = {
        "no longer move": [name for name in before if name not in after],
        "move as well": [name for name in after if name not in before],
        "go elsewhere": [name for name in after if before.get(name, after[name]) != after[name]],
    }
    parts = [f"{len(names)} {what}: {shown(names)}" for what, names in changes.items() if names]
    return "; ".join(parts) or "the same subscribers in another order"


def shown(names: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    more = f" and {len(names) - NAMED_AT_MOST} more" if len(names) > NAMED_AT_MOST else ""
    return ", ".join(names[:NAMED_AT_MOST]) + more


def why_nothing(rejected: Mapping[str, Sequence[str]]) -> str:
    """Why a plan is empty."""
    parts = [f"{len(names)} {REASONS.get(reason, reason)}: {shown(names)}" for reason, names in rejected.items()]
    return "; ".join(parts) or "the source serves nobody"
