"""The epoch of the mediator: a counter in the fleet's status, which each mediator raises once, at its start.

Who finds a higher one than its own writes nothing more; heads do the same with commands.
"""

from __future__ import annotations

from typing import Any

from plimsoll.local.store import Store


class DeposedError(RuntimeError):
    """A mediator of a higher epoch has taken over."""


def raise_epoch(store: Store, fleet: str) -> int:
    """One more than any mediator before."""
    with store.transaction():
        return _set(store, fleet, _epoch(store, fleet) + 1)


def raise_to(store: Store, fleet: str, epoch: int) -> int:
    """Take notice of an epoch that somebody else has heard of, so that the next one is higher."""
    return _set(store, fleet, epoch)


def check(store: Store, fleet: str, epoch: int) -> None:
    """Raises `DeposedError` unless this epoch is the present one; call it in the transaction of what rests on it."""
    present = _epoch(store, fleet)
    if present != epoch:
        raise DeposedError(f"mediator epoch {epoch} is over: {present} has begun")


def _epoch(store: Store, fleet: str) -> int:
    return int(store.get("BrokerFleet", fleet).get("status", {}).get("mediatorEpoch", 0))


def _set(store: Store, fleet: str, epoch: int) -> int:
    def change(item: dict[str, Any]) -> dict[str, Any]:
        status = item.get("status", {})
        return {**status, "mediatorEpoch": max(epoch, int(status.get("mediatorEpoch", 0)))}

    return int(store.set_status("BrokerFleet", fleet, change)["status"]["mediatorEpoch"])
