"""The subscribers of a cluster that are away, for its status, as its head reports them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.mediator.resource_status import ObservedBroker

FIELDS = {
    "awaySeconds": "away_seconds",
    "leaseSeconds": "lease_seconds",
    "behind": "behind",
    "heldBytes": "held_bytes",
    "missed": "missed",
    "subscriptions": "subscriptions",
}
AWAY_STEP_SECONDS = 10
"""`awaySeconds` rises in such steps, so that a status is not written again every second."""


def away_status(head: ObservedBroker) -> dict[str, Any]:
    """`awaySubscribers` by name; nothing if none is away."""
    found = (head.report or {}).get("away")
    items = [_item(each) for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
    return {"awaySubscribers": sorted(items, key=lambda item: str(item["name"]))} if items else {}


def _item(found: Mapping[str, Any]) -> dict[str, Any]:
    numbers = {name: _whole(found.get(field, 0)) for name, field in FIELDS.items()}
    numbers["awaySeconds"] -= numbers["awaySeconds"] % AWAY_STEP_SECONDS
    return {"name": str(found.get("name", "")), "identity": str(found.get("identity", "")), **numbers}


def _whole(value: object) -> int:
    return round(value) if isinstance(value, int | float) else 0
