"""What a head reports of its consumer groups: in its load report, and in its status. Rates are per second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from plimsoll.core.head.groups.consumer_group import ConsumerGroup
from plimsoll.core.head.groups.stamps import GroupStamps
from plimsoll.core.policies.consumer_groups.model import ConsumerLoad

CONSUMERS_SHOWN: Final = 200
"""Consumers of a group that a report names: those with most slices, then by name. The count is of all."""

SLICES_SHOWN: Final = 256
"""A group of more slices is reported without the backlog and the lag of each."""


def group_report(group: ConsumerGroup, stamps: GroupStamps, lags: Sequence[int]) -> dict[str, Any]:
    """Of one group: its slices, its consumers and what waits. `lags`: of each slice, in items."""
    consumers = group.schedule.consumers()
    shown = sorted(consumers, key=lambda each: (-len(each.slices), each.name))[:CONSUMERS_SHOWN]
    return {
        "slices": len(group.slices),
        "without_consumer": sum(not each.holder for each in group.slices),
        "in_session": sum(each.is_revoked for each in group.slices),
        "members": len(consumers),
        "lag": sum(lags),
        "backlog": sum(each.backlog for consumer in consumers for each in consumer.slices),
        "busy_consumers": round(sum(each.cost for each in consumers), 3),
        "items_per_second": round(sum(_rate(each) for each in consumers), 3),
        "unassigned_publications": stamps.unassigned[group.name],
        "corrected_stamps": stamps.corrected[group.name],
        "confirmed_stamps": stamps.confirmed[group.name],
        "counts": {name: group.counts[name] for name in ("joined", "left", "gone", "moved", "sessions")},
        "caches": {name: group.caches.counts[name] for name in ("merged", "slow", "uncached", "lost", "relayed_bytes")},
        "plan": group.removal.text if group.removal else group.schedule.plan.reason,
        "idle": dict(group.schedule.plan.idle[:CONSUMERS_SHOWN]),
        "consumers": {each.name: _consumer(each, lags) for each in shown},
        "slice_backlogs": _backlogs(consumers) if len(lags) <= SLICES_SHOWN else {},
        "slice_lags": {str(number): lag for number, lag in enumerate(lags)} if len(lags) <= SLICES_SHOWN else {},
    }


def _rate(consumer: ConsumerLoad) -> float:
    return sum(each.items_per_second for each in consumer.slices)


def _consumer(consumer: ConsumerLoad, lags: Sequence[int]) -> dict[str, Any]:
    rate, cost = _rate(consumer), consumer.cost
    return {
        "slices": len(consumer.slices),
        "lag": sum(lags[each.number] for each in consumer.slices),
        "backlog": sum(each.backlog for each in consumer.slices),
        "items_per_second": round(rate, 3),
        "seconds_per_item": round(cost / rate, 6) if rate else 0.0,
        "cpu": round(consumer.cpu, 3),
        "memory": round(consumer.memory, 3),
        "is_leaving": consumer.is_leaving,
    }


def _backlogs(consumers: list[ConsumerLoad]) -> dict[str, int]:
    return {str(each.number): each.backlog for consumer in consumers for each in consumer.slices}
