"""From the specification of a World to the traffic of the queueing model."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence

from plimsoll.core.predicates import Attributes, Predicate, conjunction
from plimsoll.core.spec import Resources
from plimsoll.core.spec.broker_config import policy_of
from plimsoll.core.spec.brokers import declared_brokers, head_name
from plimsoll.simulator.queueing.subscriber_units import divided, topic_attributes
from plimsoll.simulator.queueing.traffic import RateStep, Traffic, TrafficPublisher, TrafficSubscriber
from plimsoll.simulator.worlds.world_spec import (
    PUBLISHERS_AT_MOST,
    PublisherSpec,
    RateSpec,
    SubscriberSpec,
    TopicNameSpec,
    TopicRateSpec,
    WorldSpec,
)


def traffic_of(world: WorldSpec, seed: int) -> Traffic:
    """The traffic; the seed decides when in its first interval each publisher begins."""
    draw = random.Random(f"{seed} publishers")
    publishers = [each for spec in world.publishers for each in _publishers(spec, draw, world.topic_attribute)]
    subscribers = [each for spec in world.subscribers for each in _subscribers(spec, world.topic_attribute)]
    return Traffic(publishers, subscribers)


def _names(name: str, count: int) -> Iterator[str]:
    if count == 1:
        yield name
        return
    digits = len(str(count))
    for number in range(1, count + 1):
        yield f"{name}-{number:0{digits}}"


def _publishers(spec: PublisherSpec, draw: random.Random, attribute: str) -> Iterator[TrafficPublisher]:
    """With topics there is a publisher for each of them."""
    contents = tuple(json.loads(each) for each in spec.publications)
    for name in _names(spec.name, spec.count):
        if not spec.topics:
            yield _publisher(name, spec, contents, spec.rates, draw)
        for each in spec.topics:
            for topic in _names(each.name, each.count):
                own = tuple({**content, attribute: topic} for content in contents or ({},))
                yield _publisher(f"{name}/{topic}", spec, own, each.rates, draw)


def _publisher(
    name: str, spec: PublisherSpec, contents: tuple[Attributes, ...], rates: Sequence[RateSpec], draw: random.Random
) -> TrafficPublisher:
    steps = tuple(RateStep(each.at.seconds, float(each.per_second.value)) for each in rates)
    first = draw.random() / next((step.per_second for step in steps if step.per_second > 0), 1.0)
    return TrafficPublisher(name, head_name(spec.cluster), contents, steps, first, spec.payload.whole)


def _topics(specs: Sequence[TopicRateSpec | TopicNameSpec]) -> list[str]:
    return [topic for each in specs for topic in _names(each.name, each.count)]


def _asked(spec: SubscriberSpec, attribute: str, number: int, topics: Sequence[str]) -> tuple[str, ...]:
    """The subscriptions of one of them, from 0: its own topics behind what all of them ask for."""
    each = len(topics) if spec.topics_each is None else spec.topics_each
    own = (topics[(number * each + at) % len(topics)] for at in range(each if topics else 0))
    parts = (str(conjunction([Predicate(attribute, "=", topic)])) for topic in own)
    return (*spec.subscriptions, *parts)


def _subscribers(spec: SubscriberSpec, attribute: str) -> Iterator[TrafficSubscriber]:
    pause = spec.joins.over.seconds / spec.count
    topics = _topics(spec.topics)
    leaves_at = float("inf") if spec.leaves is None else spec.leaves.seconds
    for number, name in enumerate(_names(spec.name, spec.count)):
        joins_at = spec.joins.after.seconds + number * pause
        if joins_at < leaves_at:
            asked = _asked(spec, attribute, number, topics)
            yield TrafficSubscriber(name, spec.cluster, asked, joins_at, leaves_at, prefer=spec.edge)


def faults(world: WorldSpec, resources: Resources) -> list[str]:
    """What in a World does not fit its fleet, a sentence each."""
    found, seen = [], set[str]()
    edges = {place.name: place.cluster for place in declared_brokers(resources) if place.role == "edge"}
    for what, specs in (("publishers", world.publishers), ("subscribers", world.subscribers)):
        for spec in specs:
            if spec.cluster not in resources.clusters:
                known = ", ".join(sorted(resources.clusters))
                found.append(f"{what} {spec.name}: there is no BrokerCluster {spec.cluster}; the file has {known}")
            if not (spec.topics or (spec.publications if isinstance(spec, PublisherSpec) else spec.subscriptions)):
                found.append(f"{what} {spec.name}: the list is empty; name at least one")
    for each in world.subscribers:
        if each.edge and edges.get(each.edge) != each.cluster:
            found.append(f"subscribers {each.name}: {each.edge} is no edge of cluster {each.cluster}")
        if each.leaves is not None and each.leaves.seconds <= each.joins.after.seconds + each.joins.over.seconds:
            found.append(f"subscribers {each.name}: they leave before all have joined; let `leaves` be later")
    for publisher in world.publishers:
        for whose, rates in _rates(publisher):
            times = [rate.at.seconds for rate in rates]
            if times != sorted(set(times)) or not times:
                found.append(f"publishers {publisher.name}: {whose} need times in ascending order, at least one")
    for name in (name for spec in world.subscribers for name in _names(spec.name, spec.count)):
        if name in seen:
            found.append(f"two subscribers are named {name}; give one of them another name")
        seen.add(name)
    return [*found, *topic_faults(world, resources)]


def _rates(spec: PublisherSpec) -> Iterator[tuple[str, Sequence[RateSpec]]]:
    if spec.rates or not spec.topics:
        yield "rates", spec.rates
    for each in spec.topics:
        yield f"rates of topic {each.name}", each.rates


def topic_faults(world: WorldSpec, resources: Resources) -> Iterator[str]:
    """What in the topics of a World does not fit together."""
    attribute = world.topic_attribute
    some: list[tuple[str, PublisherSpec | SubscriberSpec]] = [
        *(("publishers", each) for each in world.publishers),
        *(("subscribers", each) for each in world.subscribers),
    ]
    named = [(what, spec) for what, spec in some if spec.topics]
    if not attribute:
        yield from (
            f"{what} {spec.name}: topics need an attribute; give the World its topicAttribute" for what, spec in named
        )
        return
    yield from (
        f"publishers {spec.name}: rates and topics are both given; a topic has rates of its own"
        for spec in world.publishers if spec.topics and spec.rates
    )  # fmt: skip
    count = sum(spec.count * max(sum(each.count for each in spec.topics), 1) for spec in world.publishers)
    if count > PUBLISHERS_AT_MOST:
        said = f"they have {count:,} topics together, each counted for each publisher"
        yield f"publishers: {said}; {PUBLISHERS_AT_MOST:,} is the most"
        return
    known = {topic for spec in world.publishers for topic in _topics(spec.topics)}
    known |= {str(json.loads(each).get(attribute)) for spec in world.publishers for each in spec.publications}
    for spec in world.subscribers:
        topics = _topics(spec.topics)
        if missing := [topic for topic in topics if topic not in known]:
            yield f"subscribers {spec.name}: no publisher has the topic {missing[0]}; it is one of {len(missing)}"
        if spec.topics_each is not None and spec.topics_each > len(topics):
            yield f"subscribers {spec.name}: topicsEach is {spec.topics_each}, and topics are {len(topics)}"
    yield from _unit_faults(world, resources)


def _unit_faults(world: WorldSpec, resources: Resources) -> Iterator[str]:
    """Names that a subscriber and a unit of another would share."""
    known = {cluster: policy for cluster in resources.clusters if (policy := policy_of(resources, cluster)) is not None}
    attributes = dict.fromkeys(resources.clusters, world.topic_attribute) | topic_attributes(known)
    try:
        divided(traffic_of(world, 0), attributes)
    except ValueError as error:
        yield str(error)
