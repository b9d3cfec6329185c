"""Plans for selected subscribers: the moves, their hash, and the reasons of those that stay.

A plan is a function of its inputs: the same subscribers, loads and history give the same plan and hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from plimsoll.core.policies import PlacementTarget, PlacementUnit, Placer
from plimsoll.core.policies.placement import place_units
from plimsoll.core.session.inputs import EdgeView, SessionRequest
from plimsoll.core.session.session_plan import Forecast, PlannedPair, SessionPlan

STAY_REASONS = {
    "Excluded": "is excluded by the session",
    "InAnotherSession": "is being moved by another session",
    "MovedAway": "was moved away from the target, and the load is as it was then",
    "MovedRecently": "was moved less than moveInterval ago",
    "NotServed": "is not served by the source",
    "NotThere": "is not there, or is where it is to go",
    "NoPlace": "no edge can take it",
    "OverLimit": "is beyond limits.maxMoves",
}
NAMED_AT_MOST = 5


@dataclass(frozen=True)
class Selection:
    """Subscribers to move by source edge, and those that stay by reason. `wanted`: how many should move in all."""

    chosen: dict[str, list[str]]
    rejected: dict[str, list[str]]
    wanted: int


def select_members(
    request: SessionRequest, served: Mapping[str, Sequence[str]], wanted: int | None, resting: Set[str], busy: Set[str]
) -> Selection:
    """Choose among the subscribers of each edge, without those in `resting` (moved lately) and `busy` (being moved).

    `wanted` is how many an earlier attempt has left; None at the first.
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
    """The first subscribers by name of each edge, in proportion to their number, by largest remainder."""
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


def placer_port(edge: EdgeView) -> PlacementTarget:
    """An edge as input of a placer."""
    utilization = max(_ratio(edge, "input_utilization"), _ratio(edge, "output_utilization"))
    return PlacementTarget(edge.name, utilization, edge.subscribers, _ratio(edge, "capacity") or 1.0)


def placer_unit(edge: EdgeView) -> PlacementUnit:
    """One subscriber of an edge: an equal part of its load."""
    port = placer_port(edge)
    load = port.utilization * port.capacity / port.subscribers if port.subscribers else 0.0
    return PlacementUnit(1, load)


def _ratio(edge: EdgeView, name: str) -> float:
    value = edge.report.get(name, 0.0)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < float("inf")
    return float(value) if usable else 0.0


def make_plan(
    selection: Selection, edges: Mapping[str, EdgeView], targets: Sequence[EdgeView], placer: Placer, now: float
) -> SessionPlan:
    """Pairs of edges with the subscribers that move between them, and forecasts of their loads."""
    before = {name: placer_port(edges[name]) for name in selection.chosen}
    before |= {edge.name: placer_port(edge) for edge in targets}
    after, rejected = dict(before), dict(selection.rejected)
    pairs: dict[tuple[str, str], list[str]] = {}
    for source, names in sorted(selection.chosen.items()):
        unit = placer_unit(edges[source])
        chosen, ports = place_units(placer, unit, len(names), [after[edge.name] for edge in targets])
        after |= ports
        after[source] = after[source].without(PlacementUnit(len(chosen), unit.load * len(chosen)))
        for name, target in zip(names, chosen, strict=False):
            pairs.setdefault((source, target), []).append(name)
        if len(chosen) < len(names):
            rejected.setdefault("NoPlace", []).extend(names[len(chosen) :])
    made = [
        PlannedPair(source=a, target=b, source_head=edges[a].head, target_head=edges[b].head, members=names)
        for (a, b), names in sorted(pairs.items())
    ]
    used = {edge for pair in made for edge in (pair.source, pair.target)}
    forecasts = [_forecast(before[name], after[name]) for name in sorted(used)]
    return SessionPlan(hash=hash_pairs(made), pairs=made, made_at=now, rejected=rejected, forecasts=forecasts)


def _forecast(before: PlacementTarget, after: PlacementTarget) -> Forecast:
    return Forecast(
        edge=before.name,
        utilization_before=round(before.utilization, 4),
        utilization_after=round(after.utilization, 4),
        subscribers_before=before.subscribers,
        subscribers_after=after.subscribers,
    )


def hash_pairs(pairs: Sequence[PlannedPair]) -> str:
    """Sixteen hex digits over all moves, in their order and waves."""
    waves = ([pair.wave] if pair.wave else [] for pair in pairs)
    told = [[pair.source, pair.target, pair.members, *wave] for pair, wave in zip(pairs, waves, strict=True)]
    text = json.dumps(told, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def missing_members(plan: SessionPlan, served: Mapping[str, Sequence[str]]) -> list[str]:
    """Members of a plan that are not at their source."""
    here = {edge: set(names) for edge, names in served.items()}
    return [name for pair in plan.pairs for name in pair.members if name not in here.get(pair.source, ())]


def describe_difference(old: SessionPlan, new: SessionPlan) -> str:
    """The difference between two plans in one line."""
    before = {name: pair.target for pair in old.pairs for name in pair.members}
    after = {name: pair.target for pair in new.pairs for name in pair.members}
    changes = {
        "no longer move": [name for name in before if name not in after],
        "move as well": [name for name in after if name not in before],
        "go elsewhere": [name for name in after if before.get(name, after[name]) != after[name]],
    }
    parts = [f"{len(names)} {what}: {shorten_names(names)}" for what, names in changes.items() if names]
    return "; ".join(parts) or "the same subscribers in another order"


def shorten_names(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - NAMED_AT_MOST} more" if len(names) > NAMED_AT_MOST else ""
    return ", ".join(names[:NAMED_AT_MOST]) + more


def empty_plan_reason(rejected: Mapping[str, Sequence[str]]) -> str:
    """Why a plan is empty."""
    parts = [f"{_stay_words(reason, len(names))}: {shorten_names(names)}" for reason, names in rejected.items()]
    return "; ".join(parts) or "the source has no subscribers"


def _stay_words(reason: str, number: int) -> str:
    """`1 was moved less than moveInterval ago`, `2 were moved ...`."""
    verb, _, rest = STAY_REASONS.get(reason, reason).partition(" ")
    several = {"was": "were", "is": "are"}.get(verb, verb)
    return f"{number} {verb if number == 1 else several} {rest}".rstrip()
