"""The status of hardware profiles, from the measurements of their brokers: a pure function.

A broker that balances fits its matching time as one time per publication and one per match. The error of the fit is
taken against the last measurement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.core.spec.status.conditions import Condition
from plimsoll.mediator.resource_status import ObservedBroker, merged_conditions


@dataclass(frozen=True)
class MatchTimeFit:
    """Seconds per publication and per match; the error as a ratio, or None if there was no publication."""

    base: float
    per_match: float
    error: float | None


def profile_status(profile: Mapping[str, Any], brokers: Sequence[ObservedBroker], time: str) -> dict[str, Any]:
    """The status of a HardwareProfile, from all brokers of its fleet."""
    mine = [broker for broker in brokers if broker.profile == profile["metadata"]["name"]]
    lines = [line for broker in mine if (line := match_time_fit(broker.report)) is not None]
    found: dict[str, Any] = {"brokers": len(mine)}
    if lines:
        found["calibrated"] = _calibrated(lines)
        told = Condition("Calibrated", "True", "Measured", f"{len(lines)} of {len(mine)} brokers have measured it")
    else:
        told = Condition(
            "Calibrated", "False", "NotMeasured", "no broker with this profile has measured what matching takes"
        )
    generation = int(profile["metadata"].get("generation", 1))
    return {"observedGeneration": generation, **found, **merged_conditions(profile, [told], time)}


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
