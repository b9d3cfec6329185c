"""One world under several policies, side by side: loads, moves, delays, overload and overhead."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import Any, Final

from plimsoll.core.policies.model.topic_requirements import TopicRequirements
from plimsoll.core.protocol.topic_units import topic_hash
from plimsoll.core.spec import Resources, SourceDocument, parse
from plimsoll.core.spec.broker_config import policy_of
from plimsoll.core.spec.types.policy import POLICY_TYPES, PolicyType
from plimsoll.simulator.queueing.fleet import LinkDelays, QueueingFleet
from plimsoll.simulator.queueing.load_history import EdgeLoadHistory, LoadHistory, cov
from plimsoll.simulator.worlds.first_minute import FirstMinute
from plimsoll.simulator.worlds.world_spec import WorldSpec
from plimsoll.simulator.worlds.world_traffic import traffic_of

OWN, NONE = "own", "none"
"""Beside the policies by name: `own` is that of the files, `none` balances nothing."""

WITH_TOPICS: Final[Mapping[str, PolicyType]] = {"pulsar": "Pulsar", "delay-sensitive": "DelaySensitive"}
"""Policies that need a parameter: the World's `topicAttribute`, where the files have no block of them."""

STEADY_SHARE = 0.75
"""From this share of the run on, loads count as those that a policy ends with."""

POINTS_AT_MOST = 300


def with_policy(
    documents: Iterable[Mapping[str, Any]], name: str, topics: Mapping[str, Any] = MappingProxyType({})
) -> list[dict[str, Any]]:
    """The documents of a fleet under another policy; detection and estimation stay.

    `topics`: what a policy with topics is told of them, as in YAML.
    """
    found = []
    for document in documents:
        content = dict(document)
        spec = dict(content.get("spec") or {})
        if content.get("kind") == "BrokerFleet":
            spec["defaults"] = _replaced(dict(spec.get("defaults") or {}), name, topics)
        elif content.get("kind") == "BrokerCluster" and "policy" in spec:
            spec = _replaced(spec, name, topics)
        found.append({**content, "spec": spec})
    if not any(content.get("kind") == "BrokerFleet" for content in found) and name != NONE:
        defaults = _replaced({}, name, topics)
        found.append(
            {
                "apiVersion": "plimsoll.dev/v1alpha1", "kind": "BrokerFleet", "metadata": {"name": "default"},
                "spec": {"defaults": defaults},
            }
        )  # fmt: skip
    return found


def _replaced(holder: dict[str, Any], name: str, topics: Mapping[str, Any]) -> dict[str, Any]:
    own = holder.pop("policy", None) or {}
    if name == NONE:
        return holder
    common = {key: own[key] for key in ("detection", "estimation") if key in own}
    chosen = WITH_TOPICS[name] if name in WITH_TOPICS else POLICY_TYPES[name]
    kept = {key: own[key] for key in own if own.get("type") == chosen}
    if name in WITH_TOPICS and not kept:
        kept = {chosen[:1].lower() + chosen[1:]: dict(topics)}
    return {**holder, "policy": {**common, **kept, "type": chosen}}


def policy_faults(policies: Sequence[str], world: WorldSpec, resources: Resources) -> list[str]:
    """Why one of the policies cannot run, a sentence each."""
    have = [policy_of(resources, cluster) for cluster in resources.clusters]
    lacking = [
        name for name, chosen in WITH_TOPICS.items()
        if name in policies and not world.topic_attribute and not all(each and each.type == chosen for each in have)
    ]  # fmt: skip
    remedy = "needs the attribute whose values are topics: give the World its topicAttribute"
    return [f"--policy {name} {remedy}" for name in lacking]


def topics_for(world: WorldSpec, name: str) -> dict[str, Any]:
    """What a policy is told of a World's topics: their attribute and, if it defends deadlines, these."""
    if name != "delay-sensitive":
        return {"topicAttribute": world.topic_attribute}
    latencies = [{"name": each.name, "latency": str(each.latency)} for each in world.latencies]
    default = {} if world.default_latency is None else {"defaultLatency": str(world.default_latency)}
    return {"topicAttribute": world.topic_attribute, "topics": latencies, **default}


