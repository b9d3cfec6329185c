"""Pulsar, PADRES and BAD on the same topics and rates, on the queueing model; an idle edge; a bundle that is hot."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from plimsoll.experiments.pulsar.topic_world import (
    ATTRIBUTE,
    TopicRun,
    TopicSubscriber,
    TopicWorld,
    delivery_bytes,
    equal_bundles,
    run_topics,
    topics_in,
)
from plimsoll.experiments.result import Claim, ExperimentResult, Figure
from plimsoll.pages.charts import Chart, ChartLine
from plimsoll.simulator.queueing.traffic import RateStep

NAME: Final = "pulsar-policies"
NONE, BUNDLES, THRESHOLD, LETTER, AVG = (
    "nothing", "bundles, no shedding", "ThresholdShedder", "ThresholdShedder, text", "AvgShedder"
)  # fmt: skip
LOOKUP, BAD, PADRES = "ThresholdShedder, Lookup", "BAD, LDM", "PADRES"
SUBSCRIBERS_OF_A_TOPIC: Final = 4


@dataclass(frozen=True)
class PoliciesPlan:
    """The traces: topics whose rates fall with their number; a tenth of them is tripled in the middle third."""

    edges: int = 10
    topics: int = 200
    bundles: int = 64
    per_second: float = 60.0
    exponent: float = 0.7
    usage: float = 0.55
    seconds: float = 900.0
    case_seconds: float = 200.0


PLAN: Final = PoliciesPlan()


def small(plan: PoliciesPlan = PLAN) -> PoliciesPlan:
    """Few topics and little time: to see it work, not to judge."""
    return replace(plan, edges=3, topics=20, bundles=8, per_second=10.0, seconds=120.0, case_seconds=60.0)


def pulsar(bundles: int, seed: int, **own: Any) -> dict[str, Any]:
    """The policy, as in a custom resource; fields that are not given have its defaults."""
    fields = {
        "topicAttribute": ATTRIBUTE, "bundles": {"initial": bundles, "maximum": 1024}, "lookup": {"seed": seed}, **own,
    }  # fmt: skip
    return {"type": "Pulsar", "pulsar": fields}


def policies(bundles: int, seed: int) -> dict[str, Mapping[str, Any] | None]:
    """Those that are compared."""
    avg, bad = {"strategy": "AvgShedder"}, {"shuffle": "None", "seed": seed, "beta": "0", "rules": "Paper"}
    return {
        NONE: None, BUNDLES: pulsar(bundles, seed, shedding={"strategy": "None"}),
        THRESHOLD: pulsar(bundles, seed), LETTER: pulsar(bundles, seed, rules="Text"),
        AVG: pulsar(bundles, seed, shedding=avg), LOOKUP: pulsar(bundles, seed, unload="Lookup"),
        BAD: {"type": "Bad", "bad": {**bad, "placement": "RoundRobin"}},
        PADRES: {"type": "Padres"},
    }  # fmt: skip


def traces(plan: PoliciesPlan, seed: int) -> TopicWorld:
    """As many subscribers as topics, each of which asks for four of neighbouring rates, so that each topic has four."""
    draw = random.Random(f"{seed} traces")
    names = [f"t{number}" for number in range(plan.topics)]
    weights = [(number + 1) ** -plan.exponent for number in range(plan.topics)]
    tripled = set(draw.sample(names, max(plan.topics // 10, 1)))
    rates = {}
    for name, weight in zip(names, weights, strict=True):
        usual = plan.per_second * weight / sum(weights)
        more = (RateStep(plan.seconds / 3, 3 * usual), RateStep(2 * plan.seconds / 3, usual))
        rates[name] = (RateStep(0.0, usual), *(more if name in tripled else ()))
    count = range(SUBSCRIBERS_OF_A_TOPIC)
    asked = [tuple(names[(number + each) % len(names)] for each in count) for number in range(len(names))]
    some = [TopicSubscriber(f"s{number:04}", own) for number, own in enumerate(draw.sample(asked, len(asked)))]
    sent = sum(rates[topic][0].per_second * delivery_bytes(topic) for each in some for topic in each.topics)
    edges = tuple(f"e{number:02}" for number in range(plan.edges))
    return TopicWorld(edges, rates, some, round(sent / plan.edges / plan.usage), plan.seconds, joins_over=30.0)


def idle_edge(plan: PoliciesPlan) -> TopicWorld:
    """Ten edges at 80 % with four bundles of one topic each, and an idle one."""
    edges, bundles = tuple(f"e{number:02}" for number in range(11)), equal_bundles(44)
    owners = {bundle: edges[number // 4] for number, bundle in enumerate(bundles[:40])}
    topics = {bundle: topics_in(bundle, 1, "t")[0] for bundle in owners}
    rates = {topic: (RateStep(0.0, 5.0),) for topic in topics.values()}
    some = [
        TopicSubscriber(f"s{number}-{topic}", (topic,), owners[bundle])
        for bundle, topic in topics.items() for number in range(SUBSCRIBERS_OF_A_TOPIC)
    ]  # fmt: skip
    sent = 4 * 5.0 * SUBSCRIBERS_OF_A_TOPIC * delivery_bytes("t100")
    return TopicWorld(edges, rates, some, round(sent / 0.8), plan.case_seconds, 0.01, owners)


def hot_bundle(plan: PoliciesPlan) -> TopicWorld:
    """Five edges with one bundle of twenty topics each; that of the first edge is twelve times as hot."""
    edges, bundles = tuple(f"e{number:02}" for number in range(5)), equal_bundles(5)
    owners = dict(zip(bundles, edges, strict=True))
    topics = {bundle: topics_in(bundle, 20, "t") for bundle in bundles}
    rates = {
        topic: (RateStep(0.0, 2.4 if bundle is bundles[0] else 0.2),)
        for bundle, some in topics.items()
        for topic in some
    }
    subscribers = [
        TopicSubscriber(f"s{number}-{topic}", (topic,), owners[bundle])
        for bundle, found in topics.items() for topic in found for number in range(SUBSCRIBERS_OF_A_TOPIC)
    ]  # fmt: skip
    sent = 20 * 2.4 * SUBSCRIBERS_OF_A_TOPIC * delivery_bytes("t100")
    return TopicWorld(edges, rates, subscribers, round(sent / 0.96), plan.case_seconds, 0.01, owners)


def run(seed: int, *, plan: PoliciesPlan = PLAN) -> ExperimentResult:
    """The traces under each policy, then both cases."""
    world = traces(plan, seed)
    compared = {name: run_topics(world, each, name, seed) for name, each in policies(plan.bundles, seed).items()}
    one_idle, chosen = idle_edge(plan), policies(44, seed)
    idle = {name: run_topics(one_idle, chosen[name], name, seed) for name in (THRESHOLD, AVG, BAD, PADRES)}
    one_hot = hot_bundle(plan)
    splits = {"no splits": {"auto": False}, "splits": {"maxTopics": 10}}
    hot = {name: run_topics(one_hot, pulsar(5, seed, split=each), name, seed) for name, each in splits.items()}
    rows = [
        {"world": where, **one.row()}
        for where, runs in (("traces", compared), ("idle edge", idle), ("hot bundle", hot))
        for one in runs.values()
    ]
    claims = [*_claims(compared), *_idle_claims(idle), *_hot_claims(hot)]
    figures = [*_figures("traces", compared), *_figures("idle edge", idle), *_figures("hot bundle", hot)]
    return ExperimentResult(
        NAME, "Pulsar, PADRES and BAD on the same topics", "Pulsar", seed, claims, figures, {"rows": rows}, NOTES,
        runs=rows,
    )  # fmt: skip


NOTES: Final = (
    "One world: a publisher for each topic, four subscribers of each, equal edges whose output runs short. Under "
    "Pulsar subscribers join as units and go to the edge of their bundle; under BAD and PADRES they join whole. Moves "
    "are therefore of units there and of whole subscribers here.",
    "Loads are the higher of input and output of an edge; highest load and cov are of means over the last quarter. "
    "Every policy has its defaults; BAD has a beta of 0 and no shuffle.",
)


def _claims(runs: Mapping[str, TopicRun]) -> list[Claim]:
    none = runs[NONE]
    all_once = {one.delivered for one in runs.values()}
    moved = f"{runs[LETTER].moved:,} and {runs[THRESHOLD].moved:,} units"
    transfer, lookup = runs[THRESHOLD].pauses.get("drain"), runs[LOOKUP].pauses.get("lookup")
    return [
        Claim("Every policy delivers all publications once", "yes", f"{none.delivered:,} by each" if len(all_once) == 1
              else ", ".join(f"{name}: {one.delivered:,}" for name, one in runs.items()), len(all_once) == 1),
        Claim("The letter moves more than ours", "yes", moved, runs[LETTER].moved > runs[THRESHOLD].moved),
        Claim("AvgShedder is more even than ThresholdShedder", "yes",
              f"cov {runs[AVG].cov:.3f} and {runs[THRESHOLD].cov:.3f}", runs[AVG].cov < runs[THRESHOLD].cov),
        *(claim for name in (THRESHOLD, AVG) for claim in _better(runs[name], runs[BUNDLES])),
        *(claim for name in (BAD, PADRES) for claim in _better(runs[name], none)),
        Claim("The pause of a hand-over is shorter than that of a lookup", "yes",
              f"{_pause(transfer)} and {_pause(lookup)}",
              transfer is not None and lookup is not None and transfer["mean_seconds"] < lookup["mean_seconds"]),
    ]  # fmt: skip


def _better(one: TopicRun, other: TopicRun) -> list[Claim]:
    """Whether a policy ends with a lower highest load, and overloads edges for less time, than without it."""
    return [
        Claim(f"{one.name} ends with a lower highest load than {other.name}", "yes",
              f"{one.max_load:.3f} and {other.max_load:.3f}", one.max_load < other.max_load),
        Claim(f"{one.name} overloads edges no longer than {other.name}", "yes",
              f"{one.overload_seconds:,.0f} s and {other.overload_seconds:,.0f} s",
              one.overload_seconds <= other.overload_seconds),
    ]  # fmt: skip


def _pause(found: Mapping[str, Any] | None) -> str:
    return "none" if found is None else f"{1000 * found['mean_seconds']:.0f} ms for {found['count']}"


def _idle_claims(runs: Mapping[str, TopicRun]) -> list[Claim]:
    moved = {name: f"{one.moved} moved, highest {one.max_load:.3f}" for name, one in runs.items()}
    return [
        Claim("Ten edges at 80 % and one idle: ThresholdShedder does nothing", "0 moves", moved[THRESHOLD],
              runs[THRESHOLD].moved == 0),
        *(Claim(f"{name} gives the idle edge something", "yes", moved[name],
                runs[name].moved > 0 and min(runs[name].loads.means(*runs[name].steady)) > 0)
          for name in (AVG, BAD, PADRES)),
    ]  # fmt: skip


def _hot_claims(runs: Mapping[str, TopicRun]) -> list[Claim]:
    whole, split = runs["no splits"], runs["splits"]
    return [
        Claim("A hot bundle alone at its edge is not shed", "0 moves", f"{whole.moved} moves, highest"
              f" {whole.max_load:.3f}", whole.moved == 0),
        Claim("A split relieves it", "yes", f"{split.moved} moved, {split.bundles} bundles, highest"
              f" {split.max_load:.3f}", split.max_load < 0.7 * whole.max_load),
    ]  # fmt: skip


def _figures(where: str, runs: Mapping[str, TopicRun]) -> list[Figure]:
    def lines(points: Mapping[str, Sequence[tuple[float, float]]]) -> list[ChartLine]:
        return [ChartLine(name, look, list(points[name])) for look, name in enumerate(points)]

    highest = lines({name: one.highest for name, one in runs.items()})
    moves = lines({name: one.moves for name, one in runs.items()})
    return [
        Figure(f"{where}, highest", Chart(f"Highest load, {where}", "ratio", highest),
               "The load of the busiest edge, means over ten seconds."),
        Figure(f"{where}, moves", Chart(f"Moved so far, {where}", "subscribers", moves),
               "Units, or whole subscribers where they are not divided."),
    ]  # fmt: skip
