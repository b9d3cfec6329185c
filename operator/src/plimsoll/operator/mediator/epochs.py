"""The epoch of the mediator: a counter in the fleet's status that each mediator raises once, at its start.

It is raised by compare-and-set, so no two mediators share an epoch. A mediator that finds a higher one writes nothing
more, and heads ignore commands of lower epochs: that fencing keeps every subscriber with one owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.operator.api import Api, Object

FLEET_KIND = "BrokerFleet"


class OperatorDeposedError(RuntimeError):
    """A mediator of a higher epoch has taken over."""


async def raise_epoch(api: Api, namespace: str, fleet: str, above: int = 0) -> int:
    """Take the next epoch, higher than `above`. Raises `ApiNotFoundError` if there is no fleet."""

    def change(item: Object) -> Object:
        return {**item.get("status", {}), "mediatorEpoch": max(epoch_of(item), above) + 1}

    return epoch_of(await api.set_status(FLEET_KIND, namespace, fleet, change, retry=True))


async def raise_epoch_to(api: Api, namespace: str, fleet: str, epoch: int) -> None:
    """Record an epoch that a head obeys, so that the next one is higher."""

    def change(item: Object) -> Object:
        return {**item.get("status", {}), "mediatorEpoch": max(epoch_of(item), epoch)}

    await api.set_status(FLEET_KIND, namespace, fleet, change, retry=True)


async def write_draining(api: Api, namespace: str, fleet: str, epoch: int, edges: Iterable[str]) -> None:
    """Record which edges are being drained. Raises `OperatorDeposedError` if this epoch is over."""
    names = sorted(edges)

    def change(item: Object) -> Object:
        check_epoch(item, epoch)
        return {**item.get("status", {}), "draining": names}

    await api.set_status(FLEET_KIND, namespace, fleet, change, retry=True)


async def write_memory(api: Api, namespace: str, cluster: str, epoch: int, value: Mapping[str, Any]) -> None:
    """Record what a policy remembers of a cluster."""
    await api.set_status("BrokerCluster", namespace, cluster, lambda item: with_memory(item, value, epoch), retry=True)


def with_memory(item: Mapping[str, Any], value: Mapping[str, Any], epoch: int) -> Object:
    """The status of a cluster with this memory. One that a mediator of a higher epoch has written stays."""
    old: Object = item.get("status", {})
    is_later = int(old.get("policyMemory", {}).get("mediatorEpoch", 0)) > epoch
    return old if is_later else {**old, "policyMemory": {**value, "mediatorEpoch": epoch}}


def epoch_of(item: Mapping[str, Any]) -> int:
    """The epoch in which the status of a fleet or a session was written; 0 if in none."""
    return int(item.get("status", {}).get("mediatorEpoch", 0))


def check_epoch(item: Mapping[str, Any], epoch: int) -> None:
    """Raises `OperatorDeposedError` if an object was written in a higher epoch than this one."""
    if (present := epoch_of(item)) > epoch:
        raise OperatorDeposedError(
            f"mediator epoch {epoch} is over: {item['kind']} {item['metadata']['name']} has epoch {present}"
        )
