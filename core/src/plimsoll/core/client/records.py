"""Records from a broker that cannot be read: of a later protocol, or broken."""

from __future__ import annotations

from collections import Counter
from typing import Any, get_args

import msgspec
from msgspec import Raw

from plimsoll.core.protocol import messages as msg
from plimsoll.core.protocol.wire import WireError

UNREADABLE = (ValueError, RecursionError, OverflowError)
KNOWN_NUMBERS = frozenset(kind.__struct_config__.tag for kind in get_args(msg.ToClient))


def pass_over(raw: bytes | Raw, error: Exception, counters: Counter[str]) -> None:
    """Count a record that cannot be read because it is of a later protocol, and not for us.

    Raises:
        WireError: it is broken.

    """
    number = first_number(raw)
    if number is None or number in KNOWN_NUMBERS:
        raise WireError("malformed", f"record {number} cannot be read: {error}") from error
    counters["records_refused_unknown"] += 1


def first_number(raw: bytes | Raw) -> int | None:
    """The number of a record, if it is an array that begins with one."""
    try:
        number = msgspec.msgpack.decode(raw, type=list[Any])[0]
    except (*UNREADABLE, IndexError):
        return None
    return number if type(number) is int else None
