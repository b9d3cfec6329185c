"""The epoch of the mediator: a counter in the fleet's status, which each mediator raises once, at its start.

It is raised by compare-and-set, so no two mediators have one epoch. Who finds a higher one than its own writes nothing
more; heads do the same with commands, which is what keeps subscribers with one owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.operator.api import Api, Object

KIND = "BrokerFleet"


class DeposedError(RuntimeError):
    """A mediator of a higher epoch has taken over."""


async def raise_epoch(api: Api, namespace: str, fleet: str, above: int = 0) -> int:
    """One more than any mediator before, and more than `above`. Raises `MissingError` if there is no fleet."""

    def change(item: Object) -> Object:
        return {**item.get("status", {}), "mediatorEpoch": max(of(item), above) + 1}

    return of(await api.set_status(KIND, namespace, fleet, change, retry=True))


async def raise_to(api: Api, namespace: str, fleet: str, epoch: int) -> None:
    """Take notice of an epoch that somebody else has heard of, so that the next one is higher."""

    def change(item: Object) -> Object:
        return {**item.get("status", {}), "mediatorEpoch": max(of(item), epoch)}

    await api.set_status(KIND, namespace, fleet, change, retry=True)


async def set_draining(api: Api, namespace: str, fleet: str, epoch: int, edges: Iterable[str]) -> None:
    """Say which edges take no newcomers. Raises `DeposedError` if this epoch is over."""
    names = sorted(edges)

    def change(item: Object) -> Object:
        check(item, epoch)
        return {**item.get("status", {}), "draining": names}

    await api.set_status(KIND, namespace, fleet, change, retry=True)


def of(item: Mapping[str, Any]) -> int:
    """The epoch that a fleet's object, or a session's, was written in; 0 if in none."""
    return int(item.get("status", {}).get("mediatorEpoch", 0))


def check(item: Mapping[str, Any], epoch: int) -> None:
    """Raises `DeposedError` if an object knows of a higher epoch than this one."""
    if (present := of(item)) > epoch:
        raise DeposedError(f"mediator epoch {epoch} is over: {item['kind']} {item['metadata']['name']} has {present}")
