"""The part of an authorised-keys line after the name: a client's permissions and quotas.

First the permissions: `publish`, `subscribe` and `group` (make consumer groups), separated by commas, or `none`; then
quotas: `publications/s=N`, `bytes/s=N` and `subscriptions=N`, and of subscribers that stay away for long their number,
`durable=N`, and how far one may be behind, `held-bytes=N`; and `names=PREFIX,PREFIX`, prefixes of the names of
subscribers and publishers that belong to this identity; and `channels=NAME,NAME`, the channels to which it may
subscribe, or `channels=-` for none. Clients without restrictions need none of it; other roles may have none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from plimsoll.core.permissions import ClientPermissions

ROLES: Final = ("publish", "subscribe", "group")
NO_ROLES: Final = "none"
WHOLE: Final = ("subscriptions", "durable", "held-bytes")
QUOTAS: Final = ("publications/s", "bytes/s", *WHOLE)
NAMES: Final = "names"
CHANNELS: Final = "channels"
NO_CHANNELS: Final = "-"
"""No channel can have this name."""
LONGEST_PREFIX: Final = 253


def parse_permissions(fields: Sequence[str], identity: str) -> ClientPermissions:
    """Read these fields.

    Raises:
        ValueError: naming the wrong field and what is allowed there.

    """
    roles: set[str] | None = None
    quotas: dict[str, float] = {}
    prefixes: tuple[str, ...] = ()
    channels: tuple[str, ...] | None = None
    for field in fields:
        name, equals, value = field.partition("=")
        if name == NAMES and equals:
            if prefixes:
                raise ValueError(f"{field!r}: write {NAMES}= once, and separate prefixes by commas")
            prefixes = _prefixes(field, value)
        elif name == CHANNELS and equals:
            if channels is not None:
                raise ValueError(f"{field!r}: write {CHANNELS}= once, and separate channels by commas")
            channels = _channels(field, value)
        elif equals:
            # The unit may also follow the number: publications=100/s.
            if value.endswith("/s") and name in ("publications", "bytes"):
                name, value = f"{name}/s", value.removesuffix("/s")
            if name not in QUOTAS or name in quotas:
                known = ", ".join(f"{each}=N" for each in QUOTAS)
                raise ValueError(
                    f"{field!r}: quotas are {known}, each once; prefixes of names are {NAMES}=PREFIX,PREFIX,"
                    f" channels {CHANNELS}=NAME,NAME"
                )
            quotas[name] = _number(field, value, whole=name in WHOLE)
        elif roles is not None or quotas or prefixes or channels is not None:
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
        publications_per_second=quotas.get("publications/s"),
        bytes_per_second=quotas.get("bytes/s"),
        max_subscriptions=whole.get("subscriptions"),
        max_durable_subscribers=whole.get("durable"),
        max_held_back_bytes=whole.get("held-bytes"),
        name_prefixes=prefixes,
        channels=channels,
    )


def _prefixes(field: str, text: str) -> tuple[str, ...]:
    prefixes = tuple(sorted(set(text.split(","))))
    if "" in prefixes or any(len(prefix) > LONGEST_PREFIX for prefix in prefixes):
        raise ValueError(f"{field!r}: a prefix of names has 1 to {LONGEST_PREFIX} characters, none of them a comma")
    return prefixes


def _channels(field: str, text: str) -> tuple[str, ...]:
    if text == NO_CHANNELS:
        return ()
    channels = tuple(sorted(set(text.split(","))))
    if "" in channels:
        raise ValueError(f"{field!r}: name channels, separated by commas, or write {CHANNELS}={NO_CHANNELS}")
    return channels


def _number(field: str, text: str, *, whole: bool) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan  # refused below, with all others that are no quota
    if not (0 < number < math.inf) or (whole and number != int(number)):
        raise ValueError(f"{field!r}: a quota is a {'whole ' if whole else ''}number above 0")
    return number
