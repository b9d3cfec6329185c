"""For how long a subscriber may stay away, and where it begins: what applications say, as the machine takes it."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from plimsoll.core.client.subscriber import Since as Place
from plimsoll.core.protocol.wire import Token

Lease = float | timedelta
"""A time to stay away, in seconds or as a `timedelta`."""

Since = datetime | timedelta | float | Token
"""A moment (a `datetime`, or seconds since 1970), a time before now (a `timedelta`), or a position."""


def lease_seconds(lease: Lease) -> float:
    """The seconds of a lease."""
    return lease.total_seconds() if isinstance(lease, timedelta) else float(lease)


def begin_at(since: Since | None) -> Place | None:
    """The position, or the seconds since 1970, that a subscriber begins at; None: now.

    Raises:
        ValueError: a `datetime` without a time zone, which names no moment.

    """
    if since is None or isinstance(since, tuple):
        return since
    if isinstance(since, timedelta):
        return time.time() - since.total_seconds()
    if isinstance(since, datetime):
        if since.tzinfo is None:
            raise ValueError(f"since={since!r} has no time zone; write since.astimezone() for local time")
        return since.timestamp()
    return float(since)
