"""Claims of a run with what was measured, the bound, and whether it held. A figure that was not measured holds none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

NO_FAULT: Final = ("lost", "duplicated", "reordered")
"""What may not happen to a delivery."""


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

    def line(self) -> str:
        """The claim for the terminal."""
        value = "not measured" if self.value is None else f"{self.value:.4g}"
        return f"{'held    ' if self.held else 'NOT HELD'}  {self.claim}: {value}, bound {self.bound}"


def at_most(claim: str, value: float | None, bound: float) -> MeasuredClaim:
    """A claim that a value is no larger."""
    return MeasuredClaim(claim, value, f"<= {bound:g}", value is not None and value <= bound)


def at_least(claim: str, value: float | None, bound: float) -> MeasuredClaim:
    """A claim that a value is no smaller."""
    return MeasuredClaim(claim, value, f">= {bound:g}", value is not None and value >= bound)


def near(claim: str, value: float | None, wanted: float, tolerance: float) -> MeasuredClaim:
    """A claim that a value differs from another one by no more than a tolerance."""
    is_near = value is not None and abs(value - wanted) <= tolerance
    return MeasuredClaim(claim, value, f"{wanted:g} +- {tolerance:g}", is_near)


def no_faults(counts: Mapping[str, int]) -> list[MeasuredClaim]:
    """Nothing lost, repeated or reordered."""
    return [at_most(f"deliveries {name}", counts[name], 0) for name in NO_FAULT]
