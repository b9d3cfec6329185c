"""The epoch of the mediator: a counter in the fleet's status that each mediator raises once, at its start.

A mediator that finds a higher one writes nothing more, and heads ignore commands of lower epochs.
"""

from __future__ import annotations

from typing import Any

from plimsoll.local.storage.object_store import ObjectStore


class LocalMediatorDeposedError(RuntimeError):
    """A mediator of a higher epoch has taken over."""


def claim_next_epoch(store: ObjectStore, fleet: str) -> int:
    """Take the next epoch, higher than any before."""
    with store.transaction():
        return _store_epoch(store, fleet, _stored_epoch(store, fleet) + 1)


def record_higher_epoch(store: ObjectStore, fleet: str, epoch: int) -> int:
    """Record an epoch that a head obeys, so that the next one is higher."""
    return _store_epoch(store, fleet, epoch)


def check_epoch(store: ObjectStore, fleet: str, epoch: int) -> None:
    """Raise `LocalMediatorDeposedError` unless this epoch is the present one; call it in the transaction to guard."""
    present = _stored_epoch(store, fleet)
    if present != epoch:
        raise LocalMediatorDeposedError(f"mediator epoch {epoch} is over: {present} has begun")


def _stored_epoch(store: ObjectStore, fleet: str) -> int:
    return int(store.get("BrokerFleet", fleet).get("status", {}).get("mediatorEpoch", 0))


def _store_epoch(store: ObjectStore, fleet: str, epoch: int) -> int:
    def change(item: dict[str, Any]) -> dict[str, Any]:
        status = item.get("status", {})
        return {**status, "mediatorEpoch": max(epoch, int(status.get("mediatorEpoch", 0)))}

    return int(store.set_status("BrokerFleet", fleet, change)["status"]["mediatorEpoch"])
