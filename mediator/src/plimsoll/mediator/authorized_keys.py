"""The lines of the authorized-keys file, from keys and the fleet's clients.

A line is `Z85-public-key role name`, for clients followed by permissions and quotas. A name may have several keys:
during a replacement the old one and the new one are both valid. Recorders of feeds have a file of their own, with who
may read: brokers have no use for it, and earlier ones could not read it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from plimsoll.core.permissions import ClientPermissions
from plimsoll.core.spec.quantities import Quantity
from plimsoll.core.spec.types.fleet import ClientSpec

KeyHolderRole = Literal["head", "edge", "mediator", "client", "collector"]


@dataclass(frozen=True)
class KeyHolder:
    """A name, its role, and its public keys. `client`: a client's permissions."""

    name: str
    role: KeyHolderRole
    keys: tuple[str, ...]
    client: ClientSpec | None = None


def authorized_keys_text(holders: Iterable[KeyHolder]) -> str:
    """The file of brokers: sorted by role and name, so that it changes only when its meaning does."""
    return _text(holders, _permissions)


def feed_readers_text(holders: Iterable[KeyHolder]) -> str:
    """The file of recorders: which feeds each client may read. A client that may read none is refused by name."""
    return _text((holder for holder in holders if holder.role == "client"), _read_permissions)


def may_read(client: ClientSpec, feed: str) -> bool:
    """Whether a client may read a feed, as its recorder decides."""
    granted = ClientPermissions(
        identity=client.name, reads="Read" in client.roles, channels=client.channels, feeds=client.feeds
    )
    return not granted.read_refusal(feed)


def _text(holders: Iterable[KeyHolder], permissions: Callable[[ClientSpec | None], list[str]]) -> str:
    lines = [
        " ".join([key, holder.role, holder.name, *permissions(holder.client)])
        for holder in sorted(holders, key=lambda holder: (holder.role, holder.name))
        for key in holder.keys
    ]
    return "".join(f"{line}\n" for line in lines)


def authorized_keys_of(text: str) -> dict[tuple[str, str], tuple[str, ...]]:
    """The public keys in the file, by role and name, in their order."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for line in text.splitlines():
        match line.split():
            case [key, role, name, *_]:
                found[role, name] = (*found.get((role, name), ()), key)
    return found


def _permissions(client: ClientSpec | None) -> list[str]:
    """A client's permissions and quotas, as the broker reads them; empty for a client without restrictions."""
    if client is None:
        return []
    quotas: Mapping[str, object] = {
        "publications/s": _number(client.publications_per_second),
        "bytes/s": _number(client.bytes_per_second),
        "subscriptions": client.max_subscriptions,
        "durable": client.max_durable_subscribers,
        "held-bytes": _number(client.max_held_back),
        "groups": client.max_consumer_groups,
    }
    given = [f"{name}={value}" for name, value in quotas.items() if value is not None]
    given += [f"names={','.join(sorted(set(client.name_prefixes)))}"] if client.name_prefixes else []
    given += _names("channels", client.channels)
    roles, all_roles = ({*some} - {"Read"} for some in (client.roles, ClientSpec(name=client.name).roles))
    may = ",".join(sorted(role.lower() for role in roles)) or "none"
    return [may, *given] if given or roles != all_roles else []


def _read_permissions(client: ClientSpec | None) -> list[str]:
    """Which feeds a client may read, as recorders read it."""
    if client is None:
        return []
    if "Read" not in client.roles:
        return ["none"]
    return ["read", *_names("channels", client.channels), *_names("feeds", client.feeds)]


def _names(field: str, listed: Iterable[str] | None) -> list[str]:
    return [] if listed is None else [f"{field}={','.join(sorted(set(listed))) or '-'}"]


def _number(quantity: Quantity | None) -> str | None:
    return None if quantity is None else f"{float(quantity.value):.15g}"
