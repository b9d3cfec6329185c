"""The time that a publication takes at brokers whose profile emulates none: what they have measured of themselves.

The queueing model knows hardware as an emulation has it, `base + perSubscription x subscriptions`. A broker that
balances has measured the time of a publication and that of a match; matches grow with the subscriptions that it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plimsoll.mediator.fleet_resources import Object

Load = Mapping[str, Any]
"""The `load` of a status."""


def with_measured_times(
    profile: Object, edges: Sequence[Load], heads: Sequence[Load], notes: list[str]
) -> Mapping[str, Any]:
    """The specification of a profile with `emulation`: its own, or the times that its brokers have measured.

    `edges`, `heads`: the loads of the brokers that have it. A sentence on what was measured or assumed goes to `notes`.
    """
    spec: Mapping[str, Any] = profile["spec"]
    name, loads = profile["metadata"]["name"], edges or heads
    if "emulation" in spec:
        return spec
    fit = profile.get("status", {}).get("calibrated")
    times = _calibrated(fit, loads) if fit else None
    if times is not None:
        notes.append(
            f"measured: {name} emulates nothing; its brokers are calibrated to {times[0] / 1000:.1f} us for a "
            f"publication and {fit['matchNanoseconds'] / 1000:.1f} us for a match"
        )
        notes.append(f"assumed: at {name} the matches of a publication grow with the subscriptions of its broker")
    else:
        delays = [float(load["matchDelayMicroseconds"]) for load in loads if load.get("matchDelayMicroseconds")]
        if not delays:
            notes.append(
                f"assumed: {name} emulates nothing and has measured nothing; a publication takes no time there"
            )
            return spec
        times = 1000 * sum(delays) / len(delays), 0.0
        notes.append(
            f"measured: {name} emulates nothing; its brokers report {times[0] / 1000:.0f} us for a publication"
        )
        notes.append(f"assumed: at {name} that time stays the same with any number of subscriptions")
    return {**spec, "emulation": {"base": f"{round(times[0])}ns", "perSubscription": f"{round(times[1])}ns"}}


def _calibrated(fit: Mapping[str, Any], loads: Sequence[Load]) -> tuple[float, float] | None:
    """Nanoseconds for a publication, and for each subscription of a broker; None without traffic to tell."""
    arrivals, deliveries, subscriptions = (
        sum(float(load.get(key, 0)) for load in loads)
        for key in ("publicationsPerSecond", "deliveriesPerSecond", "subscriptions")
    )
    if not arrivals or not subscriptions:
        return None
    matches_per_subscription = deliveries / arrivals / (subscriptions / len(loads))
    return float(fit["publicationNanoseconds"]), float(fit["matchNanoseconds"]) * matches_per_subscription
