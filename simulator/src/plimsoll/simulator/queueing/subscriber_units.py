"""Subscribers of topics as units, as the product's client library divides them; brokers serve units as subscribers.

What asks for no topic stays one subscriber, the rest. A publication that a unit and the rest both want is delivered
to both here: the application, which drops the second one, is not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from plimsoll.core import predicates
from plimsoll.core.client.topic_parts import topic_parts
from plimsoll.core.policies.registry import topic_attribute
from plimsoll.core.protocol.topic_units import hash_of_unit, unit_name
from plimsoll.core.spec.types.policy import PolicySpec
from plimsoll.simulator.queueing.traffic import Traffic, TrafficSubscriber


def topic_attributes(policies: Mapping[str, PolicySpec]) -> dict[str, str]:
    """The attribute whose values are topics, by cluster; those whose policy has no topics have none."""
    found = {cluster: topic_attribute(policy) for cluster, policy in policies.items()}
    return {cluster: attribute for cluster, attribute in found.items() if attribute}


def divided(traffic: Traffic, attributes: Mapping[str, str]) -> Traffic:
    """The traffic with subscribers of clusters that have topics as units.

    Raises:
        ValueError: a unit and another subscriber have one name.

    """
    found = [unit for each in traffic.subscribers for unit in _units(each, attributes.get(each.cluster, ""))]
    names = set[str]()
    for one in found:
        if one.name in names:
            raise ValueError(f"two subscribers or units are named {one.name!r}; give the subscriber another name")
        names.add(one.name)
    return replace(traffic, subscribers=found)


def _units(subscriber: TrafficSubscriber, attribute: str) -> Iterator[TrafficSubscriber]:
    if not attribute or hash_of_unit(subscriber.name) is not None:  # a World of a running fleet names units
        yield subscriber
        return
    parts: dict[int, list[str]] = {}
    rest = list(_rest(subscriber.subscriptions, attribute, parts))
    if rest or not parts:
        yield replace(subscriber, subscriptions=tuple(rest))
    for topic, texts in parts.items():
        yield replace(subscriber, name=unit_name(subscriber.name, topic), subscriptions=tuple(texts))


def _rest(texts: Iterable[str], attribute: str, parts: dict[int, list[str]]) -> Iterator[str]:
    """What no unit asks for; what units ask for is added to `parts`, by hash."""
    for text in texts:
        found = topic_parts(predicates.parse(text), attribute)
        if not found:
            yield text
        for topic, part in found:
            parts.setdefault(topic, []).append(part)
