"""Rounds of shedding: what the text's algorithm does, what its successors hold against it, and ours beside it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from plimsoll.core.policies.model.hash_ranges import Partition
from plimsoll.core.policies.registry import pulsar_of_spec
from plimsoll.core.spec.parser import parse_block
from plimsoll.core.spec.types.policy import PolicySpec
from plimsoll.experiments.pulsar.topic_rounds import Round, TopicRounds, Topics, zipf_topics
from plimsoll.experiments.result import Claim, ExperimentResult, Figure
from plimsoll.pages.charts import Chart, ChartLine

NAME: Final = "pulsar-shedding"
TEXT, OURS, AVG, BAD = "ThresholdShedder, text", "ThresholdShedder, ours", "AvgShedder", "BAD, LDM"
MEAN_USAGE: Final = 0.5
EVEN: Final = 0.1
"""How far above the average the highest usage may be once a cluster counts as balanced: the text's threshold."""


Size = tuple[int, int, int, float]


@dataclass(frozen=True)
class SheddingPlan:
    """Sizes are (edges, topics, bundles at the beginning, how steeply the rates of topics fall).

    `burst`: rounds in which a tenth of the topics doubles.
    """

    sizes: tuple[Size, ...] = ((5, 1000, 64, 1.0), (100, 10_000, 1000, 0.5))
    rounds: int = 60
    burst: tuple[int, int] = (20, 40)


PLAN: Final = SheddingPlan()


def small(plan: SheddingPlan = PLAN) -> SheddingPlan:
    """Few edges and topics: to see it work, not to judge."""
    return replace(plan, sizes=((4, 60, 16, 0.5), (6, 90, 32, 0.5)), rounds=30, burst=(10, 20))


def policy(
    bundles: int, seed: int = 1, *, rules: str = "Text", shedder: str = "ThresholdShedder", splits: bool = False
) -> PolicySpec:
    """Pulsar, with splits by sessions and topics switched off so that shedding is seen alone."""
    return parse_block(
        PolicySpec,
        {
            "type": "Pulsar",
            "pulsar": {
                "topicAttribute": "topic", "bundles": {"initial": bundles, "maximum": 1024}, "rules": rules,
                "split": {"auto": splits, "maxTopics": 20}, "shedding": {"strategy": shedder}, "lookup": {"seed": seed},
            },
        },
    )  # fmt: skip


def policies(bundles: int, seed: int = 1) -> dict[str, PolicySpec]:
    """Those that are compared."""
    own = {"placement": "Random", "seed": seed, "shuffle": "None", "beta": "0", "rules": "Paper"}
    bad = {"type": "Bad", "bad": own}
    return {
        TEXT: policy(bundles, seed), OURS: policy(bundles, seed, rules="Plimsoll"),
        AVG: policy(bundles, seed, shedder="AvgShedder"),
        BAD: parse_block(PolicySpec, bad),
    }  # fmt: skip


def run(seed: int, *, plan: SheddingPlan = PLAN) -> ExperimentResult:
    """The cases, then the same traces under each policy."""
    traces = {f"{size[0]} edges": _compared(seed, size, plan) for size in plan.sizes}
    idle = {name: _idle_edge(spec) for name, spec in policies(22).items() if name in (TEXT, AVG)}
    hot = {splits: _hot_bundle(splits=splits) for splits in (False, True)}
    rows = [_row(f"{where}, {name}", *found, plan) for where, runs in traces.items() for name, found in runs.items()]
    return ExperimentResult(
        NAME, "Pulsar 2023: rounds of shedding", "Pulsar", seed,
        [*_cases(idle, hot), *_compared_claims(traces, plan)], _figures(traces), {"rows": rows}, NOTES, runs=rows,
    )  # fmt: skip


NOTES: Final = (
    "A round is a look at the policy's interval, its plan, and the plan carried out. Usage is output by bandwidth; it "
    "is 0.5 on average, and a tenth of the topics doubles for a third of the time. Hand-overs take no time.",
    "BAD moves topics one by one, each with its subscribers; it knows no bundles. PADRES needs samples of publications "
    "and sessions in pairs; it is compared in the queueing model.",
)


