"""What brokers have measured of their hardware, as the status of their profile says it: a pure function.

A broker that balances fits what matching takes it, as a time for each publication and one for each match. How far the
line is off is judged by what was measured last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.core.spec.conditions import Condition
from plimsoll.mediator.reports import Seen, conditions


@dataclass(frozen=True)
class Line:
    """Seconds of a publication, and of each of its matches; how far off, as a ratio, or None where nothing came in."""

    base: float
    per_match: float
    error: float | None


def profile_status(profile: Mapping[str, Any], brokers: Sequence[Seen], time: str) -> dict[str, Any]:
    """The status of a HardwareProfile, from all brokers of its fleet."""
    mine = [broker for broker in brokers if broker.profile == profile["metadata"]["name"]]
    lines = [line for broker in mine if (line := fitted(broker.report)) is not None]
    found: dict[str, Any] = {"brokers": len(mine)}
    if lines:
        found["calibrated"] = _calibrated(lines)
        told = Condition("Calibrated", "True", "Measured", f"{len(lines)} of {len(mine)} brokers have measured it")
    else:
        told = Condition(
            "Calibrated", "False", "NotMeasured", "no broker with this profile has measured what matching takes"
        )
    generation = int(profile["metadata"].get("generation", 1))
    return {"observedGeneration": generation, **found, **conditions(profile, [told], time)}


def fitted(report: Mapping[str, Any]) -> Line | None:
    """What a broker has fitted; None if it has not, or its report holds what cannot be."""
    base, per_match = _number(report, "match_base_seconds"), _number(report, "match_seconds_per_match")
    if base is None or per_match is None:
        return None
    arrivals, deliveries = _number(report, "input_rate"), _number(report, "output_rate")
    measured = _number(report, "match_delay_seconds")
    if not arrivals or not measured or deliveries is None:
        return Line(base, per_match, None)
    return Line(base, per_match, abs(base + per_match * deliveries / arrivals - measured) / measured)


def _number(report: Mapping[str, Any], name: str) -> float | None:
    found = report.get(name)
    return float(found) if isinstance(found, int | float) and found >= 0 else None


def _calibrated(lines: Sequence[Line]) -> dict[str, int]:
    errors = [line.error for line in lines if line.error is not None]
    found = {
        "brokers": len(lines),
        "publicationNanoseconds": round(1e9 * sum(line.base for line in lines) / len(lines)),
        "matchNanoseconds": round(1e9 * sum(line.per_match for line in lines) / len(lines)),
    }
    return {**found, "errorPercent": round(100 * max(errors))} if errors else found
