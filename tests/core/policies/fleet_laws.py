"""The laws of decisions for policies that plan for a whole cluster: what their plans may do while the load is constant.

`python -m tests.core.policies.fleet_laws [FLEETS]` counts the fleets that break each law, for every such policy.

1. Endless: plans end; the fleet is never where it was.
2. Return: no subscriber returns to an edge that it was moved from, unless a user has asked for another plan.
3. Target: no plan leaves an edge that takes above the highest level before it, by the policy's own measure.
4. Stranded: no edge stays overloaded if one move could lessen its overload and overload no target.
5. Moves: at most 1.5 times the moves of the shortest way to levels as low and as even as those reached.
6. Reason: a plan that moves none gives a true reason.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from random import Random
from statistics import fmean, pstdev
from typing import Any

from tests.core.policies.exact_fleet import SIZE_BYTES, ExactFleet
from tests.core.policies.laws import LAWS, MOVES_FACTOR, TINY, random_fleet

from plimsoll.core.policies.bad import Bad
from plimsoll.core.policies.delay_sensitive import DelaySensitive
from plimsoll.core.policies.model.broker_pair import likened_loads
from plimsoll.core.policies.model.bundle_load import BundleLoad
from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.core.policies.model.load import BrokerLoad, LoadChange
from plimsoll.core.policies.model.topic_load import TopicLoad
from plimsoll.core.policies.pulsar import Pulsar
from plimsoll.core.policies.rebalancer import NO_MEMORY, FleetLook, FleetSample, Rebalancer, RebalancingPlan, fleet_plan
from plimsoll.core.policies.shuffle import Shuffle
from plimsoll.core.policies.shuffle.plan import highest_metric
from plimsoll.core.protocol.topic_units import hash_of_unit, topic_hash, unit_name

PLANS_AT_MOST = 60
QUIET_LOOKS = 80
"""Looks without a plan that moves anything after which a fleet is at rest: smoothed usage is within a part in 4,000."""

OVERLOADED, LOWER = 0.95, 0.9
DEADLINE_SECONDS = 1.0
BUNDLES = 4


@dataclass(frozen=True)
class FleetPolicy:
    """`levels`: the load of each edge as the policy compares them. `is_asked`: plans are asked for by a user.

    `relieves`: it relieves overloaded edges first, so overload counts before levels. `has_topics`: what moves are
    bundles of topics; `has_deadlines`: what moves are single topics, with deadlines.
    """

    label: str
    policy: Rebalancer[Any]
    levels: Callable[[FleetSample], Mapping[str, float]]
    has_topics: bool = False
    is_asked: bool = False
    relieves: bool = False
    has_deadlines: bool = False


@dataclass
class PlannedRun:
    """What became of one fleet. `broken`: the laws that were, each with what happened."""

    fleet: ExactFleet
    plans: list[RebalancingPlan] = field(default_factory=list)
    broken: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    owners: dict[str, str] = field(default_factory=dict)
    left: dict[str, frozenset[str]] = field(default_factory=dict)
    moved: int = 0


def loads_of(fleet: ExactFleet, *, has_topics: bool, has_deadlines: bool = False) -> tuple[BrokerLoad, ...]:
    """The reports of all edges: with what comes in, in bytes, and with the load of each bundle or topic."""
    found = []
    for edge in sorted(fleet.hardware):
        load = fleet.load(edge)
        load = replace(load, input_bytes_per_second=load.input_rate * SIZE_BYTES)
        load = replace(load, topics=_topics(fleet, edge, load)) if has_deadlines else load
        found.append(replace(load, bundles=_bundles(fleet, edge)) if has_topics else load)
    return tuple(found)


def _topics(fleet: ExactFleet, edge: str, load: BrokerLoad) -> tuple[TopicLoad, ...]:
    """Each topic of an edge. Where more is to be sent than can be, the queues of all have come to a second."""
    names: dict[int, list[str]] = {}
    for name in fleet.served(edge):
        names.setdefault(hash_of_unit(name) or 0, []).append(name)
    used = max(load.output_utilization, load.input_utilization)
    found = []
    for topic, units in sorted(names.items()):
        measures = fleet.measures(edge, units)
        rate, sent = measures.input_rate, measures.output_rate
        found.append(
            TopicLoad(
                topic, f"{topic:x}", len(units), len(units) if used > 1.0 else 0, rate, 0.0, rate * SIZE_BYTES, sent,
                sent * SIZE_BYTES, math.ceil(rate) if used > 1.0 else 0, rate, rate / max(used, 1.0), DEADLINE_SECONDS,
            )
        )  # fmt: skip
    return tuple(found)


def _bundles(fleet: ExactFleet, edge: str) -> tuple[BundleLoad, ...]:
    found = []
    for bundle in Partition.of_count(BUNDLES).ranges:
        units = [name for name in fleet.served(edge) if bundle.holds(hash_of_unit(name) or 0)]
        if units:
            measures = fleet.measures(edge, units)
            rate_in, rate_out = measures.input_rate, measures.output_rate
            topics = len({hash_of_unit(name) for name in units})
            found.append(
                BundleLoad(
                    bundle, topics, len(units), 0, rate_in, rate_out, rate_in * SIZE_BYTES, rate_out * SIZE_BYTES
                )
            )
    return tuple(found)


def sample_of(
    fleet: ExactFleet, owners: Mapping[str, str], *, has_topics: bool, has_deadlines: bool = False
) -> FleetSample:
    """What a plan is made from."""
    edges = sorted(fleet.hardware)
    profiles = {}
    for edge in edges:
        others = [other for other in edges if other != edge]
        takers = tuple((other, fleet.profile(edge, other).accepting) for other in others)
        profiles[edge] = replace(fleet.profile(edge, others[0]), takers=takers)
    loads = loads_of(fleet, has_topics=has_topics, has_deadlines=has_deadlines)
    return FleetSample(loads, profiles, {}, owners=owners)


def run(fleet: ExactFleet, chosen: FleetPolicy, *, optimum: bool = True) -> PlannedRun:
    """Look after look, until none has led to a move for long."""
    found, first = PlannedRun(fleet, owners=_owners(fleet) if chosen.has_topics else {}), fleet
    memory, quiet, seen = NO_MEMORY, 0, {fleet.state()}
    while quiet < (1 if chosen.is_asked else QUIET_LOOKS) and len(found.plans) < PLANS_AT_MOST:
        fleet, policy = found.fleet, chosen.policy
        loads = loads_of(fleet, has_topics=chosen.has_topics, has_deadlines=chosen.has_deadlines)
        before, memory = memory, policy.observe(memory, FleetLook(loads, owners=found.owners))
        quiet += 1
        if memory == before and quiet > 1:
            break  # it would do what it did at the last look
        if not chosen.is_asked and not policy.wanted(memory):
            continue
        plan = fleet_plan(policy, replace(_sample(fleet, chosen, found.owners), left=dict(found.left)), memory)
        if not plan.moves:
            _judge_reason(found, plan, chosen)
            continue
        quiet, memory = 0, policy.after_moves(memory)
        _take(found, plan, chosen)
        if found.fleet.state() in seen:
            found.broken["endless"].append("the fleet is where it was")
            return found
        seen.add(found.fleet.state())
    if len(found.plans) == PLANS_AT_MOST:
        found.broken["endless"].append(f"{PLANS_AT_MOST} plans, and it goes on")
        return found
    _judge_end(found, chosen)
    if optimum and found.moved:
        _judge_moves(found, first, chosen)
    return found


def _take(found: PlannedRun, plan: RebalancingPlan, chosen: FleetPolicy) -> None:
    """Make the moves of a plan, and judge where they lead."""
    before, was_over = _levels(found.fleet, chosen), _overload(found.fleet) > 0.0
    for move in plan.moves:
        for name in move.subscribers:
            found.moved += 1
            left = found.left.get(name, frozenset())
            if move.target in left:
                found.broken["return"].append(f"{name} returns to {move.target}")
            if not chosen.is_asked:
                found.left[name] = left | {move.source}
    moved = {name: move.target for move in plan.moves for name in move.subscribers}
    found.fleet = replace(found.fleet, at={**found.fleet.at, **moved})
    found.owners.update(plan.owners)
    found.plans.append(plan)
    after, highest = _levels(found.fleet, chosen), max(before.values())
    for target in sorted({move.target for move in plan.moves}):
        if chosen.relieves and _over(found.fleet, target)[1] > TINY:
            found.broken["target"].append(f"{target} is left at {_over(found.fleet, target)[0]:.3f}")
        if not (chosen.relieves and was_over) and after[target] > highest * (1.0 + TINY) + TINY:
            found.broken["target"].append(f"{target} comes to {after[target]:.3f}, the highest was {highest:.3f}")


def _levels(fleet: ExactFleet, chosen: FleetPolicy) -> dict[str, float]:
    return dict(chosen.levels(_sample(fleet, chosen, {})))


def _sample(fleet: ExactFleet, chosen: FleetPolicy, owners: Mapping[str, str]) -> FleetSample:
    return sample_of(fleet, owners, has_topics=chosen.has_topics, has_deadlines=chosen.has_deadlines)


def quality(fleet: ExactFleet, chosen: FleetPolicy) -> tuple[float, float, float]:
    """The highest level; the deviation of all by their mean; and the overload, for a policy that relieves it."""
    levels = list(_levels(fleet, chosen).values())
    mean = fmean(levels)
    return max(levels), pstdev(levels) / mean if mean else 0.0, _overload(fleet) if chosen.relieves else 0.0


def _overload(fleet: ExactFleet) -> float:
    return sum(_over(fleet, edge)[1] for edge in fleet.hardware)


def _judge_moves(found: PlannedRun, first: ExactFleet, chosen: FleetPolicy) -> None:
    reached, allowed = quality(found.fleet, chosen), found.moved / MOVES_FACTOR - TINY
    for placed in alternatives(first, chosen):
        if not 0 < len(placed) <= allowed:
            continue
        after = replace(first, at={**first.at, **placed})
        if chosen.relieves and any(_over(after, edge)[1] > TINY for edge in set(placed.values())):
            continue
        if all(one <= two + TINY for one, two in zip(quality(after, chosen), reached, strict=True)):
            found.broken["moves"].append(f"{found.moved} moves where {len(placed)} are enough: {placed}")
            return


def _judge_end(found: PlannedRun, chosen: FleetPolicy) -> None:
    """Whether one move, between two edges, could lessen an overload, by utilisation of input and output."""
    fleet = found.fleet
    before = {edge: _over(fleet, edge) for edge in fleet.hardware}
    for edge, (worst, over) in sorted(before.items()):
        if worst <= OVERLOADED:
            continue
        for placed in alternatives(fleet, chosen, edge):
            if len(targets := set(placed.values())) != 1:
                continue
            after = replace(fleet, at={**fleet.at, **placed})
            if _over(after, targets.pop())[1] == 0.0 and _over(after, edge)[1] < over - TINY:
                found.broken["stranded"].append(f"{edge} at {worst:.3f} could give {sorted(placed)}")
                return


def _over(fleet: ExactFleet, edge: str) -> tuple[float, float]:
    """The higher utilisation, and how far both are above the lower threshold, in all."""
    measures = fleet.measures(edge)
    used = measures.input_utilization, measures.output_utilization
    return max(used), sum(max(0.0, each - LOWER) for each in used)


def alternatives(fleet: ExactFleet, chosen: FleetPolicy, only: str = "") -> Iterator[dict[str, str]]:
    """Other placements: of subscribers, of which equal ones are interchangeable, or of whole bundles."""
    if chosen.has_topics:
        yield from _other_owners(fleet, only)
        return
    if chosen.has_deadlines:
        yield from _other_places(fleet, only)
        return
    rows: dict[tuple[str, str], list[str]] = {}
    for name, edge in sorted(fleet.at.items()):
        if only in ("", edge):
            rows.setdefault((fleet.asks[name], edge), []).append(name)
    yield from fleet.alternatives(rows)


def _other_owners(fleet: ExactFleet, only: str) -> Iterator[dict[str, str]]:
    pending: list[dict[str, str]] = [{}]
    for bundle in Partition.of_count(BUNDLES).ranges:
        units = [name for name in sorted(fleet.at) if bundle.holds(hash_of_unit(name) or 0)]
        if not units or only not in ("", fleet.at[units[0]]):
            continue
        others = [edge for edge in sorted(fleet.hardware) if edge != fleet.at[units[0]]]
        choices = [{}, *(dict.fromkeys(units, edge) for edge in others)]
        pending = [{**so_far, **more} for so_far in pending for more in choices]
    yield from pending


def _other_places(fleet: ExactFleet, only: str) -> Iterator[dict[str, str]]:
    """Placements that differ by one topic or two, whole."""
    topics: dict[str, list[str]] = {}
    for name, edge in sorted(fleet.at.items()):
        if only in ("", edge):
            topics.setdefault(fleet.asks[name], []).append(name)
    ones = [
        dict.fromkeys(units, edge)
        for units in topics.values() for edge in sorted(fleet.hardware) if edge != fleet.at[units[0]]
    ]  # fmt: skip
    yield from ones
    yield from ({**one, **other} for number, one in enumerate(ones) for other in ones[number + 1 :])


# ---------------------------------------------------------------- reasons

_WOULD_BE = re.compile(r"^with it (\S+) would be at ")


def _judge_reason(found: PlannedRun, plan: RebalancingPlan, chosen: FleetPolicy) -> None:
    """Whether the reason of a plan without moves is true."""
    policy = chosen.policy
    if not plan.ended or not plan.stopped:
        found.broken["reason"].append("it says nothing")
    elif isinstance(policy, Bad):
        _judge_bad(found, plan, chosen, policy)
    elif isinstance(policy, Pulsar):
        _judge_pulsar(found, plan, chosen)
    elif isinstance(policy, DelaySensitive):
        _judge_deadlines(found, plan, chosen)
    elif isinstance(policy, Shuffle) and plan.ended == "Balanced":
        levels = _levels(found.fleet, chosen).values()
        if max(levels) - min(levels) > policy.parameters.trigger(policy.scope).ratio + TINY and not plan.rejected:
            found.broken["reason"].append(f"levels {levels} are not balanced")


def _judge_bad(found: PlannedRun, plan: RebalancingPlan, chosen: FleetPolicy, policy: Bad) -> None:
    highest, cov, _ = quality(found.fleet, chosen)
    mean = fmean(_levels(found.fleet, chosen).values())
    if plan.ended == "Balanced" and cov > policy.alpha + TINY:
        found.broken["reason"].append(f"cov {cov:.3f} is above alpha")
    if plan.ended == "LowLoad" and mean > policy.beta * (1.0 + TINY):
        found.broken["reason"].append(f"mean {mean:.3f} is above beta")
    if plan.ended != "NoBetter":
        return
    levels = _levels(found.fleet, chosen)
    source = max(sorted(levels), key=lambda name: levels[name])
    model = policy.fleet(replace(sample_of(found.fleet, {}, has_topics=False), left=found.left))
    here = model.brokers[source].subscribers
    for name in found.fleet.served(source):
        others = [edge for edge in sorted(levels) if edge != source]
        if chosen.relieves:  # as it is predicted: two edges may not know what their publications have in common
            others = [edge for edge in others if policy.overload.admits(model, model.brokers[edge], here[name])]
        if not (target := _tried(found.fleet, policy, levels, others, name)):
            continue
        after = _levels(replace(found.fleet, at={**found.fleet.at, name: target}), chosen)
        if max(after.values()) < highest * (1.0 - TINY):
            found.broken["reason"].append(f"{name} from {source} to {target} lowers {highest:.4g}: {plan.stopped}")
            return


def _tried(fleet: ExactFleet, policy: Bad, levels: Mapping[str, float], others: list[str], name: str) -> str:
    """The edge of these to which the scheme would send a subscriber; empty if there is none."""
    if policy.migration == "LoadBased":
        return min(others, key=lambda edge: levels[edge], default="")
    mean, rate = fmean(levels.values()), fleet.traffic.rate(fleet.wants[fleet.asks[name]])
    below = [edge for edge in others if levels[edge] < mean]
    shared = {edge: rate * any(fleet.asks[each] == fleet.asks[name] for each in fleet.served(edge)) for edge in below}
    return min(below, key=lambda edge: (-shared[edge], levels[edge]), default="")


def _judge_pulsar(found: PlannedRun, plan: RebalancingPlan, chosen: FleetPolicy) -> None:
    levels, partition = _levels(found.fleet, chosen), Partition.of_count(BUNDLES)
    named = {bundle.name: bundle for bundle in partition.ranges}
    for each in plan.rejected:
        said = _WOULD_BE.match(each.reason)
        if each.kind != "NoBetter" or said is None or each.key not in named:
            continue
        units = [name for name in found.fleet.at if named[each.key].holds(hash_of_unit(name) or 0)]
        source, target = found.fleet.at[units[0]], said[1]
        after = _levels(replace(found.fleet, at={**found.fleet.at, **dict.fromkeys(units, target)}), chosen)
        if max(after[source], after[target]) < max(levels[source], levels[target]) - TINY:
            found.broken["reason"].append(f"{each.key} to {target} would help: {each.reason}")


_WOULD_HAVE = re.compile(r"with it (\S+) would have (\S+) at ")


def _judge_deadlines(found: PlannedRun, plan: RebalancingPlan, chosen: FleetPolicy) -> None:
    """Whether a topic that was too much for an edge would have been."""
    for each in plan.rejected:
        said = _WOULD_HAVE.search(each.reason)
        if each.kind != "TooMuch" or said is None:
            continue
        topic = int(each.key.rpartition("#")[2], 16)
        units = [name for name in found.fleet.at if hash_of_unit(name) == topic]
        after = replace(found.fleet, at={**found.fleet.at, **dict.fromkeys(units, said[1])})
        if _over(after, said[1])[0] < LOWER - TINY:
            found.broken["reason"].append(f"{each.key} would fit into {said[1]}: {each.reason}")


def deadline_fleet_of(seed: int) -> ExactFleet:
    """A random fleet of topics, of which each has one edge."""
    base = topic_fleet(seed)
    homes = {base.asks[name]: edge for name, edge in sorted(base.at.items())}
    return replace(base, at={name: homes[base.asks[name]] for name in base.at})


# ---------------------------------------------------------------- fleets and policies


def topic_fleet(seed: int) -> ExactFleet:
    """A random fleet of which each publisher has a topic of its own; subscribers are units, bundles have one edge."""
    drawn, base = Random(f"topics/{seed}"), random_fleet(seed)
    topics = {f"t{number}": 1 << number for number in range(len(base.rates))}
    edges, homes = sorted(base.hardware), dict[str, str]()
    asks, at = dict[str, str](), dict[str, str]()
    for name in base.asks:
        topic = drawn.choice(sorted(topics))
        unit = unit_name(name, topic_hash(topic))
        bundle = Partition.of_count(BUNDLES).range_of(topic_hash(topic)).name
        asks[unit], at[unit] = topic, homes.setdefault(bundle, drawn.choice((edges[0], drawn.choice(edges))))
    return replace(base, wants=topics, asks=asks, at=at)


def _owners(fleet: ExactFleet) -> dict[str, str]:
    partition = Partition.of_count(BUNDLES)
    return {partition.range_of(hash_of_unit(name) or 0).name: edge for name, edge in sorted(fleet.at.items())}


def policies() -> Iterator[FleetPolicy]:
    """Those of the registry with their variants, with the parameters that they have by default; beta is 0."""
    sdm = Bad(beta=0.0, migration="SimilarityBased", shuffle="None")
    for label, bad in (
        ("Bad, LDM and shuffle by the letter", Bad(beta=0.0, rules="Paper")),
        ("Bad, LDM and shuffle by the letter, by capacity", Bad(beta=0.0, rules="Paper", normalize="Capacity")),
        ("Bad, SDM by the letter", replace(sdm, rules="Paper")),
        ("Bad, SDM by the letter, by capacity", replace(sdm, rules="Paper", normalize="Capacity")),
        ("Bad, LDM and shuffle", Bad(beta=0.0)),
        ("Bad, LDM and shuffle, by capacity", Bad(beta=0.0, normalize="Capacity")),
        ("Bad, SDM", sdm),
        ("Bad, SDM, by capacity", replace(sdm, normalize="Capacity")),
    ):
        yield FleetPolicy(label, bad, partial(_planned_f, bad), relieves=bad.rules != "Paper")
    for label, pulsar in (
        ("Pulsar, ThresholdShedder by the letter", Pulsar(rules="Text", splits=False, bundles=BUNDLES)),
        ("Pulsar, ThresholdShedder", Pulsar(splits=False, bundles=BUNDLES)),
        ("Pulsar, AvgShedder", Pulsar(shedder="AvgShedder", splits=False, bundles=BUNDLES)),
    ):
        yield FleetPolicy(
            label, pulsar, partial(_by_load, pulsar.weights.usage), has_topics=True, relieves=pulsar.rules != "Text"
        )
    for label, deadlines in (
        ("DelaySensitive by the letter", DelaySensitive(rules="Text")),
        ("DelaySensitive", DelaySensitive()),
    ):
        yield FleetPolicy(label, deadlines, partial(_by_load, _most_used), has_deadlines=True)
    shuffle = Shuffle()
    factor = shuffle.parameters.normalization_seconds
    yield FleetPolicy("Shuffle", shuffle, partial(_highest_metrics, factor), is_asked=True)


def _most_used(load: BrokerLoad) -> float:
    """The use of the busiest resource."""
    return max(load.input_utilization, load.output_utilization)


def _by_load(level: Callable[[BrokerLoad], float], sample: FleetSample) -> Mapping[str, float]:
    return {load.name: level(load) for load in sample.loads}


def _highest_metrics(normalization_seconds: float, sample: FleetSample) -> Mapping[str, float]:
    """With the delay that a publication would take at an edge that takes nothing in."""
    loads = [load.after(LoadChange()) for load in likened_loads(sample.loads)]
    return {load.name: highest_metric(load.measures, normalization_seconds)[0] for load in loads}


def _planned_f(policy: Bad, sample: FleetSample) -> Mapping[str, float]:
    """F as plans count it: publications that two back-end subscriptions match come in twice, as in the text."""
    return {name: broker.load for name, broker in policy.fleet(sample).brokers.items()}


def fleet_for(chosen: FleetPolicy, seed: int) -> ExactFleet:
    """The fleet of a seed, with topics if the policy has them."""
    if chosen.has_deadlines:
        return deadline_fleet_of(seed)
    return topic_fleet(seed) if chosen.has_topics else random_fleet(seed)


def count(chosen: FleetPolicy, seeds: range) -> Counter[str]:
    """Fleets that break each law, plans, and moves."""
    sums: Counter[str] = Counter()
    for seed in seeds:
        found = run(fleet_for(chosen, seed), chosen)
        sums.update(list(found.broken))
        sums.update(plans=len(found.plans), moved=found.moved)
    return sums


def table(fleets: int) -> Iterator[str]:
    """The rows of the table in docs/padres.md."""
    yield f"| policy | plans | moved | {' | '.join(LAWS)} |"
    for chosen in policies():
        found = count(chosen, range(fleets))
        broken = " | ".join(str(found[law]) for law in LAWS)
        yield f"| {chosen.label} | {found['plans']:,} | {found['moved']:,} | {broken} |"


if __name__ == "__main__":
    for line in table(int(sys.argv[1]) if len(sys.argv) > 1 else 1000):
        print(line, flush=True)