def _idle_edge(spec: PolicySpec) -> list[Round]:
    """Ten edges at 80 % with two bundles each, and an idle one."""
    rounds = _rounds(spec, 11, 1000.0, 22)
    for number, bundle in enumerate(Partition.of_count(22).ranges[:20]):
        rounds.topics.rates[bundle.low] = 4.0  # type: ignore[index]  # made here, as a dict
        rounds.topics.subscribers[bundle.low] = 1  # type: ignore[index]  # made here, as a dict
        rounds.put(bundle.low, rounds.edges[number // 2])
    return [rounds.round() for _ in range(10)]


def _hot_bundle(*, splits: bool) -> list[Round]:
    """Five edges; one bundle of 40 topics fills its edge alone."""
    rounds = _rounds(policy(5, rules="Plimsoll", splits=splits), 5, 1000.0, 5)
    for number, bundle in enumerate(Partition.of_count(5).ranges):
        for topic in range(40):
            hashed = bundle.low + topic * 0x01000000
            rounds.topics.rates[hashed] = 0.24 if number == 0 else 0.02  # type: ignore[index]  # made here, as a dict
            rounds.topics.subscribers[hashed] = 1  # type: ignore[index]  # made here, as a dict
            rounds.put(hashed, rounds.edges[number])
    return [rounds.round() for _ in range(20)]


def _rounds(spec: PolicySpec, edges: int, bandwidth: float, bundles: int, topics: Topics | None = None) -> TopicRounds:
    made = TopicRounds(spec, tuple(f"e-{number:03}" for number in range(edges)), bandwidth, topics or Topics({}, {}))
    own = pulsar_of_spec(spec)
    if own is not None and own.bundles != bundles:
        raise ValueError(f"the policy begins with {own.bundles} bundles, and the case with {bundles}")
    return made


def _compared(seed: int, size: Size, plan: SheddingPlan) -> dict[str, tuple[list[Round], TopicRounds]]:
    edges, count, bundles, exponent = size
    topics = zipf_topics(count, 10_000.0, 4, exponent, seed)
    draw = random.Random(f"{seed}/{edges}")
    doubled = draw.sample(sorted(topics.rates), len(topics.rates) // 10)
    more = replace(topics, rates={**topics.rates, **{topic: 2 * topics.rates[topic] for topic in doubled}})
    bandwidth = sum(map(topics.sent, topics.rates)) / edges / MEAN_USAGE
    found = {}
    for name, spec in policies(bundles, seed).items():
        rounds = _rounds(spec, edges, bandwidth, bundles, topics)
        rounds.look_up()
        done = []
        for number in range(plan.rounds):
            rounds.topics = more if plan.burst[0] <= number < plan.burst[1] else topics
            done.append(rounds.round())
        found[name] = done, rounds
    return found


def _row(name: str, done: Sequence[Round], rounds: TopicRounds, plan: SheddingPlan) -> dict[str, Any]:
    return {
        "run": name, "topics_moved": sum(each.topics_moved for each in done),
        "subscribers_moved": sum(each.subscribers_moved for each in done),
        "most_moves_of_a_topic": max(rounds.times.values(), default=0),
        "moved_in_the_last_rounds": sum(each.topics_moved for each in done[-_last(plan) :]),
        "highest_at_the_end": round(done[-1].highest, 3), "cov_at_the_end": round(done[-1].cov, 3),
    }  # fmt: skip


def _last(plan: SheddingPlan) -> int:
    """Rounds at the end in which the load is constant, and has been for as long before."""
    return (plan.rounds - plan.burst[1]) // 2


def _cases(idle: Mapping[str, Sequence[Round]], hot: Mapping[bool, Sequence[Round]]) -> list[Claim]:
    moved = sum(each.topics_moved for each in idle[TEXT])
    relieved = next((number for number, each in enumerate(idle[AVG], 1) if each.topics_moved), 0)
    whole, split = hot[False], hot[True]
    return [
        Claim("Ten edges at 80 % and one idle: ThresholdShedder does nothing", "0 moves", f"{moved} moves", moved == 0),
        Claim("AvgShedder gives the idle edge something after 2 looks", "look 2", f"look {relieved}", relieved == 2),
        Claim("A hot bundle alone at its edge is not shed", "stays", f"highest {whole[0].highest:.2f} to"
              f" {whole[-1].highest:.2f}", whole[-1].highest == whole[0].highest),
        Claim("A split relieves it", "yes", f"highest {split[0].highest:.2f} to {split[-1].highest:.2f},"
              f" {split[-1].bundles} bundles", split[-1].highest < 0.7 * split[0].highest),
    ]  # fmt: skip


def _compared_claims(
    traces: Mapping[str, Mapping[str, tuple[list[Round], TopicRounds]]], plan: SheddingPlan
) -> list[Claim]:
    found = []
    for where, runs in traces.items():
        done = {name: one for name, (one, _) in runs.items()}
        moved = {name: sum(each.topics_moved for each in one) for name, one in done.items()}
        late = {name: sum(each.topics_moved for each in one[-_last(plan) :]) for name, one in done.items()}
        most = {name: max(rounds.times.values(), default=0) for name, (_, rounds) in runs.items()}
        ours = done[OURS][-1]
        found += [
            Claim(f"{where}: the letter moves more than ours", "yes", f"{moved[TEXT]:,} and {moved[OURS]:,} topics",
                  moved[TEXT] > moved[OURS] > 0),
            Claim(f"{where}: by the letter a bundle is shed again from where it has gone", "yes",
                  f"a topic moves up to {most[TEXT]} times, with ours {most[OURS]}", most[TEXT] > 1),
            Claim(f"{where}: ours rests under constant load", "0", f"{late[OURS]:,}", late[OURS] == 0),
            Claim(f"{where}: ours ends within the threshold above the average", f"<= {MEAN_USAGE + EVEN:.2f}",
                  f"{ours.highest:.3f}, cov {ours.cov:.3f}", ours.highest <= MEAN_USAGE + EVEN),
        ]  # fmt: skip
    return found


def _figures(traces: Mapping[str, Mapping[str, tuple[list[Round], TopicRounds]]]) -> list[Figure]:
    found = []
    for where, runs in traces.items():
        highest = [ChartLine(name, look, [(float(at), each.highest) for at, each in enumerate(done)])
                   for look, (name, (done, _)) in enumerate(runs.items())]  # fmt: skip
        moves = [ChartLine(name, look, [(float(at), float(each.topics_moved)) for at, each in enumerate(done)])
                 for look, (name, (done, _)) in enumerate(runs.items())]  # fmt: skip
        found += [
            Figure(f"{where}, highest", Chart(f"Highest usage, {where}", "ratio", highest, along=("round", "")),
                   "The usage of the busiest edge after each round."),
            Figure(f"{where}, moves", Chart(f"Topics moved, {where}", "topics", moves, along=("round", "")),
                   "Topics that have moved in each round."),
        ]  # fmt: skip
    return found
