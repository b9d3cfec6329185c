"""The status of hardware profiles, from the measurements of their brokers: a pure function.

A broker that balances fits its matching time as one time per publication and one per match. The error of the fit is
taken against the last measurement. A measurement counts if it is recent, and if its broker was started with the profile
as it is now: one of other hardware says nothing about this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.core.spec.status.conditions import Condition
from plimsoll.mediator.resource_status import ObservedBroker, is_stale, merged_conditions


@dataclass(frozen=True)
class MatchTimeFit:
    """Seconds per publication and per match; the error as a ratio, or None if there was no publication."""

    base: float
    per_match: float
    error: float | None


def profile_status(
    profile: Mapping[str, Any], brokers: Sequence[ObservedBroker], interval_seconds: float, time: str
) -> dict[str, Any]:
    """The status of a HardwareProfile, from all brokers of its fleet."""
    mine = [broker for broker in brokers if broker.profile == profile["metadata"]["name"]]
    counted = [broker for broker in mine if _why_not(broker, interval_seconds) is None]
    lines = [line for broker in counted if (line := _fit(broker)) is not None]
    found: dict[str, Any] = {"brokers": len(mine)}
    if lines:
        found["calibrated"] = _calibrated(lines)
    told = _calibrated_condition(mine, len(lines), interval_seconds)
    generation = int(profile["metadata"].get("generation", 1))
    return {"observedGeneration": generation, **found, **merged_conditions(profile, [told], time)}


def _calibrated_condition(mine: Sequence[ObservedBroker], measured: int, interval_seconds: float) -> Condition:
    if measured:
        return Condition("Calibrated", "True", "Measured", f"{measured} of {len(mine)} brokers have measured it")
    for broker in mine:
        if (why := _why_not(broker, interval_seconds)) and _fit(broker) is not None:
            return Condition("Calibrated", "False", why[0], f"the measurement of {broker.name} {why[1]}")
    message = "no broker with this profile has measured what matching takes"
    return Condition("Calibrated", "False", "NotMeasured", message)


def _why_not(broker: ObservedBroker, interval_seconds: float) -> tuple[str, str] | None:
    """Why a broker's measurement does not count, as a reason and a predicate; None if it does."""
    if broker.outdated:
        return "Rolling", "is of other hardware: it runs with earlier settings until it is replaced"
    if is_stale(broker, interval_seconds):
        return "Stale", "is old: it no longer reports"
    return None


def _fit(broker: ObservedBroker) -> MatchTimeFit | None:
    return match_time_fit(broker.report)


def match_time_fit(report: Mapping[str, Any]) -> MatchTimeFit | None:
    """The fitted times of a broker; None if there are none, or if its report is invalid."""
    base, per_match = _number(report, "match_base_seconds"), _number(report, "match_seconds_per_match")
    if base is None or per_match is None or base + per_match == 0:  # without publications nothing was measured
        return None
    arrivals, deliveries = _number(report, "input_rate"), _number(report, "output_rate")
    measured = _number(report, "match_delay_seconds")
    if not arrivals or not measured or deliveries is None:
        return MatchTimeFit(base, per_match, None)
    return MatchTimeFit(base, per_match, abs(base + per_match * deliveries / arrivals - measured) / measured)


def _number(report: Mapping[str, Any], name: str) -> float | None:
    found = report.get(name)
    return float(found) if isinstance(found, int | float) and found >= 0 else None


def _calibrated(lines: Sequence[MatchTimeFit]) -> dict[str, int]:
    errors = [line.error for line in lines if line.error is not None]
    found = {
        "brokers": len(lines),
        "publicationNanoseconds": round(1e9 * sum(line.base for line in lines) / len(lines)),
        "matchNanoseconds": round(1e9 * sum(line.per_match for line in lines) / len(lines)),
    }
    return {**found, "errorPercent": round(100 * max(errors))} if errors else found
