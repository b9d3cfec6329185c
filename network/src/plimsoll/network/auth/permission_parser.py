"""The part of an authorised-keys line after the name: a client's permissions and quotas.

First the permissions: `publish`, `subscribe`, `group` (make consumer groups) and `read` (feeds), separated by commas,
or `none`; then quotas: `publications/s=N`, `bytes/s=N` and `subscriptions=N`, and of subscribers that stay away for
long their number, `durable=N`, and how far one may be behind, `held-bytes=N`; and `names=PREFIX,PREFIX`, prefixes of
the names of subscribers and publishers that belong to this identity; and `channels=NAME,NAME`, the channels to which
it may subscribe, or `channels=-` for none; and in the same way `feeds=NAME,NAME`, the feeds that it may read. Clients
without restrictions need none of it; other roles may have none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from plimsoll.core.permissions import ClientPermissions
from plimsoll.core.protocol.wire import NAME_AT_MOST

ROLES: Final = ("publish", "subscribe", "group", "read")
NO_ROLES: Final = "none"
WHOLE: Final = ("subscriptions", "durable", "held-bytes", "groups")
QUOTAS: Final = ("publications/s", "bytes/s", *WHOLE)
NAMES: Final = "names"
CHANNELS: Final = "channels"
FEEDS: Final = "feeds"
LISTS: Final = (CHANNELS, FEEDS)
NO_NAMES: Final = "-"
"""No channel and no feed can have this name."""


def parse_permissions(fields: Sequence[str], identity: str) -> ClientPermissions:
    """Read these fields. Brokers name an identity to one another, so it is no longer than a name in a record.

    Raises:
        ValueError: naming the wrong field and what is allowed there.

    """
    if len(identity) > NAME_AT_MOST:
        raise ValueError(
            f"the name {identity[:16]!r}... has {len(identity)} characters; a name has at most {NAME_AT_MOST}"
        )
    roles: set[str] | None = None
    quotas: dict[str, float] = {}
    prefixes: tuple[str, ...] = ()
    lists: dict[str, tuple[str, ...]] = {}
    for field in fields:
        name, equals, value = field.partition("=")
        if name == NAMES and equals:
            if prefixes:
                raise ValueError(f"{field!r}: write {NAMES}= once, and separate prefixes by commas")
            prefixes = _prefixes(field, value)
        elif name in LISTS and equals:
            if name in lists:
                raise ValueError(f"{field!r}: write {name}= once, and separate {name} by commas")
            lists[name] = _list(field, name, value)
        elif equals:
            # The unit may also follow the number: publications=100/s.
            if value.endswith("/s") and name in ("publications", "bytes"):
                name, value = f"{name}/s", value.removesuffix("/s")
            if name not in QUOTAS or name in quotas:
                known = ", ".join(f"{each}=N" for each in QUOTAS)
                raise ValueError(
                    f"{field!r}: quotas are {known}, each once; prefixes of names are {NAMES}=PREFIX,PREFIX,"
                    f" channels {CHANNELS}=NAME,NAME, feeds {FEEDS}=NAME,NAME"
                )
            quotas[name] = _number(field, value, whole=name in WHOLE)
        elif roles is not None or quotas or prefixes or lists:
            raise ValueError(f"{field!r}: write roles once, before the quotas, separated by commas")
        else:
            roles = set() if field == NO_ROLES else set(field.split(","))
            if not roles <= set(ROLES):
                raise ValueError(f"{field!r}: what a client may do is {', '.join(ROLES)} or {NO_ROLES}")
    whole = {name: int(quotas[name]) for name in WHOLE if name in quotas}
    return ClientPermissions(
        identity=identity,
        publishes=roles is None or "publish" in roles,
        subscribes=roles is None or "subscribe" in roles,
        groups=roles is None or "group" in roles,
        reads=roles is None or "read" in roles,
        publications_per_second=quotas.get("publications/s"),
        bytes_per_second=quotas.get("bytes/s"),
        max_subscriptions=whole.get("subscriptions"),
        max_durable_subscribers=whole.get("durable"),
        max_held_back_bytes=whole.get("held-bytes"),
        max_consumer_groups=whole.get("groups"),
        name_prefixes=prefixes,
        channels=lists.get(CHANNELS),
        feeds=lists.get(FEEDS),
    )


def _prefixes(field: str, text: str) -> tuple[str, ...]:
    prefixes = tuple(sorted(set(text.split(","))))
    if "" in prefixes or any(len(prefix) > NAME_AT_MOST for prefix in prefixes):
        raise ValueError(f"{field!r}: a prefix of names has 1 to {NAME_AT_MOST} characters, none of them a comma")
    return prefixes


def _list(field: str, what: str, text: str) -> tuple[str, ...]:
    if text == NO_NAMES:
        return ()
    found = tuple(sorted(set(text.split(","))))
    if "" in found:
        raise ValueError(f"{field!r}: name {what}, separated by commas, or write {what}={NO_NAMES}")
    return found


def _number(field: str, text: str, *, whole: bool) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan  # refused below, with all others that are no quota
    if not (0 < number < math.inf) or (whole and number != int(number)):
        raise ValueError(f"{field!r}: a quota is a {'whole ' if whole else ''}number above 0")
    return number
