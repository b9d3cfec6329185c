"""Faults of a plan of BAD, found without the code that made it.

Every broker is filled again with its subscribers as plain sets, once as they are and once as the plan has them, and the
loads F = I + O are added up from the samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from plimsoll.core.verify import offload_plan_checker
from plimsoll.core.verify.plan_accounting import member_faults, reason_faults
from plimsoll.core.verify.shuffle_plan_checker import ShufflePlanView

EQUAL = 1e-6
"""Loads that differ by a smaller part are equal."""


@dataclass(frozen=True, slots=True)
class BadPlanContext:
    """The data to check a plan against. `profiles`: of each broker, with each subscription; `takes`: who may take.

    `capacities`: what the load of each is divided by. `stays`: subscribers that may not move; `most`: how many may.
    `relieved`: brokers that are overloaded, and relieved before the highest load counts.
    """

    profiles: Mapping[str, Any]
    takes: Set[str]
    capacities: Mapping[str, float]
    stays: Set[str] = frozenset()
    most: int | None = None
    relieved: Set[str] = frozenset()


def bad_plan_faults(plan: ShufflePlanView, fleet: BadPlanContext) -> list[str]:
    """Every fault of a plan in words; empty if there is none.

    No subscriber may move twice, be unknown or be one that must stay; targets may take; each has a reason to move or to
    stay; and the highest load falls, or fewer brokers are at it, or a broker that is relieved has fewer subscribers.
    """
    moves = [move for wave in plan.waves for move in wave]
    found = [*member_faults(moves, fleet), *reason_faults(plan, moves, fleet)]
    return found or list(_objective(moves, fleet))


def _places(fleet: BadPlanContext) -> dict[str, str]:
    return {name: broker for broker, profile in fleet.profiles.items() for row in profile.rows for name in row.names}


def _objective(moves: Sequence[Any], fleet: BadPlanContext) -> Iterator[str]:
    if not moves:
        return
    before = _places(fleet)
    after = before | {name: move.target for move in moves for name in move.subscribers}
    if any(_count_of(name, after) < _count_of(name, before) for name in fleet.relieved):
        return
    was, will = (sorted(_loads(places, fleet), reverse=True) for places in (before, after))
    least = EQUAL * max(1.0, was[0])
    if abs(will[0] - was[0]) <= least:
        if _count_at(will, was[0] - least) >= _count_at(was, was[0] - least):
            yield f"the highest load stays {was[0]:.4g}, at as many brokers"
    elif will[0] > was[0]:
        yield f"the highest load would rise from {was[0]:.4g} to {will[0]:.4g}"


def _count_of(broker: str, places: Mapping[str, str]) -> int:
    return sum(place == broker for place in places.values())


def _count_at(loads: Sequence[float], level: float) -> int:
    return sum(load >= level for load in loads)


def _loads(places: Mapping[str, str], fleet: BadPlanContext) -> list[float]:
    rates = _rates(fleet)
    wanted = {
        name: _texts(row, profile) for profile in fleet.profiles.values() for row in profile.rows for name in row.names
    }
    found = []
    for broker in fleet.profiles:
        here = [wanted[name] for name, place in places.items() if place == broker]
        distinct = set().union(*here) if here else set()
        whole = sum(rates[text] for text in distinct) + sum(rates[text] for texts in here for text in texts)
        found.append(whole / fleet.capacities[broker])
    return found


def _texts(row: Any, profile: Any) -> set[str]:
    texts = set(row.texts)
    return texts if texts and texts <= {text for text, _ in profile.each} else {row.key}


def _rates(fleet: BadPlanContext) -> dict[str, float]:
    """Bytes per second of each back-end subscription: the highest that any broker has measured."""
    found: dict[str, float] = {}
    for profile in fleet.profiles.values():
        _, sizes = offload_plan_checker.weights(profile.traffic)
        bits = {row.key: row.bits for row in profile.rows} | dict(profile.each)
        for text in set().union(*(_texts(row, profile) for row in profile.rows)):
            rate = offload_plan_checker.total(offload_plan_checker.samples(bits[text]), sizes)
            found[text] = max(found.get(text, 0.0), rate)
    return found
