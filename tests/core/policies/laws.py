"""The laws of balancing decisions, checked against exact fleets: what sessions may do while the load is constant.

`python -m tests.core.policies.laws [FLEETS]` counts the fleets that break each law, for every policy.

1. Endless: sessions end; the fleet is never where it was.
2. Return: no subscriber returns to an edge that it was moved from.
3. Target: no session leaves its target above a lower threshold.
4. Stranded: no edge stays overloaded if one session could lessen its overload and overload no target.
5. Moves: at most 1.5 times the moves of the shortest way to a state as good as the one reached.
6. Reason: a plan that moves no subscriber says that none may move, and that is true of each number of each row.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from random import Random
from typing import NamedTuple

from tests.core.policies.exact_fleet import SIZE_BYTES, DelayKnowledge, ExactFleet, Hardware

from plimsoll.core.policies.balancing_policy import BalancingPolicy
from plimsoll.core.policies.detection import DetectionResult, Detector, DetectorState
from plimsoll.core.policies.model.broker_pair import BrokerPair
from plimsoll.core.policies.model.load import METRICS, BrokerLoad, Resource
from plimsoll.core.policies.model.parameters import BalancingParameters
from plimsoll.core.policies.model.plan import BrokerAction, OffloadPlan
from plimsoll.core.policies.padres import Padres
from plimsoll.core.policies.padres.policy import goal_of
from plimsoll.core.policies.padres.report_cards import OUTPUT_WEIGHT, objection, report_card
from plimsoll.core.policies.registry import POLICIES

MOVES_FACTOR = 1.5
SESSIONS_AT_MOST = 60
LONG_AGO = -1e9
TINY = 1e-6
LAWS = ("endless", "return", "target", "stranded", "moves", "reason")
MOVES_BY = ("output weighed alike", "one pair", "several pairs")


@dataclass
class FleetRun:
    """What became of one fleet. `broken`: the laws that were, each with what happened; `moves_by`: why too many."""

    fleet: ExactFleet
    plans: list[OffloadPlan] = field(default_factory=list)
    broken: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    left: dict[str, set[str]] = field(default_factory=dict)
    worst_target: float = 0.0
    targets_above: int = 0
    futile: int = 0
    moves_by: str = ""

    @property
    def moves(self) -> int:
        """Subscribers moved, each time that one was."""
        return sum(len(plan.members) for plan in self.plans)


def run(fleet: ExactFleet, policy: BalancingPolicy, *, optimum: bool = True) -> FleetRun:
    """One session after another, until no edge wants one or a session could move no subscriber."""
    found, first, left = FleetRun(fleet), fleet, defaultdict[str, set[str]](set)
    found.left = left
    seen = {fleet.state()}
    while len(found.plans) < SESSIONS_AT_MOST and (plan := _next(found, policy)) is not None:
        found.plans.append(plan)
        for move in plan.moves:
            for name in move.subscribers:
                if move.target in left[name]:
                    found.broken["return"].append(f"{name} returns to {move.target}")
                left[name].add(move.source)
        fleet = found.fleet = fleet.after(plan)
        _judge_target(found, plan, policy)
        if fleet.state() in seen:
            found.broken["endless"].append("the fleet is where it was")
            break
        seen.add(fleet.state())
    if "endless" not in found.broken:
        _judge_end(found, policy)
        if optimum and found.moves:
            _judge_moves(found, first, policy)
    return found


def _next(found: FleetRun, policy: BalancingPolicy) -> OffloadPlan | None:
    """The first plan that moves a subscriber: in the order of sessions; of edges long between thresholds last."""
    fleet, detector = found.fleet, Detector(policy.parameters)
    loads = {edge: fleet.load(edge) for edge in sorted(fleet.hardware)}
    for edge, load in loads.items():
        loads[edge] = replace(load, state=detector.run(load, (), DetectorState(), 0.0)[1].state)
    for memory in (DetectorState(), DetectorState(inert_since=LONG_AGO)):
        wishes = [(loads[edge], detector.run(loads[edge], loads.values(), memory, 0.0)[1]) for edge in sorted(loads)]
        for own, finding in sorted((wish for wish in wishes if wish[1].actions), key=_urgency):
            for action in policy.ranked(own, finding.actions, loads):
                profile, staying = fleet.profile(own.name, action.target), _staying(found, action, policy)
                plan = policy.plan(own, loads[action.target], profile, action, staying, others=loads.values())
                if plan.moves:
                    return plan
                found.futile += 1
                _judge_reason(found, plan, policy, loads.values(), staying)
    return None


def _urgency(wish: tuple[BrokerLoad, DetectionResult]) -> tuple[bool, float, str]:
    """As sessions have it: overloaded edges first, then those with the largest difference."""
    own, finding = wish
    is_overloaded = any(action.overloaded for action in finding.actions)
    return not is_overloaded, -max(action.difference for action in finding.actions), own.name


def _staying(found: FleetRun, action: BrokerAction, policy: BalancingPolicy) -> dict[str, str]:
    """Subscribers that have been moved away from the target stay, unless their edge is overloaded.

    As sessions have it, except by the letter of the paper.
    """
    if action.overloaded or policy.parameters.rules == "Paper":
        return {}
    return {name: "was moved away from there" for name, edges in found.left.items() if action.target in edges}


def overload(
    fleet: ExactFleet, edge: str, policy: BalancingPolicy, resources: Iterable[Resource] = ("input", "output")
) -> float:
    """How far an edge is above its lower thresholds of these resources, in all."""
    measures, limits = fleet.measures(edge), policy.parameters.thresholds
    return sum(max(0.0, measures.of_resource(each) - limits.of(each).lower) for each in resources)


def _judge_target(found: FleetRun, plan: OffloadPlan, policy: BalancingPolicy) -> None:
    measures = found.fleet.measures(plan.target.name)
    if over := policy.parameters.thresholds.above_lower(measures):
        highest = max(measures.of_resource(each) for each in over)
        found.targets_above, found.worst_target = found.targets_above + 1, max(found.worst_target, highest)
        if highest > 0.9 + TINY:
            found.broken["target"].append(f"{plan.target.name} is left at {highest:.3f}")


def _judge_end(found: FleetRun, policy: BalancingPolicy) -> None:
    """Whether one more session could lessen an overload; and whether the plans that move none say the truth."""
    fleet = found.fleet
    for edge in sorted(fleet.hardware):
        if not (over := policy.parameters.thresholds.above_higher(fleet.measures(edge))):
            continue
        before, rows = overload(fleet, edge, policy, over), _rows(fleet, edge)
        for placed in fleet.alternatives(rows):
            targets = set(placed.values())
            if len(targets) != 1:
                continue
            (target,) = targets
            after = replace(fleet, at={**fleet.at, **placed})
            if overload(after, target, policy) == 0.0 and overload(after, edge, policy, over) < before - TINY:
                found.broken["stranded"].append(f"{edge} at {before:.3f} could give {sorted(placed)} to {target}")
                break


def _judge_reason(
    found: FleetRun,
    plan: OffloadPlan,
    policy: BalancingPolicy,
    others: Iterable[BrokerLoad],
    staying: Mapping[str, str],
) -> None:
    """Whether a number of a row could have gone after all, by the rules of PADRES."""
    if not isinstance(policy, Padres):
        return
    profile, goal = found.fleet.profile(plan.source.name, plan.target.name), goal_of(plan.action)
    source, target = found.fleet.load(plan.source.name), found.fleet.load(plan.target.name)
    limits = policy.parameters
    pair = BrokerPair(source, target, profile, limits, limits.local_trigger, staying, None, others)
    is_stable = goal.metric == "output" and pair.difference("input") <= limits.balance_threshold
    for row in profile.rows:
        if (goal.metric == "input" and not row.bits) or (is_stable and not pair.is_covered(row)):
            continue
        for number in range(1, len(pair.movable[row.key]) + 1):
            at = pair.predict_move(row, number)
            card = report_card(pair, row, number, goal.metric)
            if not limits.thresholds.above_lower(at.target) and objection(pair, goal, card) is None:
                found.broken["reason"].append(f"{plan.action}: {number} of {row.key} may go, not {plan.stopped}")
                return


def _rows(fleet: ExactFleet, *edges: str) -> dict[tuple[str, str], list[str]]:
    rows: dict[tuple[str, str], list[str]] = {}
    for name, edge in sorted(fleet.at.items()):
        if edge in edges:
            rows.setdefault((fleet.asks[name], edge), []).append(name)
    return rows


def unrelieved(fleet: ExactFleet, edge: str, policy: BalancingPolicy) -> float:
    """How far an edge is above where relief ends, in all."""
    measures, limits = fleet.measures(edge), policy.parameters.thresholds
    named: tuple[Resource, ...] = ("input", "output")
    return sum(max(0.0, measures.of_resource(each) - limits.of(each).relieved) for each in named)


class Quality(NamedTuple):
    """What is above where relief ends; the squared differences beyond the triggers, and those with a tenth of output's.

    The delay of an edge that takes nothing in is what a publication would take, which it cannot measure.
    """

    over: float
    apart: float
    weighed: float


def quality(fleet: ExactFleet, policy: BalancingPolicy) -> Quality:
    """How good a state is."""
    limits, over = policy.parameters, sum(unrelieved(fleet, edge, policy) for edge in fleet.hardware)
    loads = [fleet.measures(edge)._replace(match_delay_seconds=fleet.delay(edge)) for edge in sorted(fleet.hardware)]
    apart = dict.fromkeys(METRICS, 0.0)
    for one, other in combinations(loads, 2):
        for metric in METRICS:
            limit = limits.local_trigger.delay if metric == "match" else limits.local_trigger.ratio
            factor = limits.normalization_seconds
            beyond = max(0.0, abs(one.of_metric(metric, factor) - other.of_metric(metric, factor)) - limit)
            apart[metric] += beyond**2
    first = apart["input"] + apart["match"]
    return Quality(over, first + apart["output"], first + OUTPUT_WEIGHT * apart["output"])


def _judge_moves(found: FleetRun, first: ExactFleet, policy: BalancingPolicy) -> None:
    """Search every placement with fewer moves for one that is as good, and leaves no target above a threshold.

    Those found are told apart: by whether one is as good also where output counts a tenth, as it does in the rules of
    PADRES, and by whether all sessions were between the same two edges.
    """
    reached, allowed = quality(found.fleet, policy), found.moves / MOVES_FACTOR - TINY
    pairs = {frozenset((plan.source.name, plan.target.name)) for plan in found.plans}
    for placed in sorted(first.alternatives(_rows(first, *first.hardware)), key=len):
        if len(placed) > allowed:
            return
        after = replace(first, at={**first.at, **placed})
        if any(overload(after, edge, policy) > 0.0 for edge in set(placed.values())):
            continue
        one = quality(after, policy)
        if one.over > reached.over + TINY or one.apart > reached.apart + TINY:
            continue
        if "moves" not in found.broken:
            found.broken["moves"].append(f"{found.moves} moves where {len(placed)} are enough: {placed}")
            found.moves_by = "output weighed alike"
        if one.weighed <= reached.weighed + TINY:
            found.moves_by = "one pair" if len(pairs) == 1 else "several pairs"
            return


# ---------------------------------------------------------------- fleets


def random_fleet(seed: int, knowledge: DelayKnowledge = "Measured") -> ExactFleet:
    """Two or three edges, up to four publishers, three to seven subscribers; the whole load fits, or nearly."""
    drawn = Random(seed)
    edges = [f"b{number}" for number in range(1, drawn.choice((3, 3, 4)))]
    publishers, scale = drawn.randint(1, 4), drawn.choice((1.0, 30.0, 1200.0))
    rates = tuple(scale * drawn.choice((0.25, 0.5, 1.0, 1.0)) for _ in range(publishers))
    wants = {f"k{number}": drawn.randrange(1 << publishers) for number in range(drawn.randint(1, 4))}
    wants["k0"] = wants["k0"] or 1
    names = [f"s{number}" for number in range(drawn.randint(3, 7))]
    asks = {name: drawn.choice(sorted(wants)) for name in names}
    ratio, load, sent = drawn.choice((0.0, 1.0, 5.0, 25.0)), drawn.uniform(0.3, 1.3), drawn.uniform(0.1, 1.2)
    power = {edge: drawn.choice((1.0, 1.0, 2.0, 4.0)) for edge in edges}
    total = sum(power.values())
    deliveries = sum(sum(r for i, r in enumerate(rates) if wants[key] >> i & 1) for key in asks.values())
    cost = load * total / sum(rates) / (ratio + len(names)) / len(edges)
    room = max(deliveries, 1.0) * SIZE_BYTES / total / sent
    kinds = {edge: Hardware(ratio * cost / times, cost / times, room * times) for edge, times in power.items()}
    crowded = drawn.random() < 0.5
    at = {name: edges[0] if crowded else drawn.choice(edges) for name in names}
    return ExactFleet(rates, wants, kinds, asks, at, knowledge)


def count(policy: BalancingPolicy, seeds: range, knowledge: DelayKnowledge) -> Counter[str]:
    """Fleets that break each law, sessions, and targets left too high, of these random fleets."""
    sums: Counter[str] = Counter()
    worst = 0.0
    for seed in seeds:
        found = run(random_fleet(seed, knowledge), policy)
        sums.update([*found.broken, found.moves_by])
        sums.update(sessions=len(found.plans), moved=found.moves, futile=found.futile, above=found.targets_above)
        worst = max(worst, found.worst_target)
    sums["worst target, thousandths"] = round(1000 * worst)
    return sums


def policies() -> Iterator[tuple[str, BalancingPolicy]]:
    """All of them, with the parameters that they have by default; and PADRES by the letter of the paper."""
    yield "Padres, Paper", Padres(BalancingParameters(rules="Paper"))
    for name, kind in POLICIES.items():
        yield name, kind(BalancingParameters())


def table(fleets: int) -> Iterator[str]:
    """The rows of the table in docs/padres.md."""
    yield f"| policy | matching delay | sessions | moved | {' | '.join(LAWS)} | worst target | {' | '.join(MOVES_BY)} |"
    told: tuple[DelayKnowledge, ...] = ("Linear", "Measured")
    for knowledge in told:
        for label, chosen in policies():
            found = count(chosen, range(fleets), knowledge)
            broken = " | ".join(str(found[law]) for law in LAWS)
            worst = found["worst target, thousandths"] / 1000
            by = " | ".join(str(found[each]) for each in MOVES_BY)
            yield f"| {label} | {knowledge} | {found['sessions']} | {found['moved']} | {broken} | {worst:.3f} | {by} |"


if __name__ == "__main__":
    for line in table(int(sys.argv[1]) if len(sys.argv) > 1 else 1000):
        print(line, flush=True)
