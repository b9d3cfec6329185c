"""One world under several policies, side by side: loads, moves, delays, overload and overhead."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean
from typing import Any

from plimsoll.core.spec import Resources, SourceDocument, parse
from plimsoll.core.spec.broker_config import policy_of
from plimsoll.core.spec.types.policy import POLICY_TYPES
from plimsoll.simulator.queueing.fleet import LinkDelays, QueueingFleet
from plimsoll.simulator.worlds.first_minute import FirstMinute
from plimsoll.simulator.worlds.world_spec import WorldSpec
from plimsoll.simulator.worlds.world_traffic import traffic_of

OWN, NONE = "own", "none"
"""Beside the policies by name: `own` is that of the files, `none` balances nothing."""

OVERLOADED = 0.95
STEADY_SHARE = 0.75
"""From this share of the run on, loads count as those that a policy ends with."""

POINTS_AT_MOST = 300


@dataclass(slots=True)
class _Samples:
    """Loads of one edge over time: the higher of input and output."""

    seconds: list[float] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)


def with_policy(documents: Iterable[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """The documents of a fleet under another policy; detection and estimation stay."""
    found = []
    for document in documents:
        content = dict(document)
        spec = dict(content.get("spec") or {})
        if content.get("kind") == "BrokerFleet":
            spec["defaults"] = _replaced(dict(spec.get("defaults") or {}), name)
        elif content.get("kind") == "BrokerCluster" and "policy" in spec:
            spec = _replaced(spec, name)
        found.append({**content, "spec": spec})
    if not any(content.get("kind") == "BrokerFleet" for content in found) and name != NONE:
        defaults = {"policy": {"type": POLICY_TYPES[name]}}
        found.append(
            {
                "apiVersion": "plimsoll.dev/v1alpha1", "kind": "BrokerFleet", "metadata": {"name": "default"},
                "spec": {"defaults": defaults},
            }
        )  # fmt: skip
    return found


def _replaced(holder: dict[str, Any], name: str) -> dict[str, Any]:
    own = holder.pop("policy", None) or {}
    if name == NONE:
        return holder
    common = {key: own[key] for key in ("detection", "estimation") if key in own}
    kept = {key: own[key] for key in own if own.get("type") == POLICY_TYPES[name]}
    return {**holder, "policy": {**common, **kept, "type": POLICY_TYPES[name]}}


def compare(
    documents: Sequence[Mapping[str, Any]], world: WorldSpec, policies: Sequence[str], seed: int
) -> list[dict[str, Any]]:
    """A row for each policy."""
    rows = []
    for name in policies:
        changed = documents if name == OWN else with_policy(documents, name)
        resources = parse([SourceDocument(dict(each), "<world>") for each in changed])
        rows.append(run(resources, world, name, seed))
    return rows


def run(resources: Resources, world: WorldSpec, name: str, seed: int) -> dict[str, Any]:
    """Run a world once; the row of its policy."""
    began, samples, first = time.process_time(), dict[str, _Samples](), FirstMinute()
    overhead: dict[str, Mapping[str, Any]] = {}

    def note(report: Mapping[str, Any], now: float) -> None:
        first.take(report, now)
        broker = str(report["broker"])
        overhead[broker] = report.get("counters", {})
        if report["role"] == "edge":
            taken = samples.setdefault(broker, _Samples())
            taken.seconds.append(now)
            taken.loads.append(max(report["input_utilization"], report["output_utilization"]))

    links = LinkDelays(world.links.between_brokers.seconds, world.links.to_clients.seconds)
    fleet = QueueingFleet(
        resources, traffic_of(world, seed), seed=seed, links=links, on_report=note, clients=world.links.clients
    )
    fleet.run(seconds := world.duration.seconds)
    sessions = [one.session for one in fleet.mediator.objects.values() if one.session is not None]
    ends = [fmean(_after(each, STEADY_SHARE * seconds)) for each in samples.values()]
    delays = fleet.delays.between(0.0, seconds)
    late = fleet.delays.between(STEADY_SHARE * seconds, seconds)
    types = sorted({p.type for c in resources.clusters if (p := policy_of(resources, c)) is not None})
    return {
        "policy": name, "type": ", ".join(types) or "none",
        "max_load": max(ends, default=0.0), "mean_load": fmean(ends) if ends else 0.0, "cov": _cov(ends),
        "moves": sum(session.counts()["moved"] for session in sessions if not session.is_parent),
        "sessions": len(sessions),
        "delay_mean_seconds": delays.mean, "delay_p50_seconds": delays.percentile(0.5),
        "delay_p99_seconds": delays.percentile(0.99),
        "delay_end_seconds": late.mean,
        "overload_seconds": sum(_overloaded_seconds(each, seconds) for each in samples.values()),
        "overhead_ratio": _overhead(overhead, fleet.counts.delivered),
        "delivered": fleet.counts.delivered, "processor_seconds": time.process_time() - began,
        "first_minute": first.means(),
        "loads": {
            edge: _thinned(each) for edge, each in sorted(samples.items())
        },
    }  # fmt: skip


def _after(samples: _Samples, start: float) -> list[float]:
    return [load for at, load in zip(samples.seconds, samples.loads, strict=True) if at >= start] or [0.0]


def _cov(loads: Sequence[float]) -> float:
    """The coefficient of variation: deviation by mean. BAD 2019."""
    mean = fmean(loads) if loads else 0.0
    return sqrt(fmean((load - mean) ** 2 for load in loads)) / mean if mean else 0.0


def _overloaded_seconds(samples: _Samples, until: float) -> float:
    if not samples.seconds:
        return 0.0
    each = until / len(samples.seconds)
    return each * sum(load > OVERLOADED for load in samples.loads)


def _overhead(counters: Mapping[str, Mapping[str, Any]], delivered: int) -> float:
    """Messages of brokers that are no deliveries, as a share of all."""
    told = sum(n for counts in counters.values() for name, n in counts.items() if name.startswith("said_"))
    return told / (told + delivered) if told + delivered else 0.0


def _thinned(samples: _Samples) -> list[list[float]]:
    size = -(-len(samples.seconds) // POINTS_AT_MOST) if samples.seconds else 1
    return [
        [round(fmean(samples.seconds[at : at + size]), 3), round(fmean(samples.loads[at : at + size]), 5)]
        for at in range(0, len(samples.seconds), size)
    ]
