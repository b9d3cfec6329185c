"""The consumer groups of a cluster for its status, as its head reports them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.core.policies.consumer_groups.reported import reported_groups
from plimsoll.mediator.reply_checks import IMPLAUSIBLE_FROM
from plimsoll.mediator.resource_status import ObservedBroker


def group_status(head: ObservedBroker) -> dict[str, Any]:
    """`consumerGroups` by name, each with its consumers; nothing of a head of an earlier version."""
    groups = reported_groups(head.report or {})
    return {"consumerGroups": [_group(name, found) for name, found in sorted(groups.items())]} if groups else {}


def _group(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    consumers = found.get("consumers")
    return {
        "name": name,
        "slices": _whole(found, "slices"),
        "slicesWithoutConsumer": _whole(found, "without_consumer"),
        "members": _whole(found, "members"),
        "lag": _whole(found, "lag"),
        "backlog": _whole(found, "backlog"),
        "busyPercent": _whole(found, "busy_consumers", 100.0),
        "itemsPerSecond": _whole(found, "items_per_second"),
        "consumers": [
            _consumer(str(consumer), each)
            for consumer, each in sorted(consumers.items() if isinstance(consumers, Mapping) else ())
            if isinstance(each, Mapping)
        ],
    }


def _consumer(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "slices": _whole(found, "slices"),
        "lag": _whole(found, "lag"),
        "backlog": _whole(found, "backlog"),
        "itemsPerSecond": _whole(found, "items_per_second"),
        "microsecondsPerItem": _whole(found, "seconds_per_item", 1e6),
        "cpuPercent": _whole(found, "cpu", 100.0),
        "memoryPercent": _whole(found, "memory", 100.0),
    }


def _whole(found: Mapping[str, Any], name: str, factor: float = 1.0) -> int:
    value = found.get(name, 0)
    return round(value * factor) if isinstance(value, int | float) and 0.0 <= value < IMPLAUSIBLE_FROM else 0
