"""Claims of a demo: each with its measured value, its bound, and whether it held; as text, and for the report.

A figure that was not measured holds no claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MeasuredClaim:
    """`value`: None if there is nothing to measure, and then it is not held."""

    claim: str
    value: float | int | None
    bound: str
    held: bool

    def plain(self) -> dict[str, Any]:
        """The entry of the report."""
        value = round(self.value, 4) if isinstance(self.value, float) else self.value
        return {"claim": self.claim, "value": value, "bound": self.bound, "held": self.held}


def at_most(claim: str, value: float | None, bound: float) -> MeasuredClaim:
    return MeasuredClaim(claim, value, f"<= {bound:g}", value is not None and value <= bound)


def between(claim: str, value: float | None, low: float, high: float) -> MeasuredClaim:
    return MeasuredClaim(claim, value, f"{low:g} to {high:g}", value is not None and low <= value <= high)


def claim_line(claim: MeasuredClaim) -> str:
    """A claim for the terminal."""
    value = "not measured" if claim.value is None else f"{claim.value:.4g}"
    return f"{'held    ' if claim.held else 'NOT HELD'}  {claim.claim}: {value}, bound {claim.bound}"


def held_of(claims: Sequence[MeasuredClaim]) -> str:
    return f"{sum(claim.held for claim in claims)} of {len(claims)} claims held"
