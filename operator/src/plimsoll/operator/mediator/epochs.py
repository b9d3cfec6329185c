"""The epoch of the mediator: a counter in the fleet's status that each mediator raises once, at its start.

It is raised by compare-and-set, so no two mediators share an epoch. A mediator that finds a higher one writes nothing
more, and heads ignore commands of lower epochs: that fencing keeps every subscriber with one owner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.operator.api import Api, Object

FLEET_KIND = "BrokerFleet"
HIGHEST_TAKEN = 2**30
"""No mediator takes a higher epoch, and none counts.

What someone else writes into a status is rarely lower, and heads never come to obey it: there would be none above it.
"""


class OperatorDeposedError(RuntimeError):
    """A mediator of a higher epoch has taken over."""


class EpochsExhaustedError(RuntimeError):
    """There is no higher epoch: someone has written the highest one into a status."""


async def raise_epoch(api: Api, namespace: str, fleet: str, above: int = 0) -> int:
    """Take the next epoch, higher than `above`.

    Raises:
        ApiNotFoundError: there is no fleet.
        EpochsExhaustedError: there is no higher one.

    """

    def change(item: Object) -> Object:
        epoch = max(epoch_of(item), above) + 1
        if epoch > HIGHEST_TAKEN:
            raise EpochsExhaustedError(
                f"epoch {epoch - 1} is the highest, and was written into `status.mediatorEpoch` by someone else: set"
                f" it to 0 (`kubectl patch brokerfleet {fleet} --subresource=status --type=merge -p"
                """ '{"status":{"mediatorEpoch":0}}'`), and delete sessions with this epoch; if a head obeys it,"""
                " delete the pods of all brokers at once: they forget it when they start again"
            )
        return {**item.get("status", {}), "mediatorEpoch": epoch}

    return epoch_of(await api.set_status(FLEET_KIND, namespace, fleet, change, retry=True))


async def raise_epoch_to(api: Api, namespace: str, fleet: str, epoch: int) -> None:
    """Record an epoch that a head obeys, so that the next one is higher.

    Raises:
        EpochsExhaustedError: no mediator has taken so high a one, and there is none above it.

    """
    if epoch >= HIGHEST_TAKEN:
        raise EpochsExhaustedError(
            f"a head obeys epoch {epoch}, which no mediator of this version takes: delete the pods of all brokers at"
            " once: they forget it when they start again"
        )

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
    stored = old.get("policyMemory")
    is_later = isinstance(stored, Mapping) and _bounded(stored.get("mediatorEpoch")) > epoch
    return old if is_later else {**old, "policyMemory": {**value, "mediatorEpoch": epoch}}


def epoch_of(item: Mapping[str, Any]) -> int:
    """The epoch in which the status of a fleet or a session was written; 0 if in none, or if none can be so high."""
    return _bounded(item.get("status", {}).get("mediatorEpoch"))


def is_out_of_bounds(item: Mapping[str, Any]) -> bool:
    """Whether a status has an epoch that no mediator has taken."""
    stored: object = item.get("status", {}).get("mediatorEpoch", 0)
    return isinstance(stored, bool) or stored != epoch_of(item)


def _bounded(epoch: object) -> int:
    """A stored epoch. Anyone with rights on a status may write it, and a definition of an earlier version bounds none.

    No head obeys an epoch out of bounds, as none was ever sent. A head that obeys a higher one deposes a mediator at 0.
    """
    if not isinstance(epoch, int) or isinstance(epoch, bool):
        return 0
    return epoch if 0 <= epoch <= HIGHEST_TAKEN else 0


def check_epoch(item: Mapping[str, Any], epoch: int) -> None:
    """Raises `OperatorDeposedError` if an object was written in a higher epoch than this one."""
    if (present := epoch_of(item)) > epoch:
        raise OperatorDeposedError(
            f"mediator epoch {epoch} is over: {item['kind']} {item['metadata']['name']} has epoch {present}"
        )