def required_by(world: WorldSpec) -> TopicRequirements | None:
    """The deadlines of a World; None if it has none."""
    if not world.topic_attribute or not (world.latencies or world.default_latency):
        return None
    by_topic = {topic_hash(each.name): each.latency.seconds for each in world.latencies}
    default = world.default_latency.seconds if world.default_latency is not None else 0.0
    return TopicRequirements(world.topic_attribute, by_topic, default)


def compare(
    documents: Sequence[Mapping[str, Any]], world: WorldSpec, policies: Sequence[str], seed: int
) -> list[dict[str, Any]]:
    """A row for each policy."""
    rows = []
    for name in policies:
        changed = documents if name == OWN else with_policy(documents, name, topics_for(world, name))
        resources = parse([SourceDocument(dict(each), "<world>") for each in changed])
        rows.append(run(resources, world, name, seed))
    return rows


def run(resources: Resources, world: WorldSpec, name: str, seed: int) -> dict[str, Any]:
    """Run a world once; the row of its policy."""
    began, loads, first = time.process_time(), LoadHistory(), FirstMinute()
    overhead: dict[str, Mapping[str, Any]] = {}

    def note(report: Mapping[str, Any], now: float) -> None:
        first.take(report, now)
        overhead[str(report["broker"])] = report.get("counters", {})
        loads.take(report, now)

    links = LinkDelays(world.links.between_brokers.seconds, world.links.to_clients.seconds)
    fleet = QueueingFleet(
        resources,
        traffic_of(world, seed),
        seed=seed,
        links=links,
        on_report=note,
        clients=world.links.clients,
        fair_output=world.output == "Fair",
        fair_by_topic=world.output == "FairByTopic",
        required=required_by(world),
    )
    fleet.run(seconds := world.duration.seconds)
    sessions = [one.session for one in fleet.mediator.objects.values() if one.session is not None]
    ends = loads.means(STEADY_SHARE * seconds)
    delays = fleet.delays.between(0.0, seconds)
    late = fleet.delays.between(STEADY_SHARE * seconds, seconds)
    types = sorted({p.type for c in resources.clusters if (p := policy_of(resources, c)) is not None})
    return {
        "policy": name, "type": ", ".join(types) or "none",
        "max_load": max(ends, default=0.0), "mean_load": fmean(ends) if ends else 0.0, "cov": cov(ends),
        "moves": fleet.mediator.moved(),
        "sessions": len(sessions),
        "delay_mean_seconds": delays.mean, "delay_p50_seconds": delays.percentile(0.5),
        "delay_p99_seconds": delays.percentile(0.99),
        "delay_end_seconds": late.mean,
        "with_deadline": sum(fleet.counts.of_topics.values()), "late": sum(fleet.counts.late.values()),
        "late_by_topic": dict(sorted(fleet.counts.late.items())),
        "overload_seconds": loads.overloaded_seconds(seconds),
        "overhead_ratio": _overhead(overhead, fleet.counts.delivered),
        "delivered": fleet.counts.delivered, "processor_seconds": time.process_time() - began,
        "first_minute": first.means(),
        "loads": {
            edge: _thinned(each) for edge, each in sorted(loads.edges.items())
        },
    }  # fmt: skip


def _overhead(counters: Mapping[str, Mapping[str, Any]], delivered: int) -> float:
    """Messages of brokers that are no deliveries, as a share of all."""
    told = sum(n for counts in counters.values() for name, n in counts.items() if name.startswith("said_"))
    return told / (told + delivered) if told + delivered else 0.0


def _thinned(samples: EdgeLoadHistory) -> list[list[float]]:
    size = -(-len(samples.seconds) // POINTS_AT_MOST) if samples.seconds else 1
    return [
        [round(fmean(samples.seconds[at : at + size]), 3), round(fmean(samples.loads[at : at + size]), 5)]
        for at in range(0, len(samples.seconds), size)
    ]
