"""The result of an experiment: what the paper claims, what came out here, and the charts behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from plimsoll.pages.charts import Chart


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper with its number, the number of this run, and whether the claim holds in it."""

    claim: str
    paper: str
    ours: str
    held: bool


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart. `name`: the paper's, as 6a; `caption`: what it shows."""

    name: str
    chart: Chart
    caption: str


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """`numbers`: every figure of the run that a reader may want to compare, by name. `notes`: paragraphs."""

    name: str
    title: str
    policy: str
    seed: int
    claims: Sequence[Claim]
    figures: Sequence[Figure]
    numbers: dict[str, Any]
    notes: Sequence[str] = ()
    wall_seconds: float = 0.0
    processor_seconds: float = 0.0
    runs: Sequence[dict[str, Any]] = field(default_factory=tuple)

    @property
    def held(self) -> int:
        """How many claims hold."""
        return sum(each.held for each in self.claims)

    def plain(self) -> dict[str, Any]:
        """The content of the JSON file."""
        return {
            "name": self.name,
            "title": self.title,
            "policy": self.policy,
            "seed": self.seed,
            "wall_seconds": round(self.wall_seconds, 3),
            "processor_seconds": round(self.processor_seconds, 3),
            "claims": [asdict(each) for each in self.claims],
            "notes": list(self.notes),
            "numbers": self.numbers,
            "runs": list(self.runs),
            "figures": [
                {
                    "name": each.name, "title": each.chart.title, "unit": each.chart.unit, "caption": each.caption,
                    "lines": [{"name": line.name, "points": [list(point) for point in line.points]}
                              for line in each.chart.lines],
                }
                for each in self.figures
            ],
        }  # fmt: skip
