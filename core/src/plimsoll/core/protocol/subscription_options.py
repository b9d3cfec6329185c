"""Options of a subscription, which travel with it from the application to every edge that serves it.

Unknown names are passed over: they may be of a later version. Values of known ones are checked by the client before it
sends them, and by the edge, which refuses the subscription.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from plimsoll.core.protocol.wire import Scalar

LATENCY: Final = "latency_seconds"
"""Within which time of its publication a message is to be delivered."""

LATENCY_AT_MOST_SECONDS: Final = 86_400.0


def required_latency(options: Mapping[str, Scalar]) -> float | None:
    """The latency that a subscription requires, in seconds; None if it does not say.

    Raises:
        ValueError: it is no number above 0 and of a day at most.

    """
    seconds = options.get(LATENCY)
    if seconds is None:
        return None
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0.0 < float(seconds) <= LATENCY_AT_MOST_SECONDS or not math.isfinite(float(seconds)):
        raise ValueError(
            f"{LATENCY} is {seconds!r}; it is a number of seconds above 0, and at most {LATENCY_AT_MOST_SECONDS:,.0f}"
        )
    return float(seconds)


def with_latency(options: Mapping[str, Scalar] | None, seconds: float | None) -> dict[str, Scalar]:
    """Options with a required latency, if one is given.

    Raises:
        ValueError: as `required_latency`, or the options name another one.

    """
    found = dict(options or {})
    other = required_latency(found)
    if seconds is not None:
        found[LATENCY] = seconds
        if other not in (None, required_latency(found)):
            raise ValueError(f"{LATENCY} is {seconds!r}, and {other!r} in the options: give it once")
    return found
