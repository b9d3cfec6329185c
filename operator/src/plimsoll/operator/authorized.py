"""Who may connect as whom: the lines of the authorized-keys file, from keys and what the fleet says of its clients.

A line is `Z85-public-key role name`, for clients followed by what they may do and how much. A name may have several
keys: while keys are replaced, the old one and the new one are both good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from plimsoll.core.spec.fleets import ClientSpec
from plimsoll.core.spec.quantities import Quantity

Role = Literal["head", "edge", "mediator", "client", "collector"]


@dataclass(frozen=True)
class Holder:
    """A name, its role, and the public keys under which it may come. `client`: what a client may do."""

    name: str
    role: Role
    keys: tuple[str, ...]
    client: ClientSpec | None = None


def text(holders: Iterable[Holder]) -> str:
    """The file: sorted by role and name, so that it changes only when its meaning does."""
    lines = [
        " ".join([key, holder.role, holder.name, *_granted(holder.client)])
        for holder in sorted(holders, key=lambda holder: (holder.role, holder.name))
        for key in holder.keys
    ]
    return "".join(f"{line}\n" for line in lines)


def _granted(client: ClientSpec | None) -> list[str]:
    """What a client may do, as the broker reads it; nothing is written of one that may do all without a quota."""
    if client is None:
        return []
    quotas: Mapping[str, object] = {
        "publications/s": _number(client.publications_per_second),
        "bytes/s": _number(client.bytes_per_second),
        "subscriptions": client.max_subscriptions,
    }
    given = [f"{name}={value}" for name, value in quotas.items() if value is not None]
    may = ",".join(sorted(role.lower() for role in client.roles)) or "none"
    return [may, *given] if given or set(client.roles) != set(ClientSpec(name=client.name).roles) else []


def _number(quantity: Quantity | None) -> str | None:
    return None if quantity is None else f"{float(quantity.value):.15g}"
