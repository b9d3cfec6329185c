"""From the specification of a World to the traffic of the queueing model."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

from plimsoll.core.spec import Resources
from plimsoll.core.spec.brokers import declared_brokers, head_name
from plimsoll.simulator.queueing.traffic import RateStep, Traffic, TrafficPublisher, TrafficSubscriber
from plimsoll.simulator.worlds.world_spec import PublisherSpec, SubscriberSpec, WorldSpec


def traffic_of(world: WorldSpec, seed: int) -> Traffic:
    """The traffic; the seed decides when in its first interval each publisher begins."""
    draw = random.Random(f"{seed} publishers")
    publishers = [each for spec in world.publishers for each in _publishers(spec, draw)]
    subscribers = [each for spec in world.subscribers for each in _subscribers(spec)]
    return Traffic(publishers, subscribers)


def _names(name: str, count: int) -> Iterator[str]:
    if count == 1:
        yield name
        return
    digits = len(str(count))
    for number in range(1, count + 1):
        yield f"{name}-{number:0{digits}}"


def _publishers(spec: PublisherSpec, draw: random.Random) -> Iterator[TrafficPublisher]:
    rates = tuple(RateStep(each.at.seconds, float(each.per_second.value)) for each in spec.rates)
    contents = tuple(json.loads(each) for each in spec.publications)
    for name in _names(spec.name, spec.count):
        first = draw.random()
        rate = next((step.per_second for step in rates if step.per_second > 0), 1.0)
        yield TrafficPublisher(
            name, head_name(spec.cluster), contents, rates, first / rate, spec.payload.whole
        )  # fmt: skip


def _subscribers(spec: SubscriberSpec) -> Iterator[TrafficSubscriber]:
    pause = spec.joins.over.seconds / spec.count
    leaves_at = float("inf") if spec.leaves is None else spec.leaves.seconds
    for number, name in enumerate(_names(spec.name, spec.count)):
        joins_at = spec.joins.after.seconds + number * pause
        if joins_at < leaves_at:
            yield TrafficSubscriber(name, spec.cluster, spec.subscriptions, joins_at, leaves_at, prefer=spec.edge)


def faults(world: WorldSpec, resources: Resources) -> list[str]:
    """What in a World does not fit its fleet, a sentence each."""
    found, seen = [], set[str]()
    edges = {place.name: place.cluster for place in declared_brokers(resources) if place.role == "edge"}
    for what, specs in (("publishers", world.publishers), ("subscribers", world.subscribers)):
        for spec in specs:
            if spec.cluster not in resources.clusters:
                known = ", ".join(sorted(resources.clusters))
                found.append(f"{what} {spec.name}: there is no BrokerCluster {spec.cluster}; the file has {known}")
            if not (spec.publications if isinstance(spec, PublisherSpec) else spec.subscriptions):
                found.append(f"{what} {spec.name}: the list is empty; name at least one")
    for each in world.subscribers:
        if each.edge and edges.get(each.edge) != each.cluster:
            found.append(f"subscribers {each.name}: {each.edge} is no edge of cluster {each.cluster}")
    for publisher in world.publishers:
        times = [rate.at.seconds for rate in publisher.rates]
        if times != sorted(set(times)) or not times:
            found.append(f"publishers {publisher.name}: rates need times in ascending order, at least one")
    for name in (name for spec in world.subscribers for name in _names(spec.name, spec.count)):
        if name in seen:
            found.append(f"two subscribers are named {name}; give one of them another name")
        seen.add(name)
    return found
